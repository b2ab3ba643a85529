"""The panel for link secrets: distances that need no training, and readers of pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from graphveil.auditing import learners
from graphveil.auditing.attacks import WITH_FEATURES, Answers, Attack, Need, by_row, standardised, whitened
from graphveil.auditing.learners import Learner, Rows, Taught, learn
from graphveil.auditing.metrics import Array, Integers
from graphveil.auditing.secret import LinkSecret, Queries
from graphveil.codes import distinct_codes
from graphveil.codes.tables import cell_pairs, code_sizes

Pairs = Integers
Described = Callable[[Pairs], Rows]
"""Rows of numbers about pairs."""
View = Callable[[Rows], Described]
AT_ONCE = 2**15
TINY = 1e-300
LEARNED = 40_000
"""Known pairs that an attack learns from at most; with twice as many it took twice as long and read 0.1 points more."""
QUICK = 30_000
"""The same of the quick panel."""
WIDE = 128
"""Columns of z beyond which pairs are described by as many main directions of it, the distances by all."""


def _centred(a: Rows) -> Rows:
    centred: Rows = a - a.mean(axis=1, keepdims=True)
    return centred


def _length(a: Rows) -> Array:
    """In float64, where the square of a small number is not 0 and of a large one not infinite."""
    length: Array = np.linalg.norm(a.astype(np.float64), axis=1)
    return length


def _cosine(a: Rows, b: Rows) -> Array:
    product = (a.astype(np.float64) * b).sum(axis=1)
    distance: Array = 1 - product / np.maximum(_length(a) * _length(b), TINY)
    return distance


def _share(part: Rows, whole: Rows) -> Array:
    return part.astype(np.float64) / np.maximum(whole, TINY, dtype=np.float64)


DISTANCES: dict[str, Callable[[Rows, Rows], Array]] = {
    "cosine": _cosine,
    "correlation": lambda a, b: _cosine(_centred(a), _centred(b)),
    "Euclidean": lambda a, b: _length(a - b),
    "city block": lambda a, b: np.abs(a - b).sum(axis=1, dtype=np.float64),
    "Chebyshev": lambda a, b: np.abs(a - b).max(axis=1).astype(np.float64),
    "Bray-Curtis": lambda a, b: _share(np.abs(a - b).sum(axis=1), np.abs(a + b).sum(axis=1)),
    "Canberra": lambda a, b: _share(np.abs(a - b), np.abs(a) + np.abs(b)).sum(axis=1),
    "inner product": lambda a, b: -(a.astype(np.float64) * b).sum(axis=1),
}


@dataclass(frozen=True)
class Distance:
    """Linked nodes are near, or, if the validation part says so, far: the AUC is folded there and not on the test."""

    measure: str
    cost: float = 0.1
    needs: tuple[Need, ...] = ("z",)

    @property
    def name(self) -> str:
        """As it stands in the table."""
        return f"{self.measure} distance"

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:  # noqa: ARG002 - nothing is drawn
        def nearness(pairs: Pairs) -> Array:
            return np.concatenate([-DISTANCES[self.measure](z[u], z[v]) for u, v in _in_parts(pairs)])

        return by_row(folded(nearness, secret), z, secret)


@dataclass(frozen=True)
class ClassifyPairs:
    """Teach a learner the known pairs, and let it answer for the others.

    Args:
        views: of pairs; the better one is taken.
        twice: class-matched pairs have a model of their own, that learned from such pairs.
        at_most: known pairs to learn from, drawn at random.
    """

    name: str
    learner: Callable[[int], Learner]
    cost: float
    views: Sequence[View]
    twice: bool = True
    at_most: int = LEARNED
    needs: tuple[Need, ...] = ("z", "secrets")

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:
        answers = self._answers(z, secret, seed)
        on_rows_alone = "z" in self.needs and "known links" not in self.needs
        return by_row(answers, z, secret) if on_rows_alone else answers

    def _answers(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:
        views = [view(z) for view in self.views]
        score = self._taught(views, secret.known, secret.val, seed)
        val, test = score(secret.val.index), score(secret.test.index)
        if secret.matched is None:
            return Answers(val, test)
        if self.twice:
            score = self._taught(views, secret.matched.known, secret.matched.val, seed)
        return Answers(val, test, score(secret.matched.val.index), score(secret.matched.test.index))

    def _taught(self, views: Sequence[Described], known: Queries, val: Queries, seed: int) -> Callable[[Pairs], Array]:
        """How pairs are scored."""
        chosen = np.random.default_rng(seed).permutation(len(known.y))[: self.at_most]
        scaled, folds = [], []
        for rows in views:
            x = rows(known.index[:, chosen])
            even = _Standardised(rows, x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6))
            scaled.append(even)
            folds.append((Taught(even.of(x), known.y[chosen]), Taught(even(val.index), val.y)))
        best, model = learn(self.learner(folds[0][0].x.shape[1]), folds, 2, seed)

        def score(pairs: Pairs) -> Array:
            log_p = np.concatenate([model.log_probabilities(scaled[best](part)) for part in _in_parts(pairs)])
            log_odds: Array = log_p[:, 1] - log_p[:, 0]
            return log_odds

        return score


@dataclass(frozen=True, eq=False)
class _Standardised:
    """Rows about pairs, each column less its mean and divided by its deviation among the known pairs."""

    rows: Described
    mean: Rows
    deviation: Rows

    def __call__(self, pairs: Pairs) -> Rows:
        return self.of(self.rows(pairs))

    def of(self, x: Rows) -> Rows:
        even: Rows = (x - self.mean) / self.deviation
        return even


@dataclass(frozen=True)
class LabelAgreement:
    """Do two nodes' classes, predicted from z, agree? Needs classes of other nodes, and no link at all."""

    name: str = "agreement of predicted labels"
    cost: float = 1.5
    needs: tuple[Need, ...] = ("z", "labels")

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:
        assert secret.labels is not None
        x = standardised(z)
        known, val = (Taught(x[part.index], part.y) for part in secret.labels)
        classes = int(max(known.y.max(), val.y.max())) + 1
        _, model = learn(learners.logistic_regression(), [(known, val)], classes, seed)
        share = np.exp(model.log_probabilities(x))
        return by_row(_answers(lambda pairs: (share[pairs[0]] * share[pairs[1]]).sum(axis=1), secret), z, secret)


