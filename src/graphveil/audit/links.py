"""The panel for link secrets: distances that need no training, and readers of pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from graphveil.audit import learners
from graphveil.audit.attacks import Answers, Attack, Need, standardised, whitened
from graphveil.audit.learners import Learner, Rows, Taught, learn
from graphveil.audit.metrics import Array, Integers
from graphveil.audit.secret import MAX_KNOWN, Asked, LinkSecret

Pairs = Integers
Described = Callable[[Pairs], Rows]
"""Rows of numbers about pairs."""
View = Callable[[Rows], Described]
AT_ONCE = 2**15
TINY = 1e-300
QUICK = 30_000
"""Known pairs that the quick panel learns from at most."""
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

        def folded(val: Asked, test: Asked) -> tuple[Array, Array]:
            on_val = nearness(val.index)
            sign = 1.0 if learners.area(on_val, val.y) >= 0.5 else -1.0
            return sign * on_val, sign * nearness(test.index)

        answers = folded(secret.val, secret.test)
        matched = secret.matched
        return Answers(*answers) if matched is None else Answers(*answers, *folded(matched.val, matched.test))


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
    at_most: int = 2 * MAX_KNOWN
    needs: tuple[Need, ...] = ("z", "secrets")

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:
        views = [view(z) for view in self.views]
        score = self._taught(views, secret.known, secret.val, seed)
        val, test = score(secret.val.index), score(secret.test.index)
        if secret.matched is None:
            return Answers(val, test)
        if self.twice:
            score = self._taught(views, secret.matched.known, secret.matched.val, seed)
        return Answers(val, test, score(secret.matched.val.index), score(secret.matched.test.index))

    def _taught(self, views: Sequence[Described], known: Asked, val: Asked, seed: int) -> Callable[[Pairs], Array]:
        return max((self._learned(rows, known, val, seed) for rows in views), key=lambda found: found[0])[1]

    def _learned(
        self, rows: Described, known: Asked, val: Asked, seed: int
    ) -> tuple[tuple[float, float], Callable[[Pairs], Array]]:
        """How good, and how pairs are scored."""
        chosen = np.random.default_rng(seed).permutation(len(known.y))[: self.at_most]
        x, y = rows(known.index[:, chosen]), known.y[chosen]
        mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6)
        held_out = Taught((rows(val.index) - mean) / scale, val.y)
        model = learn(self.learner(x.shape[1]), Taught((x - mean) / scale, y), 2, seed, held_out=held_out)

        def score(pairs: Pairs) -> Array:
            parts = [model.log_probabilities((rows(part) - mean) / scale) for part in _in_parts(pairs)]
            answers = np.concatenate(parts)
            return answers[:, 1] - answers[:, 0]

        return model.quality, score


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
        model = learn(learners.logistic_regression(), known, classes, seed, held_out=val)
        share = np.exp(model.log_probabilities(x))
        return _answers(lambda pairs: (share[pairs[0]] * share[pairs[1]]).sum(axis=1), secret)


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


def quick() -> list[Attack]:
    """For sweeps: distances, a bilinear and a bent reader."""
    return [
        *(Distance(measure) for measure in DISTANCES),
        ClassifyPairs("bilinear", lambda _: learners.bilinear(), 3.0, (ends,), twice=False, at_most=QUICK),
        ClassifyPairs("pair-MLP", lambda _: learners.one_mlp(), 6.0, (geometry,), twice=False, at_most=QUICK),
    ]


def as_link_attacks(name: str, estimators: Sequence[Any]) -> list[Attack]:
    """Any scikit-learn classifiers, tuned over, on the geometry of pairs."""
    return [ClassifyPairs(f"{name} on pairs", lambda _: learners.Sklearn(estimators), 7.0, (geometry,))]


def _beside(x: Rows) -> Described:
    return lambda pairs: np.concatenate([x[pairs[0]], x[pairs[1]]], axis=1)


def _answers(score: Callable[[Pairs], Array], secret: LinkSecret) -> Answers:
    val, test = score(secret.val.index), score(secret.test.index)
    if secret.matched is None:
        return Answers(val, test)
    return Answers(val, test, score(secret.matched.val.index), score(secret.matched.test.index))


def _in_parts(pairs: Pairs) -> list[Pairs]:
    return [pairs[:, start : start + AT_ONCE] for start in range(0, pairs.shape[1], AT_ONCE)]
