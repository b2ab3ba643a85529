import pytest
import torch

from graphveil.data.graph import encode_pairs
from graphveil.data.pairs import contains, distinct_nonlinks, draw_nonlinks
from graphveil.errors import GraphveilError
from graphveil.randomness import generator


def test_contains_is_membership() -> None:
    codes = torch.tensor([2, 5, 9])
    assert contains(codes, torch.tensor([0, 2, 3, 9, 11])).tolist() == [False, True, False, True, False]
    assert not contains(torch.empty(0, dtype=torch.long), torch.tensor([1])).any()


@pytest.mark.parametrize("draw", [draw_nonlinks, distinct_nonlinks])
@pytest.mark.parametrize("taken_share", [0.0, 0.2, 0.9])
def test_drawn_pairs_are_free_and_uniform(draw, taken_share: float) -> None:  # type: ignore[no-untyped-def]
    """On 8 nodes every one of the 28 pairs can be counted: free ones equally often, taken ones never."""
    n = 8
    everything = encode_pairs(torch.triu_indices(n, n, 1), n)
    taken = everything[: int(28 * taken_share)]
    free = everything[int(28 * taken_share) :]
    counts = torch.zeros(n * n)
    draws, size = 4000, 2
    for seed in range(draws):
        pairs = draw(size, taken, n, generator(seed, "test"))
        assert (pairs[0] < pairs[1]).all()
        counts[encode_pairs(pairs, n)] += 1
        if draw is draw_nonlinks:  # a repeated code is counted once by the line above
            counts[encode_pairs(pairs, n)[0]] += bool(encode_pairs(pairs, n).unique().numel() < size)
    assert counts.sum() == draws * size
    expected = draws * size / free.numel()
    chi_squared = ((counts[free] - expected) ** 2 / expected).sum()
    assert chi_squared < free.numel() - 1 + 5 * (2 * free.numel()) ** 0.5, "five standard deviations"


def test_distinct_pairs_are_distinct_up_to_the_last_free_one() -> None:
    n, taken = 30, encode_pairs(torch.tensor([[0, 1, 2], [5, 6, 7]]), 30)
    pairs = distinct_nonlinks(30 * 29 // 2 - 3, taken, n, generator(0))
    assert encode_pairs(pairs, n).unique().numel() == 30 * 29 // 2 - 3
    with pytest.raises(GraphveilError, match=r"too dense: 433 pairs .* 432 are left"):
        distinct_nonlinks(433, taken, n, generator(0))


def test_a_complete_graph_has_no_pair_to_draw() -> None:
    taken = encode_pairs(torch.triu_indices(5, 5, 1), 5)
    with pytest.raises(GraphveilError, match="too dense"):
        draw_nonlinks(1, taken, 5, generator(0))
