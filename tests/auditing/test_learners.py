"""How learners are tuned."""

import numpy as np
import pytest

from graphveil.auditing import learners
from graphveil.auditing.classifiers import logistic_regression
from tests.auditing.made import noise


def test_the_tuning_sample_keeps_rare_classes() -> None:
    y = np.zeros(30_000, dtype=np.int64)
    y[:4], y[4:3004] = 2, 1
    sample = learners._sample(learners.Examples(noise(1, 2, 30_000), y), 6_000, 0)
    counts = np.bincount(sample.y)
    assert counts[2] == 4
    assert counts[1] == pytest.approx(600, abs=1)
    assert len(sample.y) == pytest.approx(6_000, abs=10)


def test_folds_hold_out_every_example_once() -> None:
    y = np.repeat([0, 1], [40, 12])
    x = np.arange(52.0)[:, None]
    folds = learners.folds_of(learners.Examples(x, y), seed=0)
    assert sorted(value for _, held_out in folds for value in held_out.x[:, 0]) == x[:, 0].tolist()
    for train, held_out in folds:
        assert len(train.y) + len(held_out.y) == 52
        assert np.bincount(held_out.y).tolist() == [10, 3]


def test_with_one_class_every_answer_is_that_class() -> None:
    only = learners.Examples(noise(1, 2, 10), np.full(10, 2))
    model = learners.fit(logistic_regression(), only, 4, None, 0)
    answers = model.log_probabilities(noise(2, 2, 3))
    assert answers.shape == (3, 4)
    assert answers.argmax(axis=1).tolist() == [2, 2, 2]
    assert answers[:, 0].tolist() == pytest.approx([np.log(learners.MIN_PROBABILITY)] * 3)
