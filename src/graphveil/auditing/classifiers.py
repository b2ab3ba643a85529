"""Learners without a network: scikit-learn classifiers, a kernel machine, and a table of class counts."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from graphveil.auditing.learners import Examples, Fitted, Rows, Stop, clipped_log
from graphveil.auditing.metrics import Array, Integers
from graphveil.codes import class_table
from graphveil.randomness import stream

MIN_LEAST_SQUARES = 0.005
"""The smallest value of a least-squares fit that is taken for a probability."""


@dataclass(frozen=True)
class Sklearn:
    """scikit-learn classifiers with `predict_proba`.

    Args:
        grid: the classifiers, each of which is one setting.
        draft: cheaper classifiers to tune with, in the same order.
    """

    grid: Sequence[Any]
    draft: "Sklearn | None" = None

    def fit(self, train: Examples, num_classes: int, setting: Any, seed: int, stop: Stop = None) -> Fitted:
        """Fit a clone of one classifier."""
        del stop  # they stop by their own rule
        model = clone(setting)
        random = [name for name in model.get_params() if name.endswith("random_state")]
        model.set_params(**dict.fromkeys(random, stream(seed, "attack") % 2**32))
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):  # BLAS sets the flag for lanes it does not use
            warnings.simplefilter("ignore", ConvergenceWarning)  # a setting that has not converged loses the tuning
            warnings.filterwarnings("ignore", message="n_components > n_samples")  # it then takes all samples
            model.fit(train.x, train.y)

        def log_probabilities(x: Rows) -> Array:
            answers = np.zeros((len(x), num_classes))
            with np.errstate(invalid="ignore"):  # as above
                answers[:, model.classes_] = model.predict_proba(x)
            return clipped_log(answers)

        return Fitted(log_probabilities)


def logistic_regression(strengths: Sequence[float] = (1.0, 0.1, 0.01, 0.001, 10.0, 100.0)) -> Sklearn:
    """Logistic regression with these inverse penalties (C)."""
    return Sklearn([LogisticRegression(C=c, max_iter=300) for c in strengths])


def neighbours() -> Sklearn:
    """k nearest neighbours by the Euclidean and the cosine distance."""
    settings = [(metric, k) for metric in ("euclidean", "cosine") for k in (15, 5, 40)]
    return Sklearn([_Neighbours(k, weights="distance", metric=metric) for metric, k in settings])


def trees() -> Sklearn:
    """Gradient-boosted trees on histograms of the columns, deep and shallow; drafts have half as many trees."""

    def boosted(rounds: int, rate: float) -> Sklearn:
        deep = HistGradientBoostingClassifier(
            learning_rate=rate, max_iter=2 * rounds, max_leaf_nodes=15, min_samples_leaf=10
        )
        shallow = HistGradientBoostingClassifier(
            learning_rate=rate, max_iter=rounds, max_leaf_nodes=6, l2_regularization=1.0
        )
        return Sklearn([deep, shallow])

    return replace(boosted(30, 0.2), draft=boosted(15, 0.3))


def forest() -> Sklearn:
    """Extremely randomised trees, which find some weak effects that boosted trees miss."""
    draft, final = (
        Sklearn([ExtraTreesClassifier(trees, min_samples_leaf=leaf) for leaf in (2, 5)]) for trees in (50, 200)
    )
    return replace(final, draft=draft)


class _Neighbours(KNeighborsClassifier):  # type: ignore[misc]
    """k nearest neighbours with a smaller k if there are fewer known rows."""

    def fit(self, x: Rows, y: Integers) -> "_Neighbours":
        self.set_params(n_neighbors=min(self.get_params()["n_neighbors"], len(y)))
        super().fit(x, y)
        return self


@dataclass(frozen=True)
class Kernel:
    """Ridge regression of one-hot classes on 400 features of a Gaussian kernel (Nystroem).

    Args:
        grid: (gamma times the number of columns, ridge penalty).
    """

    grid: Sequence[tuple[float, float]] = tuple(
        (width, penalty) for width in (0.7, 0.2, 2.0) for penalty in (0.1, 1.0, 10.0)
    )

    def fit(self, train: Examples, num_classes: int, setting: Any, seed: int, stop: Stop = None) -> Fitted:
        """Solve the least-squares problem with one setting."""
        del stop  # it has no rounds
        width, penalty = setting
        count = min(400, len(train.y))
        kernel = Nystroem(
            gamma=width / train.x.shape[1], n_components=count, random_state=stream(seed, "attack") % 2**32
        )
        x = kernel.fit_transform(train.x).astype(np.float64)
        centre, share = x.mean(axis=0), np.bincount(train.y, minlength=num_classes) / len(train.y)
        x -= centre
        squares = x.T @ x + penalty * np.eye(count)
        weights = np.linalg.solve(squares, x.T @ (np.eye(num_classes)[train.y] - share))

        def log_probabilities(rows: Rows) -> Array:
            values = np.clip((kernel.transform(rows) - centre) @ weights + share, MIN_LEAST_SQUARES, None)
            return clipped_log(values / values.sum(axis=1, keepdims=True))

        return Fitted(log_probabilities)


@dataclass(frozen=True)
class CountTable:
    """Smoothed class counts by code: p(y | c) = (n(c, y) + s * share(y)) / (n(c) + s). A row is a code, (n, 1).

    Args:
        grid: values of s, the number of known nodes that the class shares count as.
    """

    grid: Sequence[float] = (1.0, 4.0, 0.25, 16.0, 64.0)

    def fit(self, train: Examples, num_classes: int, setting: Any, seed: int, stop: Stop = None) -> Fitted:
        """Count the classes of each code."""
        del seed, stop  # counting draws nothing and has no rounds
        codes = train.x[:, 0].astype(np.int64)
        unseen = int(codes.max()) + 1  # the last row of the table is for codes without a known node
        counts = class_table(codes, train.y, unseen + 1, num_classes)
        share = counts.sum(axis=0) / len(codes)
        log_p = clipped_log((counts + setting * share) / (counts.sum(axis=1, keepdims=True) + setting))
        return Fitted(lambda x: log_p[np.minimum(x[:, 0].astype(np.int64), unseen)])
