"""The interface of an attack, and the scalings of embeddings that attacks share.

An attack sees embeddings, learns from known secrets and answers queries. Any object with the attributes and the call of
`Attack` is an attack. `nodes.as_node_attacks` and `links.as_link_attacks` make attacks from scikit-learn classifiers.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graphveil.auditing.learners import Rows
from graphveil.auditing.metrics import Array, Integers
from graphveil.auditing.secret import LinkSecret, NodeSecret, Secret
from graphveil.codes import distinct_codes
from graphveil.codes.tables import link_cells
from graphveil.errors import GraphveilError

MAX_WHITENED_COLUMNS = 2048
"""Embeddings with more columns are not whitened, because it would take minutes."""
FAINT = 1e-6
"""Directions with a smaller spread, relative to the largest, are searched for hidden channels only."""
ROUNDING = 1e-13
"""Directions with a smaller relative spread are rounding errors of float64."""
Need = Literal["z", "secrets", "few secrets", "labels", "graph", "features", "known links"]
"""What an attacker knows:

- "z": the embeddings of all nodes.
- "secrets": the known secrets of other nodes or pairs.
- "few secrets": 20 known secrets per class.
- "labels": the labels of other nodes.
- "graph": all links of the public graph.
- "features": the features of all nodes.
- "known links": the graph of the known links, for a link secret.
"""
BEYOND_Z: frozenset[Need] = frozenset({"graph", "features", "known links"})
"""What an attacker on z alone does not hold."""
WITH_FEATURES = ", with features"
"""Suffix of the name of an attack on z and the features; without it, the name of the same attack on one of them."""
WITH_LINKS = ", with known links"
"""The same suffix for z and the graph of the known links."""
UNPROTECTED = "unprotected encoder"
"""The control that is the end of the scale of a leak: the same encoder, trained for the utility alone."""
KNOWN_LINKS = "known links"
"""The control of a link secret for attackers who hold the known links and no embedding."""
CLASSES_AND_LINKS = "true classes and known links"
"""The control of a link secret that replaces z by the true classes, for attackers who hold the known links."""
CLASSES_AND_FEATURES = "true classes and features"
"""The control of a link secret that replaces z by the true classes, for attackers who hold the features."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What an attack answers to queries.

    Nodes are answered with log-probabilities, (n, classes). Pairs are answered with scores, (n,), higher for links.

    Args:
        val: the answers for the validation part.
        test: the answers for the test part.
        matched_val: the answers for the class-matched validation pairs of a link secret.
        matched_test: the answers for its class-matched test pairs.
    """

    val: Array
    test: Array
    matched_val: Array | None = None
    matched_test: Array | None = None


class Attack(Protocol):
    """A method that predicts a secret from embeddings."""

    @property
    def name(self) -> str:
        """The name in tables and files."""

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the attacker must know."""

    @property
    def cost(self) -> float:
        """Relative run time. With a time budget, cheap attacks run first."""

    def __call__(self, z: Rows, secret: Any, seed: int) -> Answers:
        """Learn from the known secrets, and answer the queries.

        Args:
            z: embeddings, (num_nodes, channels).
            secret: a `NodeSecret` or a `LinkSecret`.
            seed: the seed of everything that is drawn.
        """


def standardised(x: NDArray[Any]) -> Rows:
    """Scale each column to mean 0 and standard deviation 1; a constant column becomes 0."""
    rows: Rows = _standardised(x).astype(np.float32)
    return rows


def scaled(x: NDArray[Any]) -> Rows:
    """Centre each column, and scale all columns by one factor to a joint standard deviation of 1.

    The relative spread of the columns is kept.
    """
    x = x - x.mean(axis=0, dtype=np.float64)
    rows: Rows = (x / max(float(x.std()), 1e-300)).astype(np.float32)
    return rows


def whitened(x: NDArray[Any]) -> Rows:
    """Uncorrelated directions of x, each of standard deviation 1, in ascending order of their spread in x.

    A secret can be in a direction with a small spread, where training by gradients removes it last. Directions with a
    relative spread below `FAINT` are left out; see `hidden_channels`.
    """
    rows, spread = directions(x)
    return rows[:, spread >= FAINT]


