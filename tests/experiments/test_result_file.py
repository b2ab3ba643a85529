"""Which rows of an experiment have a map in its file, and the mean of every attack."""

from dataclasses import replace

from graphveil.experiments.result_file import _attacks, _worth_a_picture
from tests.experiments.made import PLAIN


def test_of_all_trade_offs_the_largest_and_the_middle_one_have_a_map() -> None:
    codes = [replace(PLAIN, variant="codes", tradeoff=tradeoff) for tradeoff in (0.0, 0.4, 0.9)]
    peers = [replace(PLAIN, variant="gap", tradeoff=None, epsilon=epsilon) for epsilon in (1.0, 8.0)]
    rows = [PLAIN, *codes, *peers]
    assert _worth_a_picture(rows, codes[0]) == [codes[2], codes[1]]
    assert _worth_a_picture(rows, peers[0]) == [peers[1], peers[0]], "a larger epsilon hides less"
    assert _worth_a_picture(rows, PLAIN) == [PLAIN, PLAIN]


def test_an_attack_is_the_mean_over_seeds_if_all_have_it() -> None:
    found = _attacks([{"MLP": 0.4, "forest": 0.3}, {"MLP": 0.6}])
    assert list(found) == ["MLP"]
    assert found["MLP"].value == 0.5
    assert found["MLP"].ci is not None
    assert _attacks([{"MLP": 0.4}])["MLP"].ci is None, "one seed has no interval"
