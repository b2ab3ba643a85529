"""What an attack is: it looks at embeddings, uses what it knows, and answers what it is asked.

Anything with these attributes and this call is an attack; `as_node_attacks` and `as_link_attacks`, beside the panels,
make some of any scikit-learn classifier.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graphveil.auditing.learners import Rows
from graphveil.auditing.metrics import Array, Integers
from graphveil.auditing.secret import LinkSecret, Secret
from graphveil.codes import distinct_codes
from graphveil.codes.tables import link_cells
from graphveil.errors import GraphveilError

WIDEST = 2048
"""Columns beyond which z is not whitened: that would take minutes."""
FAINT, SMALLEST = 1e-6, 1e-13
"""How far z varies in a direction, beside the one in which it varies most: below the first nobody looks, and below the
second float64 rounds."""
Need = Literal["z", "secrets", "few secrets", "labels", "graph", "features", "known links"]
"""The embeddings; the secrets of other nodes or pairs; those of 20 nodes a class; the labels of other nodes; all links
of the public graph; the features of all nodes; of a link secret the graph of the known links, beside z."""
BEYOND_Z: frozenset[Need] = frozenset({"graph", "features", "known links"})
"""What an attacker does not hold who sees z alone."""
WITH_FEATURES = ", with features"
"""How the name of an attack ends that sees z and the features; without it, it is the name of the same attack on one."""
WITH_LINKS = ", with known links"
"""The same for z and the graph of the known links."""
KNOWN_LINKS = "known links"
"""The control of a link secret for attackers who hold the known links and no z."""
CLASSES_AND_LINKS = "true classes and known links"
"""The control of a link secret in which the true classes replace z, for attackers who hold the known links."""
CLASSES_AND_FEATURES = "true classes and features"
"""The control of a link secret in which the true classes replace z, for attackers who hold the features."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Class log-probabilities (n, classes) for a node secret, or a score (n,) a pair, higher for a link.

    `matched_val` and `matched_test` answer the class-matched pairs of a link secret.
    """

    val: Array
    test: Array
    matched_val: Array | None = None
    matched_test: Array | None = None


class Attack(Protocol):
    """One way to read a secret from embeddings."""

    @property
    def name(self) -> str:
        """As it stands in the table."""

    @property
    def needs(self) -> tuple[Need, ...]:
        """What it must know."""

    @property
    def cost(self) -> float:
        """How long it takes beside the others: under a time budget the cheap ones come first."""

    def __call__(self, z: Rows, secret: Any, seed: int) -> Answers:
        """Learn from what is known, and answer what is asked.

        Args:
            z: embeddings, (num_nodes, channels).
            secret: a `NodeSecret` or a `LinkSecret`.
        """


def standardised(x: NDArray[Any]) -> Rows:
    """Columns of mean 0 and deviation 1; a column that never changes becomes 0."""
    rows: Rows = _standardised(x).astype(np.float32)
    return rows


def scaled(x: NDArray[Any]) -> Rows:
    """Columns of mean 0 and all together of deviation 1: how far one varies beside another is kept."""
    x = x - x.mean(axis=0, dtype=np.float64)
    rows: Rows = (x / max(float(x.std()), 1e-300)).astype(np.float32)
    return rows


def whitened(x: NDArray[Any]) -> Rows:
    """Directions that do not go together, each of deviation 1, however little z varies in it; the largest last.

    A secret may live in one that all columns share and in which none varies much: whoever hides it by training looks
    there last. What varies less than a millionth of the most is rounding, or hidden on purpose: see `faint`.
    """
    rows, spread = directions(x)
    return rows[:, spread >= FAINT]


def directions(x: NDArray[Any]) -> tuple[Rows, Array]:
    """The uncorrelated directions of x, each of deviation 1, and how far x varies in each; the largest is 1, the last.

    By singular values in float64, down to what that can hold. Of very many columns only these themselves, all as 1.
    """
    even = _standardised(x)
    if even.shape[1] > WIDEST or not even.any():
        return even.astype(np.float32), np.ones(even.shape[1])
    _, spread, axes = np.linalg.svd(np.linalg.qr(even, mode="r"), full_matrices=False)
    spread, axes = spread[::-1] / np.sqrt(len(even)), axes[::-1]
    kept = spread > SMALLEST * spread[-1]
    rows = even @ (axes[kept].T / spread[kept])
    return rows.astype(np.float32), spread[kept] / spread[-1]


def _standardised(x: NDArray[Any]) -> Array:
    """Each column is scaled by itself first: beside a huge one, the squares of another would be 0."""
    x = x.astype(np.float64)
    x = np.ldexp(x, -np.frexp(np.abs(x).max(axis=0, initial=0))[1])
    deviation = x.std(axis=0)
    scale = np.where(deviation > 1e-15 * np.maximum(np.abs(x).max(axis=0, initial=0), 1e-300), deviation, np.inf)
    even: Array = (x - x.mean(axis=0)) / scale
    return even


def by_row(answers: Answers, rows: Rows, secret: Secret) -> Answers:
    """Give examples with equal rows equal answers: the mean of theirs.

    An attack that sees only these rows cannot tell such examples apart. Where its answers differ all the same, because
    it chose among equally near neighbours or because of rounding, the difference is chance.

    Args:
        rows: what the attack saw, (num_nodes, columns).
    """
    parts = {"val": secret.val.index, "test": secret.test.index}
    if isinstance(secret, LinkSecret) and secret.matched is not None:
        parts |= {"matched_val": secret.matched.val.index, "matched_test": secret.matched.test.index}
    means = {
        name: _cell_means(values, _cells(rows, index))
        for name, index in parts.items()
        if (values := getattr(answers, name)) is not None
    }
    return replace(answers, **means)


def _cells(rows: Rows, index: Integers) -> Integers:
    """A number for each example, equal where the rows are; of pairs, in whatever order their ends are."""
    nodes, place = np.unique(index, return_inverse=True)
    codes, _ = distinct_codes(rows[nodes])
    place = place.reshape(index.shape)
    return codes[place] if index.ndim == 1 else link_cells(codes, place)[1]


def _cell_means(values: Array, cells: Integers) -> Array:
    size = np.bincount(cells)
    if len(size) == len(values):
        return values
    total = np.zeros((len(size), *values.shape[1:]))
    np.add.at(total, cells, values)
    means: Array = (total.T / size).T[cells]
    return means


def check_answers(answers: Answers, attack: Attack, secret: Secret) -> Answers:
    """Refuse what an attack of somebody's own gives in another shape, or not finite."""
    parts = {"val": secret.val, "test": secret.test}
    if isinstance(secret, LinkSecret) and secret.matched is not None and answers.matched_test is not None:
        parts |= {"matched_val": secret.matched.val, "matched_test": secret.matched.test}
    for name, asked in parts.items():
        came = np.asarray(getattr(answers, name))
        expected = (len(asked.y),) if secret.name == "links" else (len(asked.y), secret.num_classes)
        if came.shape != expected or came.dtype.kind != "f" or not np.isfinite(came).all():
            raise GraphveilError(
                f"attack {attack.name!r} answered {name} with {came.dtype} of shape {came.shape}:"
                f" expected finite numbers of shape {expected}."
            )
    return answers
