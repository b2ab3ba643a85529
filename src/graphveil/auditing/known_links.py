"""Attacks that use the graph of the known links, without z and with it, and the rows of pairs that they learn from.

The row of a known pair must not contain its own link. For the counts this is exact: no path of two or three links
between two nodes uses the link between them, and that link is subtracted from both degrees. So the row of a known link
has the same distribution as the row of a queried link. A spectral embedding depends on all links at once: the known
pairs are divided into folds, and the rows of a fold are computed from the links of the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from graphveil.auditing import classifiers, learners, networks
from graphveil.auditing.attacks import WITH_LINKS, Answers, Attack, Need
from graphveil.auditing.learners import Examples, Learner, Rows
from graphveil.auditing.links import ClassifyPairs, Distance, oriented
from graphveil.auditing.metrics import Array, Integers
from graphveil.auditing.pairs import DISTANCES, PairRows, Pairs, View, geometry
from graphveil.auditing.secret import LinkSecret

COLUMNS = (
    "common neighbours",
    "Adamic-Adar",
    "resource allocation",
    "preferential attachment",
    "paths of length 3",
    "smaller degree",
    "larger degree",
    "spectral embedding",
    "spectral inner product",
    "spectral distance",
)
"""The columns of a pair: seven counts as log(1 + count), then cosine, inner product and distance of two embeddings."""
SCORES = (*COLUMNS[:5], "spectral embedding")
"""The columns that are attacks of their own."""
WITHOUT_Z = (("pair-MLP on known links", 3.0), ("boosted trees on known links", 2.0))
WITH_Z = ((f"pair-MLP{WITH_LINKS}", 8.0), (f"boosted trees on pairs{WITH_LINKS}", 9.0))
STACKED = ("stacked scores on known links", f"stacked scores{WITH_LINKS}")
FOLDS = 8
"""Folds of the known pairs: the spectral embedding of a known pair is computed from seven eighths of the links."""
RANK = 32
"""Columns of the spectral embedding."""
SMOOTHING = 0.1
"""Share of the mean degree that is added to every degree: without it, the spectral embedding shows small components."""
BLOCK = 2**22
"""Entries of sparse rows and embeddings in memory at once; more pairs are processed in blocks."""


@dataclass(frozen=True, eq=False)
class KnownLinks:
    """The graph of the known links.

    Args:
        links: the adjacency matrix, (num_nodes, num_nodes).
        fold: 1 + the fold of each known pair, link or not, in a matrix of the same shape; 0 for all other pairs.
        place: the row of each node in the embeddings, (num_nodes,); nodes without a known link share the last row.
        embeddings: spectral embeddings from all known links, and from those outside each fold, (1 + FOLDS, rows, RANK).
    """

    links: sp.csr_matrix
    fold: sp.csr_matrix
    place: Integers
    embeddings: NDArray[np.float32]

    def rows(self, pairs: Pairs) -> Rows:
        """The `COLUMNS` of pairs (2, n) in either order, (n, columns); those of a known pair exclude its own link."""
        degree = self._degree
        reach = self.links @ degree  # walks of two links from each node
        ordered = np.where(reach[pairs[0]] <= reach[pairs[1]], pairs, pairs[::-1])
        work = np.cumsum(2 * RANK + degree[pairs].sum(axis=0) + reach[ordered[0]]).astype(np.int64)
        blocks = np.split(ordered, np.flatnonzero(np.diff(work // BLOCK)) + 1, axis=1)
        rows = [np.concatenate([self._counts(block), self._spectral(block)], axis=1) for block in blocks]
        return np.concatenate(rows).astype(np.float32)

    @property
    def _degree(self) -> Array:
        degree: Array = np.asarray(self.links.sum(axis=1), dtype=np.float64).ravel()
        return degree

    def _counts(self, pairs: Pairs) -> Array:
        """All but the spectral columns, (n, 7)."""
        (u, v), degree = pairs, self._degree
        first, second = self.links[u], self.links[v]
        own = _entries(self.links, pairs)
        shared = first.multiply(second)  # the common neighbours of each pair; each has degree two or more
        walks = _sums((first @ self.links).multiply(second))
        paths = walks - own * (degree[u] + degree[v] - 1)  # walks of three links that are not paths use the own link
        low, high = np.sort(degree[pairs] - own, axis=0)
        weights = 1 / np.log(np.maximum(degree, 2)), 1 / np.maximum(degree, 1)
        counts = [_sums(shared), *(shared @ weight for weight in weights)]
        rows: Array = np.log1p(np.stack([*counts, low * high, paths, low, high], axis=1))
        return rows

    def _spectral(self, pairs: Pairs) -> Array:
        """Cosine, inner product and distance, (n, 3)."""
        fold = _entries(self.fold, pairs).astype(np.int64)
        a, b = (self.embeddings[fold, self.place[end]].astype(np.float64) for end in pairs)
        product, lengths = (a * b).sum(axis=1), np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        return np.stack([product / np.maximum(lengths, 1e-12), product, np.linalg.norm(a - b, axis=1)], axis=1)


def known_links_of(secret: LinkSecret, seed: int) -> KnownLinks:
    """Build the graph of the known links of a secret.

    Args:
        secret: the link secret.
        seed: the seed of the folds and of the spectral embedding.
    """
    random = np.random.default_rng(seed)
    index, linked = secret.known.index, secret.known.y == 1
    if secret.matched is not None:  # its known links are among those of `secret.known`
        more = secret.matched.known.index[:, secret.matched.known.y == 0]
        index, linked = np.concatenate([index, more], axis=1), np.append(linked, np.zeros(more.shape[1], dtype=bool))
    fold = random.permutation(len(linked)) % FOLDS
    links = index[:, linked]
    nodes = np.unique(links)
    place = np.full(secret.num_nodes, len(nodes))
    place[nodes] = np.arange(len(nodes))
    start = random.normal(size=len(nodes))
    parts = [links, *(index[:, linked & (fold != k)] for k in range(FOLDS))]
    return KnownLinks(
        links=_symmetric(links, np.ones(links.shape[1]), secret.num_nodes),
        fold=_symmetric(index, (1 + fold).astype(np.float64), secret.num_nodes),
        place=place,
        embeddings=np.stack([_embedding(place[part], start) for part in parts]),
    )


@dataclass(frozen=True)
class Score:
    """Score pairs by one column, with the sign that has the higher AUC on the validation part.

    Args:
        name: one of `SCORES`.
        known: the graph of the known links.
        cost: relative run time.
        needs: what the attacker knows.
    """

    name: str
    known: KnownLinks
    cost: float = 0.1
    needs: tuple[Need, ...] = ("secrets",)

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:  # noqa: ARG002 - z is not used
        """Attack the secret; see `Attack`."""
        column = COLUMNS.index(self.name)
        return oriented(lambda pairs: self.known.rows(pairs)[:, column].astype(np.float64), secret)


@dataclass(frozen=True)
class Stack:
    """Logistic regression on the scores of other attacks, fitted to the validation part.

    Embeddings computed from the known links predict these better than other links, so a learner of known pairs
    overestimates them. Validation pairs are distributed as test pairs. They are scored by cross-fitting in five folds.

    Args:
        name: the name of the attack.
        parts: the attacks whose scores are combined.
        cost: relative run time.
        needs: what the attacker knows.
    """

    name: str
    parts: Sequence[Attack]
    cost: float
    needs: tuple[Need, ...]

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:
        """Attack the secret; see `Attack`."""
        parts = [attack(z, secret, seed) for attack in self.parts]
        answers = self._combined([(one.val, one.test) for one in parts], secret.val.y, seed)
        if secret.matched is None:
            return Answers(*answers)
        matched = [(one.matched_val, one.matched_test) for one in parts]
        return Answers(*answers, *self._combined(matched, secret.matched.val.y, seed))

    def _combined(self, scores: Sequence[tuple[Any, Any]], y: Integers, seed: int) -> tuple[Array, Array]:
        val, test = (np.stack(part, axis=1) for part in zip(*scores, strict=True))
        mean, scale = val.mean(axis=0), np.maximum(val.std(axis=0), 1e-12)
        val, test = (((part - mean) / scale).astype(np.float32) for part in (val, test))

        def answers(train: NDArray[np.bool_], x: Rows) -> Array:
            model = learners.fit(learner, Examples(val[train], y[train]), 2, learner.grid[0], seed)
            log_p = model.log_probabilities(x)
            return log_p[:, 1] - log_p[:, 0]

        learner, fold = classifiers.logistic_regression((1.0,)), np.random.default_rng(seed).permutation(len(y)) % 5
        on_val = np.empty(len(y))
        for k in np.unique(fold):
            on_val[fold == k] = answers(fold != k, val[fold == k])
        return on_val, answers(np.ones(len(y), dtype=bool), test)


def links_alone(known: KnownLinks) -> list[Attack]:
    """The attacks on the known links without an embedding: the control of the attackers who hold both."""
    network, trees = _learners(WITHOUT_Z, (lambda _: known.rows,), ("secrets",))
    scores: list[Attack] = [Score(name, known) for name in SCORES]
    return [*scores, network, trees, Stack(STACKED[0], [*scores, trees], 3.0, ("secrets",))]


def with_links(known: KnownLinks) -> list[Attack]:
    """The attacks on z and the known links: learners on the rows of both side by side, and a stack.

    Each learner also tries the known links alone; the better of both is chosen on the validation part.
    """

    def side_by_side(z: Rows) -> PairRows:
        z_rows = geometry(z)
        return lambda pairs: np.concatenate([z_rows(pairs), known.rows(pairs)], axis=1)

    needs: tuple[Need, ...] = ("z", "secrets", "known links")
    on_z = ClassifyPairs(
        "boosted trees on pairs", lambda _: classifiers.trees(), 7.0, (geometry,), separate_matched=False
    )
    without_z = [attack for attack in links_alone(known) if attack.name in (*SCORES, WITHOUT_Z[1][0])]
    parts = [*without_z, on_z, *(Distance(measure) for measure in DISTANCES)]
    return [*_learners(WITH_Z, (side_by_side, lambda _: known.rows), needs), Stack(STACKED[1], parts, 9.0, needs)]


def _learners(names: Sequence[tuple[str, float]], views: Sequence[View], needs: tuple[Need, ...]) -> list[Attack]:
    """A network and boosted trees with these names and costs."""
    kinds: tuple[Callable[[int], Learner], ...] = (lambda _: networks.mlp(), lambda _: classifiers.trees())
    return [
        ClassifyPairs(name, learner, cost, views, separate_matched=False, needs=needs)
        for (name, cost), learner in zip(names, kinds, strict=True)
    ]


def _embedding(links: Pairs, start: Array) -> NDArray[np.float32]:
    """sqrt(n) U sqrt(L) of the largest eigenvalues L of D^-1/2 A D^-1/2, with a last row of 0; (nodes + 1, RANK).

    D has the degrees plus a constant (Qin and Rohe, 2013).

    Args:
        links: (2, links).
        start: the first vector of the iteration, (nodes,).
    """
    count = len(start)
    adjacency = _symmetric(links, np.ones(links.shape[1]), count)
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    root = sp.diags(1 / np.sqrt(degree + max(SMOOTHING * degree.mean(), 1e-12)))
    matrix, rank = root @ adjacency @ root, min(RANK, count)
    if count <= 2 * RANK:
        values, vectors = (part[..., count - rank :] for part in np.linalg.eigh(matrix.toarray()))
    else:
        values, vectors = _largest(matrix, rank, start)
    result = np.zeros((count + 1, RANK), dtype=np.float32)
    result[:count, : len(values)] = np.sqrt(count * np.maximum(values, 0)) * vectors
    return result


def _largest(matrix: sp.csr_matrix, rank: int, start: Array) -> tuple[Array, Array]:
    """The largest eigenvalues, (rank,), and their vectors, (nodes, rank)."""
    try:
        values, vectors = eigsh(matrix, k=rank, which="LA", v0=start, tol=1e-4)
    except (
        ArpackNoConvergence
    ) as error:  # many equal eigenvalues, as of equal components: the converged ones are enough
        values, vectors = error.eigenvalues, error.eigenvectors
    return values, vectors


def _symmetric(pairs: Pairs, values: Array, num_nodes: int) -> sp.csr_matrix:
    ends, both = np.concatenate([pairs, pairs[::-1]], axis=1), np.tile(values, 2)
    return sp.csr_matrix((both, ends), shape=(num_nodes, num_nodes))


def _entries(matrix: sp.csr_matrix, pairs: Pairs) -> Array:
    entries: Array = np.asarray(matrix[pairs[0], pairs[1]], dtype=np.float64).ravel()
    return entries


def _sums(matrix: sp.csr_matrix) -> Array:
    sums: Array = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
    return sums
