"""The panel for link secrets: distances, which need no training, and learners on pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.auditing import classifiers, learners, networks
from graphveil.auditing.attacks import WITH_FEATURES, Answers, Attack, Need, by_row, standardised
from graphveil.auditing.learners import Examples, Learner, Rows, learn
from graphveil.auditing.metrics import Array, Integers
from graphveil.auditing.pairs import DISTANCES, PairRows, Pairs, View, blocks, ends, geometry, whitened_ends
from graphveil.auditing.secret import LinkSecret, Queries
from graphveil.codes import distinct_codes
from graphveil.codes.tables import cell_pairs, code_sizes

MAX_KNOWN_PAIRS = 40_000
"""Known pairs that an attack learns from at most; twice as many took twice the time and gained 0.1 points of AUC."""
MAX_KNOWN_PAIRS_QUICK = 30_000
"""The same for the quick panel."""


@dataclass(frozen=True)
class Distance:
    """Predict a link where two rows are near; where they are far, if that has the higher AUC on the validation part.

    Args:
        measure: a key of `DISTANCES`.
        cost: relative run time.
        needs: what the attacker knows.
    """

    measure: str
    cost: float = 0.1
    needs: tuple[Need, ...] = ("z",)

    @property
    def name(self) -> str:
        """The name in tables and files."""
        return f"{self.measure} distance"

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:  # noqa: ARG002 - nothing is drawn
        """Attack the secret; see `Attack`."""

        def nearness(pairs: Pairs) -> Array:
            return np.concatenate([-DISTANCES[self.measure](z[u], z[v]) for u, v in blocks(pairs)])

        return by_row(oriented(nearness, secret), z, secret)


@dataclass(frozen=True)
class ClassifyPairs:
    """Fit a learner to the rows of the known pairs, and score the others by the log-odds of a link.

    Args:
        name: the name of the attack.
        learner: a function from the number of columns to the learner.
        cost: relative run time.
        views: functions from z to the rows of pairs; the best is chosen on the validation part.
        separate_matched: whether class-matched pairs have a model of their own, fitted to class-matched known pairs.
        max_known: known pairs to learn from at most; more are sampled.
        needs: what the attacker knows.
    """

    name: str
    learner: Callable[[int], Learner]
    cost: float
    views: Sequence[View]
    separate_matched: bool = True
    max_known: int = MAX_KNOWN_PAIRS
    needs: tuple[Need, ...] = ("z", "secrets")

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:
        """Attack the secret; see `Attack`."""
        answers = self._answers(z, secret, seed)
        on_rows_alone = "z" in self.needs and "known links" not in self.needs
        return by_row(answers, z, secret) if on_rows_alone else answers

    def _answers(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:
        views = [view(z) for view in self.views]
        score = self._fit(views, secret.known, secret.val, seed)
        val, test = score(secret.val.index), score(secret.test.index)
        if secret.matched is None:
            return Answers(val, test)
        if self.separate_matched:
            score = self._fit(views, secret.matched.known, secret.matched.val, seed)
        return Answers(val, test, score(secret.matched.val.index), score(secret.matched.test.index))

    def _fit(self, views: Sequence[PairRows], known: Queries, val: Queries, seed: int) -> Callable[[Pairs], Array]:
        """Fit a model; returns the function that scores pairs."""
        chosen = np.random.default_rng(seed).permutation(len(known.y))[: self.max_known]
        scaled, folds = [], []
        for rows in views:
            x = rows(known.index[:, chosen])
            standard = _Standardised(rows, x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6))
            scaled.append(standard)
            folds.append((Examples(standard.scale(x), known.y[chosen]), Examples(standard(val.index), val.y)))
        best, model = learn(self.learner(folds[0][0].x.shape[1]), folds, 2, seed)

        def score(pairs: Pairs) -> Array:
            log_p = np.concatenate([model.log_probabilities(scaled[best](part)) for part in blocks(pairs)])
            log_odds: Array = log_p[:, 1] - log_p[:, 0]
            return log_odds

        return score


@dataclass(frozen=True, eq=False)
class _Standardised:
    """The rows of pairs, standardised with the mean and the standard deviation of the known pairs."""

    rows: PairRows
    mean: Rows
    deviation: Rows

    def __call__(self, pairs: Pairs) -> Rows:
        return self.scale(self.rows(pairs))

    def scale(self, x: Rows) -> Rows:
        standard: Rows = (x - self.mean) / self.deviation
        return standard


@dataclass(frozen=True)
class LabelAgreement:
    """Score a pair by the probability that both nodes have the same class, as predicted from z.

    The attacker knows the classes of other nodes, and no link.

    Args:
        name: the name of the attack.
        cost: relative run time.
        needs: what the attacker knows.
    """

    name: str = "agreement of predicted labels"
    cost: float = 1.5
    needs: tuple[Need, ...] = ("z", "labels")

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:
        """Attack the secret; see `Attack`."""
        assert secret.labels is not None
        x = standardised(z)
        known, val = (Examples(x[part.index], part.y) for part in secret.labels)
        classes = int(max(known.y.max(), val.y.max())) + 1
        _, model = learn(classifiers.logistic_regression(), [(known, val)], classes, seed)
        p = np.exp(model.log_probabilities(x))
        return by_row(_answers(lambda pairs: (p[pairs[0]] * p[pairs[1]]).sum(axis=1), secret), z, secret)


@dataclass(frozen=True)
class CountPairs:
    """Score a pair by log( (links + s) / (non-links + s) ) of the known pairs with the same two distinct rows.

    The non-links are the known ones, or the number expected from how many nodes have each row. This and s are chosen on
    the validation part.

    Args:
        name: the name of the attack.
        cost: relative run time.
        needs: what the attacker knows.
        grid: values of s.
    """

    name: str = "table of distinct rows"
    cost: float = 0.05
    needs: tuple[Need, ...] = ("z", "secrets")
    grid: tuple[float, ...] = (0.5, 2.0, 8.0, 0.1)

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:  # noqa: ARG002 - nothing is drawn
        """Attack the secret; see `Attack`."""
        codes, _ = distinct_codes(z)
        answers, matched = self._scores(codes, secret.known, secret.val, secret.test), secret.matched
        more = () if matched is None else self._scores(codes, matched.known, matched.val, matched.test)
        return Answers(*answers, *more)

    def _scores(self, codes: Integers, known: Queries, val: Queries, test: Queries) -> tuple[Array, Array]:
        cells = [_unordered(codes, part.index) for part in (val, test)]
        links, nonlinks = (_unordered(codes, known.index[:, known.y == is_link]) for is_link in (1, 0))
        linked = [_occurrences(links, part) for part in cells]
        expected = nonlinks.shape[1] / (len(codes) * (len(codes) - 1) / 2)
        sizes = code_sizes(codes, int(codes.max()) + 1)
        bases = [
            [_occurrences(nonlinks, part) for part in cells],
            [expected * cell_pairs(part, sizes) for part in cells],
        ]
        scores = [
            [np.log(have + s) - np.log(lack + s) for have, lack in zip(linked, base, strict=True)]
            for base in bases
            for s in self.grid
        ]
        on_val, on_test = max(scores, key=lambda score: learners.area(score[0], val.y))
        return on_val, on_test


def oriented(score: Callable[[Pairs], Array], secret: LinkSecret) -> Answers:
    """A score of pairs as answers; its sign is changed if its AUC on the validation part is below 0.5."""

    def both(val: Queries, test: Queries) -> tuple[Array, Array]:
        on_val = score(val.index)
        sign = 1.0 if learners.area(on_val, val.y) >= 0.5 else -1.0
        return sign * on_val, sign * score(test.index)

    matched = secret.matched
    more = () if matched is None else both(matched.val, matched.test)
    return Answers(*both(secret.val, secret.test), *more)


def panel(secret: LinkSecret) -> list[Attack]:
    """All attacks on the links, the cheapest first."""
    attacks: list[Attack] = [Distance(measure) for measure in DISTANCES]
    if secret.labels is not None:
        attacks.append(LabelAgreement())
    return [
        *attacks,
        ClassifyPairs("bilinear", lambda _: networks.bilinear(), 5.0, (ends, whitened_ends)),
        ClassifyPairs("pair-MLP", lambda _: networks.mlp(), 6.0, (geometry,)),
        ClassifyPairs("boosted trees on pairs", lambda _: classifiers.trees(), 7.0, (geometry,)),
    ]


def on_encoders() -> list[Attack]:
    """The attacks on controls, of which only the strongest is reported."""
    return [
        *(Distance(measure) for measure in DISTANCES),
        ClassifyPairs("pair-MLP", lambda _: networks.mlp(), 6.0, (geometry,), separate_matched=False),
        ClassifyPairs(
            "boosted trees on pairs", lambda _: classifiers.trees(), 7.0, (geometry,), separate_matched=False
        ),
    ]


def quick() -> list[Attack]:
    """The quick panel, for sweeps: distances, a bilinear model and a network."""
    return [
        *(Distance(measure) for measure in DISTANCES),
        ClassifyPairs(
            "bilinear",
            lambda _: networks.bilinear(),
            3.0,
            (ends,),
            separate_matched=False,
            max_known=MAX_KNOWN_PAIRS_QUICK,
        ),
        ClassifyPairs(
            "pair-MLP",
            lambda _: networks.untuned_mlp(),
            6.0,
            (geometry,),
            separate_matched=False,
            max_known=MAX_KNOWN_PAIRS_QUICK,
        ),
    ]


def counting() -> list[Attack]:
    """The attack on an embedding with few distinct rows: counts of the known pairs by their two rows."""
    return [CountPairs()]


def with_features() -> list[Attack]:
    """The attacks on z and the features side by side."""
    needs: tuple[Need, ...] = ("z", "secrets", "features")
    return [
        ClassifyPairs(f"{name}{WITH_FEATURES}", learner, cost, (geometry,), separate_matched=False, needs=needs)
        for name, learner, cost in (
            ("pair-MLP", lambda _: networks.mlp(), 12.0),
            ("boosted trees on pairs", lambda _: classifiers.trees(), 14.0),
        )
    ]


def as_link_attacks(name: str, estimators: Sequence[Any]) -> list[Attack]:
    """scikit-learn classifiers as attacks, on the geometry of pairs.

    Args:
        name: the name of the attack.
        estimators: classifiers with `predict_proba`; the best is chosen on the validation part.
    """
    return [ClassifyPairs(f"{name} on pairs", lambda _: classifiers.Sklearn(estimators), 7.0, (geometry,))]


def _unordered(codes: Integers, pairs: Pairs) -> Pairs:
    """The two codes of each pair, the smaller one first, (2, n)."""
    return np.sort(codes[pairs], axis=0)


def _occurrences(cells: Pairs, queries: Pairs) -> Array:
    """How often each query occurs among `cells`, (n,); both are (2, n)."""
    width = max(cells.max(initial=0), queries.max(initial=0)) + 1
    numbers, counts = np.unique(cells[0] * width + cells[1], return_counts=True)
    wanted = queries[0] * width + queries[1]
    place = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    times: Array = np.where(numbers[place] == wanted, counts[place], 0).astype(np.float64)
    return times


def _answers(score: Callable[[Pairs], Array], secret: LinkSecret) -> Answers:
    val, test = score(secret.val.index), score(secret.test.index)
    if secret.matched is None:
        return Answers(val, test)
    return Answers(val, test, score(secret.matched.val.index), score(secret.matched.test.index))
