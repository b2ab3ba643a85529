"""Label propagation for node secrets: over links predicted from z, and over the public graph."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from graphveil.auditing.attacks import Answers, Need, by_row, standardised, whitened
from graphveil.auditing.learners import Rows, clipped_log
from graphveil.auditing.metrics import Array, Integers
from graphveil.auditing.secret import NodeSecret, Queries
from graphveil.data.splits.split import Knowledge


@dataclass(frozen=True)
class Propagate:
    """Propagate the known classes over links predicted from z: each node and its nearest (Zhou et al., 2004).

    Args:
        knowledge: how many secrets the attacker knows.
        cost: relative run time.
    """

    knowledge: Knowledge
    cost: float

    @property
    def needs(self) -> tuple[Need, ...]:
        """z and the known secrets."""
        return "z", secrets_needed(self.knowledge)

    @property
    def name(self) -> str:
        """The name in tables and files."""
        return f"label propagation over predicted links, {self.knowledge}"

    def __call__(self, z: Rows, secret: NodeSecret, seed: int) -> Answers:
        """Attack the secret; see `Attack`."""
        known, val, test = secret.known[self.knowledge], secret.val, secret.test
        nodes = np.unique(np.concatenate([known.index, val.index, test.index]))
        place = np.full(secret.num_nodes, -1)
        place[nodes] = np.arange(len(nodes))

        def predict(links: sp.csr_matrix, alpha: float, train: Queries, queries: Queries) -> Array:
            log_p = _propagate(links, place[train.index], train.y, secret.num_classes, alpha)
            answers: Array = log_p[place[queries.index]]
            return answers

        folds = secret.held_out if self.knowledge == "all" else [_halves(known, seed)]
        settings = [(links, alpha) for links in _predicted_links(z, nodes) for alpha in (0.5, 0.95)]
        y = np.concatenate([held_out.y for _, held_out in folds])
        answers = [np.concatenate([predict(*setting, *fold) for fold in folds]) for setting in settings]
        best = int(np.argmax([float((one.argmax(axis=1) == y).mean()) for one in answers]))
        on_val = answers[best] if self.knowledge == "all" else predict(*settings[best], known, val)
        return by_row(Answers(on_val, predict(*settings[best], known, test)), z, secret)


def gnn_rows(z: Rows, secret: NodeSecret, known: Queries) -> Rows:
    """The input of a simplified GNN: z averaged over zero to three hops, and the propagated known classes."""
    mean = _neighbour_mean(secret)
    hops = [standardised(z)]
    for _ in range(3):
        hops.append(mean @ hops[-1])
    return np.concatenate([*hops, graph_rows(z, secret, known)], axis=1)


def graph_rows(z: Rows, secret: NodeSecret, known: Queries) -> Rows:  # noqa: ARG001 - the graph alone
    """The known classes propagated over the public graph, near and far.

    The row of a known node must not contain its own class. So the known nodes are halved, and the rows of each half are
    computed from the classes of the other.
    """
    links = _normalised_adjacency(secret.links, secret.num_nodes)
    rows = _near_and_far(links, known, secret.num_classes)
    first, second = _halves(known, 0)
    for half, other in ((first, second), (second, first)):
        rows[half.index] = _near_and_far(links, other, secret.num_classes)[half.index]
    return rows.astype(np.float32)


def secrets_needed(knowledge: Knowledge) -> Need:
    """The known secrets as an attack names them."""
    return "secrets" if knowledge == "all" else "few secrets"


def _near_and_far(links: sp.csr_matrix, known: Queries, classes: int) -> Array:
    return np.concatenate([_propagate(links, known.index, known.y, classes, alpha) for alpha in (0.5, 0.9)], axis=1)


def _halves(known: Queries, seed: int) -> tuple[Queries, Queries]:
    """Two stratified halves."""
    order = np.random.default_rng(seed).permutation(len(known.y))
    order = order[np.argsort(known.y[order], kind="stable")]
    return tuple(Queries(known.index[part], known.y[part]) for part in (order[::2], order[1::2]))  # type: ignore[return-value]


def _predicted_links(z: Rows, nodes: Integers) -> Iterator[sp.csr_matrix]:
    """Links from each node to its 5 or 20 nearest by cosine, for z standardised and whitened."""
    for scale in (standardised, whitened):
        x = scale(z)[nodes]
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
        distance, nearest = NearestNeighbors(n_neighbors=min(21, len(nodes))).fit(x).kneighbors(x)
        for count in (6, 21):
            yield _similarity(distance[:, 1:count], nearest[:, 1:count])


def _similarity(distance: Rows, nearest: Integers) -> sp.csr_matrix:
    """Symmetric, normalised weights 1 - d^2 / 2, which is the cosine, of the nearest rows of each row."""
    count, width = nearest.shape
    weights = np.clip(1 - distance.astype(np.float64) ** 2 / 2, 1e-3, None)
    directed = sp.csr_matrix((weights.ravel(), nearest.ravel(), np.arange(count + 1) * width), shape=(count, count))
    return _normalised(directed.maximum(directed.T))


def _normalised_adjacency(links: Integers, num_nodes: int) -> sp.csr_matrix:
    ends = np.concatenate([links, links[::-1]], axis=1)
    return _normalised(sp.csr_matrix((np.ones(ends.shape[1]), ends), shape=(num_nodes, num_nodes)))


def _normalised(weights: Any) -> sp.csr_matrix:
    """D^-1/2 W D^-1/2."""
    root = 1 / np.sqrt(np.maximum(np.asarray(weights.sum(axis=1)).ravel(), 1e-12))
    return (sp.diags(root) @ weights @ sp.diags(root)).tocsr()


def _neighbour_mean(secret: NodeSecret) -> sp.csr_matrix:
    """The matrix that averages over a node and its neighbours, in float32."""
    ends = np.concatenate([secret.links, secret.links[::-1], np.tile(np.arange(secret.num_nodes), (2, 1))], axis=1)
    matrix = sp.csr_matrix((np.ones(ends.shape[1], np.float32), ends), shape=(secret.num_nodes, secret.num_nodes))
    return (sp.diags(1 / np.asarray(matrix.sum(axis=1)).ravel()) @ matrix).tocsr().astype(np.float32)


def _propagate(links: sp.csr_matrix, nodes: Integers, y: Integers, classes: int, alpha: float) -> Array:
    """20 steps of F <- alpha * links F + (1 - alpha) * known classes; returns log-probabilities, (nodes, classes)."""
    start = np.zeros((links.shape[0], classes))
    share = np.bincount(y, minlength=classes) / len(y)
    start[nodes, y] = 1 / np.maximum(share[y], 1e-12)  # every class starts with the same total weight
    scores = start
    for _ in range(20):
        scores = alpha * (links @ scores) + (1 - alpha) * start
    scores = scores * share + 1e-6 * share
    return clipped_log(scores / scores.sum(axis=1, keepdims=True))
