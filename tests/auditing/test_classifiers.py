"""Learners without a network: counts by hand, and fewer known rows than neighbours."""

import numpy as np
import pytest

from graphveil.auditing.classifiers import CountTable, neighbours
from graphveil.auditing.learners import Examples


def test_counts_are_smoothed_by_the_shares_of_the_classes() -> None:
    """Code 0 has three nodes of class 0 and one of class 1, code 1 two of class 1; s = 4 and shares of one half."""
    codes, y = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 1])
    rows = np.array([[0.0], [1.0], [7.0]], dtype=np.float32)
    fitted = CountTable().fit(Examples(codes[:, None].astype(np.float32), y), 2, 4.0, seed=0)
    found = np.exp(fitted.log_probabilities(rows))
    np.testing.assert_allclose(found, [[5 / 8, 3 / 8], [2 / 6, 4 / 6], [0.5, 0.5]], atol=1e-6)


@pytest.mark.parametrize("setting", neighbours().grid, ids=lambda one: f"{one.metric}-{one.n_neighbors}")
def test_three_known_rows_are_enough_for_any_number_of_neighbours(setting: object) -> None:
    x = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], dtype=np.float32)
    fitted = neighbours().fit(Examples(x, np.array([0, 0, 1])), 3, setting, seed=0)
    answers = fitted.log_probabilities(x)
    assert answers.argmax(axis=1).tolist() == [0, 0, 1]
    assert (answers[:, 2] < np.log(1e-3)).all(), "nobody has the third class"