def directions(x: NDArray[Any]) -> tuple[Rows, Array]:
    """The uncorrelated directions of x by a singular value decomposition in float64, in ascending order of spread.

    Args:
        x: (n, columns). More than `MAX_WHITENED_COLUMNS` columns are standardised only, with a spread of 1 each.

    Returns:
        The rows in these directions, (n, directions), each of standard deviation 1, and the spread of x in each
        direction relative to the largest, (directions,).
    """
    even = _standardised(x)
    if even.shape[1] > MAX_WHITENED_COLUMNS or not even.any():
        return even.astype(np.float32), np.ones(even.shape[1])
    _, spread, axes = np.linalg.svd(np.linalg.qr(even, mode="r"), full_matrices=False)
    spread, axes = spread[::-1] / np.sqrt(len(even)), axes[::-1]
    kept = spread > ROUNDING * spread[-1]
    rows = even @ (axes[kept].T / spread[kept])
    return rows.astype(np.float32), spread[kept] / spread[-1]


def _standardised(x: NDArray[Any]) -> Array:
    """Scale each column by a power of two first, so that squares neither overflow nor vanish."""
    x = x.astype(np.float64)
    x = np.ldexp(x, -np.frexp(np.abs(x).max(axis=0, initial=0))[1])
    deviation = x.std(axis=0)
    scale = np.where(deviation > 1e-15 * np.maximum(np.abs(x).max(axis=0, initial=0), 1e-300), deviation, np.inf)
    even: Array = (x - x.mean(axis=0)) / scale
    return even


def by_row(answers: Answers, rows: Rows, secret: Secret) -> Answers:
    """Give examples with equal rows equal answers: the mean of their answers.

    An attack that sees only these rows cannot distinguish such examples. If its answers differ, because of ties between
    nearest neighbours or because of rounding, the difference is random. The mean is over one fold of the validation
    part: the models of the other folds learned from the examples of this one.

    Args:
        answers: the answers of the attack.
        rows: the rows that the attack saw, (num_nodes, columns).
        secret: the secret that was attacked.
    """
    if isinstance(secret, NodeSecret):
        folds = [held_out.index for _, held_out in secret.held_out]
        ends = np.cumsum([len(fold) for fold in folds])[:-1]
        parts = zip(np.split(answers.val, ends), folds, strict=True)
        on_val = np.concatenate([_cell_means(values, _cells(rows, fold)) for values, fold in parts])
        return Answers(on_val, _cell_means(answers.test, _cells(rows, secret.test.index)))
    queries = {"val": secret.val.index, "test": secret.test.index}
    if secret.matched is not None:
        queries |= {"matched_val": secret.matched.val.index, "matched_test": secret.matched.test.index}
    means = {
        name: _cell_means(values, _cells(rows, index))
        for name, index in queries.items()
        if (values := getattr(answers, name)) is not None
    }
    return replace(answers, **means)


def _cells(rows: Rows, index: Integers) -> Integers:
    """The cell of each example: equal for nodes with equal rows, and for pairs with equal rows in either order."""
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
    """Raise an error if the answers of an attack have the wrong shape or type, or are not finite."""
    parts = {"val": secret.val, "test": secret.test}
    if isinstance(secret, LinkSecret) and secret.matched is not None and answers.matched_test is not None:
        parts |= {"matched_val": secret.matched.val, "matched_test": secret.matched.test}
    for name, queries in parts.items():
        given = np.asarray(getattr(answers, name))
        expected = (len(queries.y),) if secret.target.is_links else (len(queries.y), secret.num_classes)
        if given.shape != expected or given.dtype.kind != "f" or not np.isfinite(given).all():
            raise GraphveilError(
                f"attack {attack.name!r} returned {given.dtype} of shape {given.shape} as {name}:"
                f" expected finite numbers of shape {expected}."
            )
    return answers
