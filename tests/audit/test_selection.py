"""Which attack is called the strongest, and how far any of them may reach."""

from dataclasses import replace

import numpy as np
import pytest
from torch_geometric.data import Data

import graphveil as gv
from graphveil.audit.attacks import Answers
from graphveil.audit.finding import CONTENDERS, Finding, contenders, over_folds, strongest, together
from graphveil.audit.metrics import accuracy, auc, largest_of, placements
from graphveil.audit.secret import NodeSecret, node_secret


@pytest.fixture(scope="module")
def coin(town: Data, town_split: gv.Split) -> NodeSecret:
    return node_secret(town, town_split, "coin", 0)


def finding(secret: NodeSecret, name: str, share: float, knows: str = "secrets", seed: int = 0) -> Finding:
    """An attack that is right on this share of the validation part, and at random on the test."""
    random = np.random.default_rng(seed)

    def answers(y: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.where((np.arange(2) == y[:, None]) == right[:, None], -0.1, -2.4)

    val, test = secret.val.y, secret.test.y
    right = np.arange(len(val)) < share * len(val)
    return Finding(
        "embeddings",
        name,
        ("z", knows),  # type: ignore[arg-type]
        secret,
        Answers(answers(val, right), answers(test, random.random(len(test)) < 0.5)),
        1.0,
    )


def test_every_known_node_is_asked_for_in_one_fold_and_known_in_the_others(coin: NodeSecret) -> None:
    folds = coin.folds(4, seed=3)
    every = np.sort(np.concatenate([coin.known["all"].index, coin.val.index]))
    assert np.array_equal(np.sort(np.concatenate([fold.val.index for fold in folds])), every)
    for fold in folds:
        assert not np.isin(fold.val.index, fold.known["all"].index).any()
        assert not np.isin(fold.val.index, coin.test.index).any()
        assert len(fold.val.y) + len(fold.known["all"].y) == len(every)
        assert abs(fold.val.y.mean() - np.concatenate([coin.known["all"].y, coin.val.y]).mean()) < 0.01
        assert fold.chance == coin.chance


def test_an_attack_that_knows_few_is_not_chosen_by_luck(coin: NodeSecret) -> None:
    lucky, steady = finding(coin, "lucky", 0.7, "few secrets"), finding(coin, "steady", 0.55)
    assert strongest([lucky, steady]) is steady
    assert strongest([lucky]) is lucky, "if there is no other"
    assert contenders([lucky, steady]) == [steady]


def test_a_contender_is_chosen_and_not_one_that_was_asked_for_less(coin: NodeSecret) -> None:
    folds = coin.folds(4, seed=0)
    lucky = finding(folds[0], "lucky on one part", 0.6)
    parts = [finding(fold, "contender", 0.55) for fold in folds]
    whole = over_folds(parts[0], parts[1:])
    assert len(whole.answers.val) == len(whole.secret.val.y) == sum(len(fold.val.y) for fold in folds)
    assert whole.validation.value == pytest.approx(0.55, abs=0.01)
    assert whole.validation.half < parts[0].validation.half / 1.9
    assert np.array_equal(whole.answers.test, parts[0].answers.test)
    assert whole.seconds == 4
    assert strongest([lucky, whole]) is whole
    assert together([lucky, whole]) == [], "one alone is no ensemble"


def test_contenders_are_near_the_best_and_not_many(coin: NodeSecret) -> None:
    some = [finding(coin, str(number), 0.6 - 0.007 * number) for number in range(9)]
    far = finding(coin, "far", 0.4)
    assert [one.attack for one in contenders([far, *reversed(some)])] == [str(n) for n in range(CONTENDERS)]
    assert contenders([some[0], far]) == [some[0]]
    graph = replace(some[0], needs=("z", "secrets", "graph"))
    assert contenders([graph, some[1]]) == [some[1]], "z alone"


def test_a_full_audit_compares_contenders_on_all_that_is_known(town: Data, town_split: gv.Split) -> None:
    z = np.random.default_rng(0).standard_normal((1500, 4)) + 0.3 * town.coin.numpy()[:, None]
    found = gv.audit(z, town, town_split, "coin")
    known = 1500 - len(found.secret.test.y)
    assert len(found.strongest.secret.val.y) == known
    assert len(found.secret.val.y) == pytest.approx(known / 4, abs=1)
    assert found.upper > found.strongest.headline.high
    assert found.to_dict()["strongest"]["upper"] == found.upper
    quick = gv.audit(z, town, town_split, "coin", attacks="quick")
    assert len(quick.strongest.secret.val.y) == pytest.approx(known / 4, abs=1)


@pytest.mark.parametrize(("attacks", "alike"), [(1, 0.0), (12, 0.0), (12, 0.9)])
def test_the_largest_of_many_lies_below_its_upper_end(attacks: int, alike: float) -> None:
    """The best of twelve attacks has a true accuracy of .6; 97.5 of 100 upper ends are above it, and not all."""
    random, count, trials = np.random.default_rng(0), 400, 600
    true = np.linspace(0.57, 0.6, attacks) if attacks > 1 else np.array([0.6])
    y = np.zeros(count, dtype=np.int64)
    above = 0
    for _ in range(trials):
        shared = random.random(count)
        draws = np.where(random.random((attacks, count)) < alike, shared, random.random((attacks, count)))
        wrong = (draws >= true[:, None]).astype(np.int64)
        answers = [np.where(np.arange(2) == one[:, None], 0.0, -1.0) for one in wrong]
        influences = [((1 - one) - (1 - one).mean()) / count for one in wrong]
        above += largest_of([accuracy(one, y) for one in answers], influences) >= true.max()
    assert above / trials > 0.965


def test_for_one_attack_the_upper_end_is_that_of_its_interval_and_for_many_it_is_higher() -> None:
    random = np.random.default_rng(1)
    y = np.repeat([1, 0], 300)
    pairs = random.permutation(2400).reshape(2, 1200)[:, :600]
    scores = [random.standard_normal(600) + 0.5 * y for _ in range(10)]
    estimates = [auc(score, y, pairs) for score in scores]
    influences = [placements(score, y)[1] for score in scores]
    assert largest_of(estimates[:1], influences[:1], pairs) == pytest.approx(estimates[0].high, abs=0.005)
    best = max(estimates, key=lambda one: one.value)
    assert largest_of(estimates, influences, pairs) > best.high + 0.005
    assert largest_of(estimates[:1] * 10, influences[:1] * 10, pairs) == pytest.approx(
        largest_of(estimates[:1], influences[:1], pairs), abs=0.002
    ), "the same attack ten times is one"