@dataclass(frozen=True)
class CountPairs:
    """Score a pair by log( (links + s) / (non-links + s) ) of the known pairs with the same two distinct rows.

    The non-links are counted among the known ones, or expected from how many nodes have each row; that, and s, is
    chosen on the validation part.
    """

    name: str = "table of distinct rows"
    cost: float = 0.05
    needs: tuple[Need, ...] = ("z", "secrets")
    grid: tuple[float, ...] = (0.5, 2.0, 8.0, 0.1)

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:  # noqa: ARG002 - nothing is drawn
        codes, _ = distinct_codes(z)
        answers, matched = self._counted(codes, secret.known, secret.val, secret.test), secret.matched
        more = () if matched is None else self._counted(codes, matched.known, matched.val, matched.test)
        return Answers(*answers, *more)

    def _counted(self, codes: Integers, known: Queries, val: Queries, test: Queries) -> tuple[Array, Array]:
        cells = [_unordered(codes, part.index) for part in (val, test)]
        links, nonlinks = (_unordered(codes, known.index[:, known.y == linked]) for linked in (1, 0))
        found = [_times(links, part) for part in cells]
        expected = nonlinks.shape[1] / (len(codes) * (len(codes) - 1) / 2)
        sizes = code_sizes(codes, int(codes.max()) + 1)
        bases = [[_times(nonlinks, part) for part in cells], [expected * cell_pairs(part, sizes) for part in cells]]
        scores = [
            [np.log(have + s) - np.log(lack + s) for have, lack in zip(found, base, strict=True)]
            for base in bases
            for s in self.grid
        ]
        on_val, on_test = max(scores, key=lambda score: learners.area(score[0], val.y))
        return on_val, on_test


def folded(score: Callable[[Pairs], Array], secret: LinkSecret) -> Answers:
    """A score of pairs, or minus it where the validation part says so."""

    def both(val: Queries, test: Queries) -> tuple[Array, Array]:
        on_val = score(val.index)
        sign = 1.0 if learners.area(on_val, val.y) >= 0.5 else -1.0
        return sign * on_val, sign * score(test.index)

    matched = secret.matched
    more = () if matched is None else both(matched.val, matched.test)
    return Answers(*both(secret.val, secret.test), *more)


def ends(z: Rows) -> Described:
    """Both ends beside each other."""
    return _beside(standardised(z))


def whitened_ends(z: Rows) -> Described:
    """The same of z whitened."""
    return _beside(whitened(z))


