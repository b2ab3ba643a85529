"""The choice of the strongest attack, and the upper bound over all attacks."""

import numpy as np
import pytest
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import metrics, nodes
from graphveil.auditing.attacks import Answers
from graphveil.auditing.finding import Finding, ensemble, strongest
from graphveil.auditing.metrics import accuracy, auc, placements, upper_bound_over_all
from graphveil.auditing.secret import FOLDS, NodeSecret, node_secret


def finding(secret: NodeSecret, name: str, share: float, knows: str = "secrets", seed: int = 0) -> Finding:
    """An attack that is right on this share of the validation part, and random on the test part."""
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


def test_every_known_node_is_held_out_once_and_learned_from_in_the_other_folds(coin: NodeSecret) -> None:
    every = coin.known["all"]
    assert len(coin.held_out) == coin.val_folds == FOLDS
    assert np.array_equal(np.sort(coin.val.index), np.sort(every.index))
    for train, held_out in coin.held_out:
        assert not np.isin(held_out.index, train.index).any()
        assert not np.isin(held_out.index, coin.test.index).any()
        assert len(held_out.y) + len(train.y) == len(every.y)
        assert abs(held_out.y.mean() - every.y.mean()) < 0.01


def test_with_many_known_nodes_fewer_folds_are_held_out(
    town: Data, town_split: gv.Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = len(node_secret(town, town_split, "coin", 0).known["all"].y)
    for enough, folds in ((known, 4), (known // 2, 2), (known // 8, 1)):
        monkeypatch.setattr("graphveil.auditing.secret.MIN_VALIDATION", enough)
        secret = node_secret(town, town_split, "coin", 0)
        assert secret.val_folds == folds
        assert len(secret.val.y) == pytest.approx(known * folds / 4, abs=folds)


def test_an_attack_with_few_known_secrets_is_not_chosen(coin: NodeSecret) -> None:
    lucky, steady = finding(coin, "lucky", 0.7, "few secrets"), finding(coin, "steady", 0.55)
    assert strongest([lucky, steady]) is steady
    assert strongest([lucky]) is lucky, "if there is no other"
    assert ensemble([lucky, steady]) == [], "one attack is not an ensemble"


def test_an_ensemble_that_is_not_above_chance_predicts_the_largest_class(coin: NodeSecret) -> None:
    share = np.bincount(coin.val.y).max() / len(coin.val.y)
    (none,) = ensemble([finding(coin, str(seed), share + 0.001, seed=seed) for seed in range(2)])
    assert none.constant
    assert none.validation.value == share
    (some,) = ensemble([finding(coin, str(seed), 0.7, seed=seed) for seed in range(2)])
    assert not some.constant


def test_a_full_audit_compares_attacks_on_all_known_nodes(
    hamlet: Data, hamlet_split: gv.Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [attack for attack in nodes.panel() if attack.name.startswith(("logistic regression", "k nearest"))]
    monkeypatch.setattr(nodes, "panel", lambda: few)
    z = np.random.default_rng(0).standard_normal((500, 4)) + 0.3 * hamlet.coin.numpy()[:, None]
    audit = gv.audit(z, hamlet, hamlet_split, "coin")
    known = 500 - len(audit.secret.test.y)
    assert len(audit.secret.val.y) == known
    assert audit.upper > audit.strongest.headline.high
    assert audit.to_dict()["strongest"]["upper"] == audit.upper
    quick = gv.audit(z, hamlet, hamlet_split, "coin", attacks="quick")
    assert len(quick.secret.val.y) == pytest.approx(known / 4, abs=1)


@pytest.mark.parametrize(("attacks", "alike"), [(1, 0.0), (12, 0.0), (12, 0.9)])
def test_the_upper_bound_holds_for_the_best_of_many_attacks(
    attacks: int, alike: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best attack has a true accuracy of 0.6; 97.5 % of the upper bounds are above it."""
    monkeypatch.setattr(metrics, "DRAWS", 2000)  # enough for a quantile, and 600 trials draw them
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
        above += upper_bound_over_all([accuracy(one, y) for one in answers], influences) >= true.max()
    assert above / trials > 0.965


def test_the_upper_bound_of_one_attack_is_that_of_its_interval_and_of_many_is_higher() -> None:
    random = np.random.default_rng(1)
    y = np.repeat([1, 0], 300)
    pairs = random.permutation(2400).reshape(2, 1200)[:, :600]
    scores = [random.standard_normal(600) + 0.5 * y for _ in range(10)]
    estimates = [auc(score, y, pairs) for score in scores]
    influences = [placements(score, y)[1] for score in scores]
    assert upper_bound_over_all(estimates[:1], influences[:1], pairs) == pytest.approx(estimates[0].high, abs=0.005)
    best = max(estimates, key=lambda one: one.value)
    assert upper_bound_over_all(estimates, influences, pairs) > best.high + 0.005
    assert upper_bound_over_all(estimates[:1] * 10, influences[:1] * 10, pairs) == pytest.approx(
        upper_bound_over_all(estimates[:1], influences[:1], pairs), abs=0.002
    ), "ten copies of an attack count as one"
