"""What the tests of the audit share."""

import numpy as np
from torch_geometric.data import Data

from graphveil.auditing import Answers, Context, Finding, Utility
from graphveil.auditing.secret import NodeSecret


def noise(seed: int, columns: int = 8, nodes: int = 1500) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(nodes, columns)).astype(np.float32)


def communities(graph: Data) -> np.ndarray:
    """Each node is moved to the mean of its neighbours twice, so linked nodes are close."""
    z = noise(8, columns=16, nodes=graph.x.size(0)).astype(np.float64)
    source, target = graph.edge_index.numpy()
    degree = np.bincount(target, minlength=len(z))[:, None]
    for _ in range(2):
        total = np.zeros_like(z)
        np.add.at(total, target, z[source])
        z = 0.5 * z + 0.5 * total / np.maximum(degree, 1) * 3
    return z


USEFUL = Context(utility=Utility("links", 0.9, 0.5, 1000))


def finding(secret: NodeSecret, name: str, val: float, test: float) -> Finding:
    """A finding that is right on the first `val` and `test` shares of both parts."""

    def answers(y: np.ndarray, right: float) -> np.ndarray:
        predicted = np.where(np.arange(len(y)) < right * len(y), y, 1 - y)
        return np.log(0.01 + 0.98 * np.eye(2)[predicted])

    raw = Answers(answers(secret.val.y, val), answers(secret.test.y, test))
    return Finding("embeddings", name, ("z", "secrets"), secret, raw, 0.1)
