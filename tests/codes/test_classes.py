"""The certificate of a class by hand and against brute force, and the coverage of its limits."""

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from graphveil.codes import class_certificate
from graphveil.codes.measures import accuracy_limit, balanced_limit
from tests.codes.made import CODES, Y, random_release


def test_class_certificate_by_hand() -> None:
    """Codes by classes: (3, 1), (1, 2), (1, 2)."""
    certificate = class_certificate(CODES, Y, strata={"half": np.array([0] * 5 + [1] * 5)}, secret="labels")
    assert (
        certificate.nodes,
        certificate.known,
        certificate.codes,
        certificate.classes,
        certificate.smallest_code,
    ) == (10, 10, 3, 2, 3)
    assert certificate.majority == 0.5
    assert certificate.accuracy == 0.7
    assert certificate.balanced_accuracy == pytest.approx((3 / 5 + 2 / 5 + 2 / 5) / 2)
    assert certificate.maximal_leakage == pytest.approx(np.log(7 / 5))
    assert certificate.information == pytest.approx(mutual_info_score(CODES, Y), abs=1e-12)
    assert certificate.entropy == pytest.approx(np.log(2))
    assert certificate.bits_per_node == pytest.approx(np.log2(3))
    assert (
        certificate.worst.code,
        certificate.worst.likely_class,
        certificate.worst.share,
        certificate.worst.nodes,
    ) == (0, 0, 0.75, 4)
    assert certificate.calibration is None
    low, high = certificate.strata  # (3, 1), (0, 1) and (1, 1), (1, 2)
    assert (low.nodes, low.share, low.majority, low.accuracy) == (5, 0.5, 0.6, 0.8)
    assert (high.nodes, high.share, high.majority, high.accuracy) == (5, 0.5, 0.6, 0.6)


@pytest.mark.parametrize("seed", range(10))
def test_no_rule_from_code_to_class_beats_the_best_accuracy(seed: int) -> None:
    codes, y, _ = random_release(seed, num_nodes=25, num_codes=4)
    y[:3] = -1
    certificate = class_certificate(codes, y)
    known, classes = y >= 0, np.unique(y[y >= 0])
    rules = [np.array(rule)[codes[known]] == y[known] for rule in product(range(3), repeat=4)]
    assert certificate.accuracy == pytest.approx(max(hits.mean() for hits in rules), abs=1e-12)
    balanced = [np.mean([hits[y[known] == c].mean() for c in classes]) for hits in rules]
    assert certificate.balanced_accuracy == pytest.approx(max(balanced), abs=1e-12)
    assert certificate.known == 22


def test_values_by_chance_are_means_over_permutations() -> None:
    random = np.random.default_rng(0)
    codes, y = random.integers(0, 20, 100), random.integers(0, 3, 100)
    certificate = class_certificate(codes, y)
    shuffled = [class_certificate(codes, random.permutation(y)) for _ in range(100)]
    assert certificate.accuracy_by_chance == pytest.approx(np.mean([s.accuracy for s in shuffled]), abs=0.01)
    assert certificate.information_by_chance == pytest.approx(np.mean([s.information for s in shuffled]), abs=0.02)
    assert certificate.accuracy_by_chance > certificate.majority + 0.1  # many cells overfit noise


@pytest.mark.parametrize(
    ("num_codes", "num_classes", "nodes", "signal"),
    [(2, 2, 100, 0.5), (30, 2, 300, 0.1), (5, 4, 60, 0.9), (50, 7, 1000, 0.05)],
)
def test_coverage_of_the_limits_for_other_nodes(num_codes: int, num_classes: int, nodes: int, signal: float) -> None:
    """The true best accuracies are known from the joint distribution that the nodes are drawn from."""
    random = np.random.default_rng(7)
    noise = random.dirichlet(np.ones(num_classes), num_codes)
    given = (1 - signal) * noise + signal * np.eye(num_classes)[np.arange(num_codes) % num_classes]
    law = random.dirichlet(np.full(num_codes, 5.0))[:, None] * given
    best = law.max(axis=1).sum()
    balanced = (law / law.sum(axis=0)).max(axis=1).sum() / num_classes
    tables = random.multinomial(nodes, law.ravel(), 400).reshape(400, num_codes, num_classes)
    assert np.mean([accuracy_limit(table) >= best for table in tables]) >= 0.93
    assert np.mean([balanced_limit(table) >= balanced for table in tables]) >= 0.93


def test_the_accuracy_limit_is_tight_for_a_clear_best_rule() -> None:
    tables = np.random.default_rng(0).multinomial(200, [0.7, 0.2, 0.1], 2000)[:, None]
    assert np.mean([accuracy_limit(table) >= 0.7 for table in tables]) == pytest.approx(0.96, abs=0.015)