def geometry(z: Rows) -> Described:
    """|a - b|, a * b, a + b and the distances, of z as it is and whitened too; which end is first does not matter."""
    even, white = standardised(z), whitened(z)
    narrow = z.shape[1] <= WIDE
    main = even if narrow else standardised(PCA(WIDE, random_state=0).fit_transform(even))

    def rows(pairs: Pairs) -> Rows:
        a, b = main[pairs[0]], main[pairs[1]]
        columns = [np.abs(a - b), a * b, a + b]
        if narrow:  # else the main directions are whitened already
            a, b = white[pairs[0]], white[pairs[1]]
            columns += [np.abs(a - b), a * b]
        for each in (even, white, z):
            columns += [measure(each[pairs[0]], each[pairs[1]])[:, None] for measure in DISTANCES.values()]
        return np.concatenate(columns, axis=1, dtype=np.float32)

    return lambda pairs: np.concatenate([rows(part) for part in _in_parts(pairs)])


def panel(secret: LinkSecret) -> list[Attack]:
    """All attacks on the links, the cheapest first."""
    found: list[Attack] = [Distance(measure) for measure in DISTANCES]
    if secret.labels is not None:
        found.append(LabelAgreement())
    return [
        *found,
        ClassifyPairs("bilinear", lambda _: learners.bilinear(), 5.0, (ends, whitened_ends)),
        ClassifyPairs("pair-MLP", lambda _: learners.mlp(), 6.0, (geometry,)),
        ClassifyPairs("boosted trees on pairs", lambda _: learners.trees(), 7.0, (geometry,)),
    ]


def on_encoders() -> list[Attack]:
    """For encoders and features beside which the embeddings are seen, whose strongest attack is all that matters."""
    return [
        *(Distance(measure) for measure in DISTANCES),
        ClassifyPairs("pair-MLP", lambda _: learners.mlp(), 6.0, (geometry,), twice=False),
        ClassifyPairs("boosted trees on pairs", lambda _: learners.trees(), 7.0, (geometry,), twice=False),
    ]


def quick() -> list[Attack]:
    """For sweeps: distances, a bilinear and a bent reader."""
    return [
        *(Distance(measure) for measure in DISTANCES),
        ClassifyPairs("bilinear", lambda _: learners.bilinear(), 3.0, (ends,), twice=False, at_most=QUICK),
        ClassifyPairs("pair-MLP", lambda _: learners.one_mlp(), 6.0, (geometry,), twice=False, at_most=QUICK),
    ]


def counting() -> list[Attack]:
    """For an embedding with few distinct rows: read the links off a table of known pairs by their two rows."""
    return [CountPairs()]


def with_features() -> list[Attack]:
    """Attackers who hold z and the features, for rows that are both beside each other."""
    needs: tuple[Need, ...] = ("z", "secrets", "features")
    return [
        ClassifyPairs(f"{name}{WITH_FEATURES}", learner, cost, (geometry,), twice=False, needs=needs)
        for name, learner, cost in (
            ("pair-MLP", lambda _: learners.mlp(), 12.0),
            ("boosted trees on pairs", lambda _: learners.trees(), 14.0),
        )
    ]


def as_link_attacks(name: str, estimators: Sequence[Any]) -> list[Attack]:
    """Any scikit-learn classifiers, tuned over, on the geometry of pairs."""
    return [ClassifyPairs(f"{name} on pairs", lambda _: learners.Sklearn(estimators), 7.0, (geometry,))]


def _beside(x: Rows) -> Described:
    return lambda pairs: np.concatenate([x[pairs[0]], x[pairs[1]]], axis=1)


def _unordered(codes: Integers, pairs: Pairs) -> Pairs:
    """The two codes of each pair, the smaller one first, (2, n)."""
    return np.sort(codes[pairs], axis=0)


def _times(cells: Pairs, asked: Pairs) -> Array:
    """How often each of the asked cells is among `cells`, both (2, n)."""
    width = max(cells.max(initial=0), asked.max(initial=0)) + 1
    numbers, counts = np.unique(cells[0] * width + cells[1], return_counts=True)
    wanted = asked[0] * width + asked[1]
    place = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    times: Array = np.where(numbers[place] == wanted, counts[place], 0).astype(np.float64)
    return times


def _answers(score: Callable[[Pairs], Array], secret: LinkSecret) -> Answers:
    val, test = score(secret.val.index), score(secret.test.index)
    if secret.matched is None:
        return Answers(val, test)
    return Answers(val, test, score(secret.matched.val.index), score(secret.matched.test.index))


def _in_parts(pairs: Pairs) -> list[Pairs]:
    return [pairs[:, start : start + AT_ONCE] for start in range(0, pairs.shape[1], AT_ONCE)]
