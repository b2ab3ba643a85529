"""Pairs of nodes: distances between two rows, and rows of numbers that describe a pair."""

from collections.abc import Callable

import numpy as np
from sklearn.decomposition import PCA

from graphveil.auditing.attacks import standardised, whitened
from graphveil.auditing.learners import Rows
from graphveil.auditing.metrics import Array, Integers

Pairs = Integers
"""Pairs of nodes, (2, n)."""
PairRows = Callable[[Pairs], Rows]
"""From pairs, (2, n), to one row for each of them, (n, columns)."""
View = Callable[[Rows], PairRows]
"""From embeddings, (num_nodes, channels), to the rows of pairs."""
BLOCK = 2**15
"""Pairs that are processed at once."""
TINY = 1e-300
MAX_COLUMNS = 128
"""If z has more columns, the rows of pairs are made from this many principal components; distances use all columns."""


def _centred(a: Rows) -> Rows:
    centred: Rows = a - a.mean(axis=1, keepdims=True)
    return centred


def _length(a: Rows) -> Array:
    """In float64, so that squares neither vanish nor overflow."""
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


def ends(z: Rows) -> PairRows:
    """The standardised rows of both nodes side by side."""
    return _side_by_side(standardised(z))


def whitened_ends(z: Rows) -> PairRows:
    """The whitened rows of both nodes side by side."""
    return _side_by_side(whitened(z))


def geometry(z: Rows) -> PairRows:
    """|a - b|, a * b, a + b and all distances of the rows a and b of both nodes; symmetric in a and b.

    They are computed for standardised and for whitened z, the distances for z itself too.
    """
    even, white = standardised(z), whitened(z)
    narrow = z.shape[1] <= MAX_COLUMNS
    main = even if narrow else standardised(PCA(MAX_COLUMNS, random_state=0).fit_transform(even))

    def rows(pairs: Pairs) -> Rows:
        a, b = main[pairs[0]], main[pairs[1]]
        columns = [np.abs(a - b), a * b, a + b]
        if narrow:  # otherwise the principal components are whitened already
            a, b = white[pairs[0]], white[pairs[1]]
            columns += [np.abs(a - b), a * b]
        for each in (even, white, z):
            columns += [measure(each[pairs[0]], each[pairs[1]])[:, None] for measure in DISTANCES.values()]
        return np.concatenate(columns, axis=1, dtype=np.float32)

    return lambda pairs: np.concatenate([rows(part) for part in blocks(pairs)])


def blocks(pairs: Pairs) -> list[Pairs]:
    """Pairs in blocks of at most `BLOCK`."""
    return [pairs[:, start : start + BLOCK] for start in range(0, pairs.shape[1], BLOCK)]


def _side_by_side(x: Rows) -> PairRows:
    return lambda pairs: np.concatenate([x[pairs[0]], x[pairs[1]]], axis=1)
