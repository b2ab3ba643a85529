"""A two-dimensional map of embeddings, with the secret of each point."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from sklearn.manifold import TSNE

from graphveil.auditing.attacks import standardised
from graphveil.auditing.certify import is_discrete, row_codes
from graphveil.auditing.metrics import Integers
from graphveil.auditing.secret import LinkSecret, Secret
from graphveil.codes import class_table
from graphveil.formats.audit import CodeCounts, Map, Plane

POINTS, FEWEST = 300, 5
MOST_CODES = 60
"""Rows of the counts by code, so that their number does not grow with the graph."""


def draw(secret: Secret, z: np.ndarray, before: np.ndarray | None = None, seed: int = 0) -> Map | None:
    """Map up to 300 test examples by t-SNE: nodes, or pairs by the difference and the product of their rows.

    The map shows secrets, so it is only for people who may see them.

    Args:
        secret: the secret with the test examples.
        z: embeddings, (num_nodes, channels).
        before: other embeddings of the same nodes for a second map, such as those of an unprotected encoder.
        seed: the seed of the sample and of t-SNE.

    Returns:
        The coordinates and classes of the points; None with too few test examples.
    """
    if len(secret.test.y) < FEWEST:
        return None
    chosen = np.random.default_rng(seed).permutation(len(secret.test.y))[:POINTS]
    y = secret.test.y[chosen]
    return Map(
        of=secret.target.queries,
        before=None if before is None else _plane(_view(secret, before, chosen), seed),
        after=_plane(_view(secret, z, chosen), seed),
        classes=tuple(y.tolist()),
        names=tuple(secret.class_names),
        codes=_counted(secret, row_codes(z)),
    )


def count_codes(codes: Integers, y: Integers, names: Sequence[str]) -> CodeCounts | None:
    """Count nodes by code and class; None if there are too many codes for a discrete release.

    Args:
        codes: (num_nodes,).
        y: classes, (num_nodes,); nodes with an unknown class (-1) are left out.
        names: the names of the classes.
    """
    return _table("nodes", codes, y, names) if is_discrete(codes) else None


def count_pairs(codes: Integers, pairs: Integers, y: Integers) -> CodeCounts | None:
    """Count pairs of nodes by their two codes, in any order, and by class; None with too few pairs.

    Args:
        codes: (num_nodes,).
        pairs: (2, num_pairs).
        y: 1 for a link, 0 for a non-link, (num_pairs,).
    """
    low, high = np.sort(codes[pairs], axis=0)
    _, both = np.unique(low * (codes.max() + 1) + high, return_inverse=True)
    both = both.ravel()
    return _table("pairs", both, y, LinkSecret.class_names) if is_discrete(codes) and is_discrete(both) else None


def _table(of: Literal["nodes", "pairs"], codes: Integers, y: Integers, names: Sequence[str]) -> CodeCounts:
    table = class_table(codes, y, int(codes.max()) + 1, len(names))
    table = table[np.argsort(-table.sum(axis=1), kind="stable")]
    table = table[table.any(axis=1)]
    shown = table if len(table) <= MOST_CODES else [*table[: MOST_CODES - 1], table[MOST_CODES - 1 :].sum(axis=0)]
    return CodeCounts(of, tuple(tuple(int(count) for count in row) for row in shown), len(table), tuple(names))


def _counted(secret: Secret, codes: Integers) -> CodeCounts | None:
    if isinstance(secret, LinkSecret):
        return count_pairs(codes, secret.test.index, secret.test.y)
    y = np.full(len(codes), -1, dtype=np.int64)
    for part in (secret.known["all"], secret.test):
        y[part.index] = part.y
    return count_codes(codes, y, secret.class_names)


def _view(secret: Secret, z: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    index = secret.test.index[..., chosen]
    if not secret.target.is_links:
        return z[index]
    a, b = z[index[0]], z[index[1]]
    return np.concatenate([np.abs(a - b), a * b], axis=1)


def _plane(x: np.ndarray, seed: int) -> Plane:
    scaled = standardised(np.pad(x, ((0, 0), (0, max(0, 2 - x.shape[1])))))  # the PCA at the start needs two columns
    # exact ties, as in collapsed embeddings, would divide by zero in t-SNE
    jitter = 1e-6 * np.random.default_rng(seed).standard_normal(scaled.shape)
    perplexity = min(30.0, (len(x) - 1) / 3)
    placed = TSNE(init="pca", perplexity=perplexity, random_state=seed, n_jobs=1).fit_transform(scaled + jitter)
    return Plane(*(tuple(column.round(2).tolist()) for column in placed.T))
