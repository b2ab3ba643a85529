"""The metrics agree with scikit-learn, and their intervals cover as often as stated."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, balanced_accuracy_score, f1_score, roc_auc_score, roc_curve

from graphveil.auditing.metrics import accuracy, auc, balanced_accuracy, macro_f1, mean, precision_and_rates, wilson


def disjoint_pairs(count: int) -> np.ndarray:
    """Pairs that share no node."""
    return np.arange(2 * count).reshape(2, count)


@pytest.mark.parametrize("levels", [3, 50, 10**9])
def test_link_metrics_are_those_of_scikit_learn(levels: int) -> None:
    random = np.random.default_rng(levels)
    y = np.repeat([1, 0], [300, 1200])
    score = np.floor(levels * (random.random(1500) * 0.7 + 0.3 * y)) / levels
    result = {"auc": auc(score, y, disjoint_pairs(1500))}
    result |= precision_and_rates(score, y, disjoint_pairs(1500))
    assert result["auc"].value == pytest.approx(roc_auc_score(y, score), abs=1e-12)
    assert result["average_precision"].value == pytest.approx(average_precision_score(y, score), abs=1e-12)
    fpr, tpr, _ = roc_curve(y, score, drop_intermediate=False)
    assert result["tpr_at_1_percent_fpr"].value == pytest.approx(tpr[fpr <= 0.01].max(), abs=1e-12)
    assert result["tpr_at_0.1_percent_fpr"].value == pytest.approx(tpr[fpr <= 0.001].max(), abs=1e-12)
    for estimate in result.values():
        assert estimate.low <= estimate.value <= estimate.high


def test_a_rate_below_one_non_link_is_left_out() -> None:
    y = np.repeat([1, 0], 99)
    result = precision_and_rates(np.arange(198.0), y, disjoint_pairs(198))
    assert set(result) == {"average_precision"}


def test_node_metrics_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    y = random.choice(4, 400, p=[0.5, 0.3, 0.15, 0.05])
    log_p = np.log(random.dirichlet(np.ones(4), 400) + 0.8 * np.eye(4)[y])
    predicted = log_p.argmax(axis=1)
    result = {function: function(log_p, y) for function in (accuracy, balanced_accuracy, macro_f1)}
    assert result[accuracy].value == pytest.approx((predicted == y).mean())
    assert result[balanced_accuracy].value == pytest.approx(balanced_accuracy_score(y, predicted))
    assert result[macro_f1].value == pytest.approx(f1_score(y, predicted, average="macro"))
    for estimate in result.values():
        assert estimate.low < estimate.value < estimate.high


def test_a_rare_class_with_a_constant_answer_has_an_interval() -> None:
    """No example of a class with 16 of 1,000 examples is recalled, but the true recall may be above 0."""
    y = (np.arange(1000) < 16).astype(np.int64)
    result = balanced_accuracy(np.tile([0.0, -1.0], (1000, 1)), y)
    assert result.value == 0.5
    assert result.high > 0.55


@pytest.mark.parametrize("rare", [5, 40, 300])
def test_the_balanced_interval_covers_the_chance_level(rare: int) -> None:
    random = np.random.default_rng(rare)
    y = (np.arange(600) < rare).astype(np.int64)
    covered = [balanced_accuracy(random.normal(size=(600, 2)), y).covers(0.5) for _ in range(500)]
    assert np.mean(covered) >= 0.92


def test_many_classes_need_little_memory() -> None:
    import tracemalloc

    random = np.random.default_rng(0)
    log_p, y = random.normal(size=(2000, 500)), random.integers(0, 500, 2000)
    tracemalloc.start()
    macro_f1(log_p, y)
    balanced_accuracy(log_p, y)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def test_the_interval_of_the_average_precision_covers() -> None:
    random, y = np.random.default_rng(3), np.repeat([1, 0], 200)
    big = np.repeat([1, 0], 100_000)
    truth = average_precision_score(big, random.normal(size=200_000) + big)
    result = [
        precision_and_rates(random.normal(size=400) + y, y, disjoint_pairs(400))["average_precision"]
        for _ in range(150)
    ]
    assert 0.88 <= np.mean([one.covers(truth) for one in result]) <= 0.99


def test_wilson_by_hand() -> None:
    """Eight of ten: (0.490, 0.943) in textbooks."""
    share = wilson(8, 10)
    assert [share.low, share.high] == pytest.approx([0.4902, 0.9433], abs=1e-4)
    assert wilson(0, 20).low == 0
    assert wilson(20, 20).high == 1


def test_a_perfect_auc_has_an_interval() -> None:
    y = np.repeat([1, 0], 60)
    result = auc(y.astype(float), y, disjoint_pairs(120))
    assert (result.value, result.low, result.high) == (1.0, 0.95, 1.0)


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_the_auc_interval_covers_in_95_percent(shift: float) -> None:
    from scipy.special import ndtr

    random, y = np.random.default_rng(1), np.repeat([1, 0], 150)
    truth = ndtr(shift / np.sqrt(2))
    covered = [auc(random.normal(size=300) + shift * y, y, disjoint_pairs(300)).covers(truth) for _ in range(1000)]
    assert 0.93 <= np.mean(covered) <= 0.97


def test_pairs_that_share_nodes_widen_the_interval() -> None:
    """Scores are effects of nodes, some of which are hubs: an interval that ignores shared nodes covers too rarely."""
    random, y = np.random.default_rng(2), np.repeat([1, 0], 200)
    covered, ignored = [], []
    for _ in range(400):
        hubs = np.stack([random.integers(0, 20, 200), random.integers(20, 2000, 200)])
        others = random.integers(0, 2000, (2, 200))
        pairs = np.concatenate([hubs, others], axis=1)
        effect = random.normal(size=2000)
        score = effect[pairs[0]] + effect[pairs[1]]
        covered.append(auc(score, y, pairs).covers(0.5))
        ignored.append(auc(score, y, disjoint_pairs(400)).covers(0.5))
    assert np.mean(ignored) < 0.75
    assert np.mean(covered) > 0.85


def test_the_mean_of_independent_values() -> None:
    values = np.array([0.0, 1.0, 2.0, 3.0])
    result = mean(values)
    assert result.value == 1.5
    assert result.high - result.low == pytest.approx(2 * 1.959964 * np.sqrt(values.var() / 4), rel=1e-6)
