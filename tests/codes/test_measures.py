"""Measures of a count table, by hand."""

import math

import numpy as np
import pytest

from graphveil.codes.measures import (
    accuracy_limit,
    balanced_limit,
    best_accuracy,
    best_auc,
    best_balanced_accuracy,
    class_information,
    entropy,
    link_information,
    majority_share,
)

TABLE = np.array([[6, 2], [1, 3]])
"""Two codes and two classes of 7 and 5 nodes."""


def test_accuracies() -> None:
    """The best rule names class 0 for code 0 and class 1 for code 1."""
    assert best_accuracy(TABLE) == 9 / 12
    assert majority_share(TABLE) == 7 / 12
    assert best_balanced_accuracy(TABLE) == pytest.approx((6 / 7 + 3 / 5) / 2)


def test_information_and_entropy() -> None:
    shares = TABLE / 12
    independent = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
    assert class_information(TABLE) == pytest.approx(float((shares * np.log(shares / independent)).sum()))
    assert entropy(TABLE.sum(axis=0)) == pytest.approx(-sum(p * math.log(p) for p in (7 / 12, 5 / 12)))
    assert class_information(np.eye(3, dtype=np.int64)) == pytest.approx(entropy(np.array([1, 1, 1])))
    assert class_information(np.array([[2, 4], [3, 6]])) == pytest.approx(0, abs=1e-15), (
        "both codes have the same shares"
    )


def test_the_evidence_for_a_link() -> None:
    """All links are in one cell with a quarter of the pairs: log 4 for each."""
    assert link_information(np.array([5]), np.array([25]), 100) == pytest.approx(math.log(4))
    assert link_information(np.array([5, 5]), np.array([50, 50]), 100) == 0


def test_the_auc_of_the_best_score() -> None:
    """Cells of 3 links : 1 non-link and 1 : 2, and 1 non-link in a cell without links.

    Non-links below the links of a cell, with half of its own: 1 + 2 + 1/2 for three links, and 1 + 1 for one.
    """
    expected = (3 * 3.5 + 1 * 2) / (4 * 4)
    assert best_auc(np.array([3.0, 1.0]), np.array([1.0, 2.0]), 1.0) == pytest.approx(expected)
    assert best_auc(np.array([2.0]), np.array([7.0])) == 0.5, "one cell says nothing"


def test_limits() -> None:
    """With all of n nodes right the limit is 1; with none of n right it is 1 - 0.05^(1/n)."""
    assert accuracy_limit(np.array([[4, 0], [0, 5]])) == 1.0
    limit = accuracy_limit(TABLE)
    hits = sum(math.comb(12, k) * limit**k * (1 - limit) ** (12 - k) for k in range(10))
    assert hits == pytest.approx(0.05), "nine hits or fewer have a probability of 5 % at the limit"
    margin = math.sqrt(math.log(20) / 2 * (1 / 700 + 1 / 500)) / 2
    assert balanced_limit(100 * TABLE) == pytest.approx((6 / 7 + 3 / 5) / 2 + margin)
    assert balanced_limit(np.array([[5, 0], [0, 0]])) == 1.0, "a class without nodes counts as known"
