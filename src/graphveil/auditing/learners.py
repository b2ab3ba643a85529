"""Learners predict classes from rows of numbers; attacks are built on them. This file defines and tunes them.

Every learner is tuned over a small grid on held-out rows. Learners that train in rounds stop early on the same rows.
Rows come standardised. Answers are log-probabilities, (n, classes). `classifiers` and `networks` have the learners.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from graphveil.auditing.metrics import Array, Integers
from graphveil.auditing.secret import stratified
from graphveil.randomness import stream

Rows = NDArray[np.floating[Any]]
"""One row of numbers per example, (n, columns): float64 from a file, float32 for a learner."""

FEW_ROWS, MANY_ROWS = 2_000, 6_000
"""With more rows than this, all settings are compared on a sample of the first size, the best on one of the second."""
BEST_SETTINGS = 3
"""Settings that are compared again on the larger sample."""
MIN_PROBABILITY = 1e-6
"""The smallest probability of a class, so that one confident error has a finite loss."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows with known classes.

    Args:
        x: rows, (n, columns).
        y: classes, (n,).
    """

    x: Rows
    y: Integers


Fold = tuple[Examples, Examples]
"""Training rows and held-out rows."""
Stop = Examples | int | None
"""When to stop: when the loss on these rows no longer falls, after this many rounds, or by the learner's own rule."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model.

    Args:
        log_probabilities: a function from rows, (n, columns), to log-probabilities, (n, classes).
        rounds: the number of rounds after which the model was best; 0 if it has no rounds.
    """

    log_probabilities: Callable[[Rows], Array]
    rounds: int = 0


class Learner(Protocol):
    """A kind of model with a grid of settings."""

    @property
    def grid(self) -> Sequence[Any]:
        """The settings that `fit` accepts, the most promising first."""

    def fit(self, train: Examples, num_classes: int, setting: Any, seed: int, stop: Stop = None) -> Fitted:
        """Fit a model with one setting."""


@dataclass(frozen=True)
class Tuned:
    """The choice of `tune`.

    Args:
        view: the number of the view.
        setting: the setting of the learner.
        rounds: the number of rounds to train for; 0 if unknown.
    """

    view: int
    setting: Any
    rounds: int = 0


def tune(learner: Learner, views: Sequence[Sequence[Fold]], num_classes: int, seed: int) -> Tuned:
    """Choose the view of the rows and the setting with the best result on held-out rows.

    With many rows, all choices are compared on a small sample, and the best of them on a larger one.

    Args:
        learner: the learner with its grid.
        views: the same folds, once for each view of the rows.
        num_classes: the number of classes.
        seed: the seed of the samples and of the learner.
    """
    choices = [(view, setting) for view in range(len(views)) for setting in range(len(learner.grid))]
    if len(choices) == 1:
        return Tuned(0, learner.grid[0])
    most_rows = max(len(part.y) for fold in views[0] for part in fold)
    for rows, kept in ((FEW_ROWS, BEST_SETTINGS), (MANY_ROWS, 1)):
        results = [
            (*_try_setting(learner, views[view], num_classes, setting, seed, rows), view, setting)
            for view, setting in choices
        ]
        results.sort(key=lambda result: result[0], reverse=True)
        choices = [(view, setting) for *_, view, setting in results[:kept]]
        if rows >= most_rows:
            break
    (_, rounds, view, setting), *_ = results
    return Tuned(view, learner.grid[setting], rounds if rows >= most_rows else 0)


def _try_setting(
    learner: Learner, folds: Sequence[Fold], num_classes: int, setting: int, seed: int, rows: int
) -> tuple[tuple[float, float], int]:
    """The quality of a setting, and its mean number of rounds, with at most `rows` rows."""
    draft = getattr(learner, "draft", None) or learner
    answers, rounds, y = [], [], []
    for train, held_out in ((_sample(one, rows, seed), _sample(other, rows, seed)) for one, other in folds):
        model = fit(draft, train, num_classes, draft.grid[setting], seed, stop=held_out)
        answers.append(model.log_probabilities(held_out.x))
        rounds.append(model.rounds)
        y.append(held_out.y)
    return _quality(np.concatenate(answers), np.concatenate(y)), round(float(np.mean(rounds)))


def learn(learner: Learner, views: Sequence[Fold], num_classes: int, seed: int) -> tuple[int, Fitted]:
    """Tune a learner on one fold, and fit it.

    Args:
        learner: the learner with its grid.
        views: the same fold, once for each view of the rows.
        num_classes: the number of classes.
        seed: the seed of the samples and of the learner.

    Returns:
        The number of the best view, and the model of the best setting for it.
    """
    tuned = tune(learner, [[fold] for fold in views], num_classes, seed)
    train, held_out = views[tuned.view]
    return tuned.view, fit(learner, train, num_classes, tuned.setting, seed, stop=tuned.rounds or held_out)


def fit(learner: Learner, train: Examples, num_classes: int, setting: Any, seed: int, stop: Stop = None) -> Fitted:
    """`learner.fit`; if the training rows have one class only, every answer is that class."""
    (classes,) = np.bincount(train.y, minlength=num_classes).nonzero()
    if len(classes) > 1:
        return learner.fit(train, num_classes, setting, seed, stop)
    certain = clipped_log(np.eye(num_classes)[classes[:1]])
    return Fitted(lambda x: np.repeat(certain, len(x), axis=0))


def folds_of(examples: Examples, seed: int, count: int = 4) -> list[Fold]:
    """Divide examples into `count` stratified folds, each of which is held out once."""
    fold = stratified(examples.y, count, stream(seed, "folds"))
    return [
        (Examples(examples.x[fold != k], examples.y[fold != k]), Examples(examples.x[fold == k], examples.y[fold == k]))
        for k in range(count)
    ]


def _sample(examples: Examples, rows: int, seed: int) -> Examples:
    """A stratified sample of about `rows` examples, with at least ten per class, or all that a class has."""
    if len(examples.y) <= rows:
        return examples
    order = np.random.default_rng(stream(seed, "tuning")).permutation(len(examples.y))
    rank_in_class = np.empty(len(order), dtype=np.int64)
    by_class = order[np.argsort(examples.y[order], kind="stable")]
    size = np.bincount(examples.y)
    rank_in_class[by_class] = np.arange(len(order)) - np.repeat(size.cumsum() - size, size)
    wanted = np.maximum(10, np.ceil(size * rows / len(order)))
    chosen = rank_in_class < wanted[examples.y]
    return Examples(examples.x[chosen], examples.y[chosen])


def _quality(log_p: Array, y: Integers) -> tuple[float, float]:
    """The accuracy (with two classes: the AUC), then minus the cross-entropy."""
    cross_entropy = -float(log_p[np.arange(len(y)), y].mean())
    if log_p.shape[1] == 2 and 0 < y.sum() < len(y):
        return area(log_p[:, 1] - log_p[:, 0], y), -cross_entropy
    return float((log_p.argmax(axis=1) == y).mean()), -cross_entropy


def area(score: Array, y: Integers) -> float:
    """The area under the ROC curve."""
    return float(roc_auc_score(y, score))


def clipped_log(probabilities: Array) -> Array:
    """The logarithm of probabilities, which are at least `MIN_PROBABILITY`."""
    result: Array = np.log(np.clip(probabilities, MIN_PROBABILITY, None))
    return result
