"""The panel for link secrets: distances that need no training, and readers of pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.audit import learners
from graphveil.audit.attacks import Answers, Attack, Need, standardised
from graphveil.audit.learners import Learner, Rows, Taught, learn
from graphveil.audit.metrics import Array, Integers
from graphveil.audit.secret import LinkSecret

Pairs = Integers
AT_ONCE = 2**16
TINY = 1e-12


def _centred(a: Rows) -> Rows:
    centred: Rows = a - a.mean(axis=1, keepdims=True)
    return centred


def _cosine(a: Rows, b: Rows) -> Array:
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    distance: Array = 1 - (a * b).sum(axis=1) / np.maximum(norms, TINY)
    return distance


DISTANCES: dict[str, Callable[[Rows, Rows], Array]] = {
    "cosine": _cosine,
    "correlation": lambda a, b: _cosine(_centred(a), _centred(b)),
    "Euclidean": lambda a, b: np.linalg.norm(a - b, axis=1),
    "city block": lambda a, b: np.abs(a - b).sum(axis=1),
    "Chebyshev": lambda a, b: np.abs(a - b).max(axis=1),
    "Bray-Curtis": lambda a, b: np.abs(a - b).sum(axis=1) / np.maximum(np.abs(a + b).sum(axis=1), TINY),
    "Canberra": lambda a, b: (np.abs(a - b) / np.maximum(np.abs(a) + np.abs(b), TINY)).sum(axis=1),
    "inner product": lambda a, b: -(a * b).sum(axis=1),
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
            return np.concatenate(
                [-DISTANCES[self.measure](z[u], z[v]) for u, v in _in_parts(pairs)] or [np.empty(0)]
            ).astype(np.float64)

        val = nearness(secret.val.index)
        sign = 1.0 if learners.area(val, secret.val.y) >= 0.5 else -1.0
        return _answers(lambda pairs: sign * nearness(pairs), secret)


@dataclass(frozen=True)
class ClassifyPairs:
    """Teach a learner the known pairs, and let it answer for the others."""

    name: str
    learner: Callable[[int], Learner]
    cost: float
    view: Callable[[Rows, Pairs], Rows]
    needs: tuple[Need, ...] = ("z", "secrets")

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:
        known = self.view(z, secret.known.index)
        mean, scale = known.mean(axis=0), np.maximum(known.std(axis=0), 1e-6)
        taught, val = (Taught((self.view(z, part.index) - mean) / scale, part.y) for part in (secret.known, secret.val))
        model = learn(self.learner(known.shape[1]), taught, 2, seed, held_out=val)

        def score(pairs: Pairs) -> Array:
            parts = [model.log_probabilities((self.view(z, part) - mean) / scale) for part in _in_parts(pairs)]
            answers = np.concatenate(parts)
            return answers[:, 1] - answers[:, 0]

        return _answers(score, secret)


@dataclass(frozen=True)
class LabelAgreement:
    """Do two nodes' classes, predicted from z, agree? Needs labels of nodes, and no link at all."""

    name: str = "agreement of predicted labels"
    cost: float = 2.0
    needs: tuple[Need, ...] = ("z", "secrets")

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:
        assert secret.labels is not None
        x, known = standardised(z), secret.labels
        classes = int(known.y.max()) + 1
        model = learn(learners.logistic_regression(), Taught(x[known.index], known.y), classes, seed)
        share = np.exp(model.log_probabilities(x))
        return _answers(lambda pairs: (share[pairs[0]] * share[pairs[1]]).sum(axis=1), secret)


def ends(z: Rows, pairs: Pairs) -> Rows:
    """Both ends beside each other."""
    z = standardised(z)
    return np.concatenate([z[pairs[0]], z[pairs[1]]], axis=1)


def geometry(z: Rows, pairs: Pairs) -> Rows:
    """|a - b|, a * b, a + b and the distances, of z as it is too; which end comes first does not matter."""
    even = standardised(z)
    a, b = even[pairs[0]], even[pairs[1]]
    columns = [np.abs(a - b), a * b, a + b]
    for ends_of_pairs in ((a, b), (z[pairs[0]], z[pairs[1]])):
        columns += [measure(*ends_of_pairs)[:, None] for measure in DISTANCES.values()]
    return np.concatenate(columns, axis=1, dtype=np.float32)


def panel(secret: LinkSecret) -> list[Attack]:
    """All attacks on the links, the cheapest first."""
    found: list[Attack] = [Distance(measure) for measure in DISTANCES]
    if secret.labels is not None:
        found.append(LabelAgreement())
    return [
        *found,
        ClassifyPairs("bilinear", lambda _: learners.bilinear(), 3.0, ends),
        ClassifyPairs("pair-MLP", lambda _: learners.mlp(), 5.0, geometry),
        ClassifyPairs("boosted trees on pairs", lambda _: learners.trees(), 6.0, geometry),
    ]


def quick() -> list[Attack]:
    """For sweeps: distances, a bilinear and a bent reader."""
    one = learners.mlp().grid[:1]
    return [
        *(Distance(measure) for measure in DISTANCES),
        ClassifyPairs("bilinear", lambda _: learners.bilinear(), 3.0, ends),
        ClassifyPairs("pair-MLP", lambda _: learners.Network(learners._mlp, one), 5.0, geometry),
    ]


def as_link_attacks(name: str, estimators: Sequence[Any]) -> list[Attack]:
    """Any scikit-learn classifiers, tuned over, on the geometry of pairs."""
    return [ClassifyPairs(f"{name} on pairs", lambda _: learners.Sklearn(estimators), 6.0, geometry)]


def _answers(score: Callable[[Pairs], Array], secret: LinkSecret) -> Answers:
    matched = (None if part is None else score(part.index) for part in (secret.matched_val, secret.matched_test))
    return Answers(score(secret.val.index), score(secret.test.index), *matched)


def _in_parts(pairs: Pairs) -> list[Pairs]:
    return [pairs[:, start : start + AT_ONCE] for start in range(0, pairs.shape[1], AT_ONCE)]
