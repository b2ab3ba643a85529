"""Read Cora, Citeseer and Pubmed from their published files.

Two layouts exist: LINQS text (`cora.content`, `cora.cites`) and Planetoid's eight files (`ind.NAME.x`, `.graph`, ...).
The second are pickles of NumPy and SciPy objects. A pickle can run code, so they are read by an unpickler that allows
only the six names that these files need.
"""

import io
import pickle
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy._core.multiarray import _reconstruct
from torch import Tensor
from torch_geometric.data import Data

from graphveil.data.graph import UNKNOWN, both_directions, undirected_pairs
from graphveil.data.sparse import csr
from graphveil.errors import GraphveilError

PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")

ReadFile = Callable[[str], bytes]
"""Returns the bytes of a file by its name: from a wheel, a folder or a dictionary."""


@dataclass(frozen=True)
class RawGraph:
    """A graph as in its files.

    Args:
        features: (num_nodes, features), a SciPy CSR matrix.
        labels: (num_nodes,).
        edges: (2, n) with the duplicates and loops of the file.
        num_edges: How many edges the paper counts; Planetoid lists each at both of its ends.
    """

    features: Any  # scipy.sparse.csr_matrix, which has no type annotations
    labels: Tensor
    edges: Tensor
    num_edges: int

    def graph(self) -> Data:
        """Return PyG's `Data`, with sparse features and each link once in both directions."""
        features = self.features.astype(np.float32)
        features.sort_indices()
        crow, col, values = (
            torch.from_numpy(np.ascontiguousarray(part))
            for part in (features.indptr.astype(np.int64), features.indices.astype(np.int64), features.data)
        )
        pairs = undirected_pairs(self.edges)
        return Data(x=csr(crow, col, values, features.shape), edge_index=both_directions(pairs), y=self.labels)


def read_linqs(name: str, read: ReadFile) -> RawGraph:
    """Read `NAME.content` (id, words, class) and `NAME.cites` (cited, citing); nodes keep the file's order."""
    rows = [line.split() for line in read(f"{name}.content").decode("ascii").splitlines()]
    number = {row[0]: i for i, row in enumerate(rows)}
    classes = {c: i for i, c in enumerate(sorted({row[-1] for row in rows}))}
    features = sp.csr_matrix(np.array([row[1:-1] for row in rows], dtype=np.float32))
    labels = torch.tensor([classes[row[-1]] for row in rows])
    cites = [line.split() for line in read(f"{name}.cites").decode("ascii").splitlines()]
    edges = torch.tensor([[number[cited], number[citing]] for cited, citing in cites]).t()
    return RawGraph(features, labels, edges, num_edges=len(cites))


def read_planetoid(name: str, read: ReadFile) -> RawGraph:
    """Read `ind.NAME.*`.

    The test rows `tx`, `ty` are in the order of `test.index`, which has gaps for nodes that are in no file (15 in
    Citeseer). These nodes get no features and an unknown label, not the class 0 that an argmax would give.
    """
    part = {p: read(f"ind.{name}.{p}") for p in PARTS}
    allx, tx, ally, ty, adjacency = (safe_unpickle(part[p]) for p in ("allx", "tx", "ally", "ty", "graph"))
    test_index = np.array(part["test.index"].split(), dtype=np.int64)

    num_nodes = int(test_index.max()) + 1
    features = sp.lil_matrix((num_nodes, allx.shape[1]), dtype=np.float32)
    one_hot = np.zeros((num_nodes, ally.shape[1]), dtype=np.int64)
    features[: allx.shape[0]], features[test_index] = allx, tx
    one_hot[: ally.shape[0]], one_hot[test_index] = ally, ty
    labels = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), UNKNOWN)

    edges = [(u, v) for u, neighbours in adjacency.items() for v in neighbours]
    return RawGraph(features.tocsr(), torch.from_numpy(labels), torch.tensor(edges).t(), num_edges=len(edges) // 2)


def safe_unpickle(data: bytes) -> Any:
    """Unpickle NumPy arrays, SciPy CSR matrices and dictionaries of lists; refuse anything else."""
    try:
        return _Unpickler(io.BytesIO(data), encoding="latin1").load()
    except GraphveilError:
        raise
    except Exception as error:
        raise GraphveilError(f"this is not one of Planetoid's files ({error}): fetch the data set again.") from error


_ALLOWED: Mapping[tuple[str, str], Any] = {
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("scipy.sparse.csr", "csr_matrix"): sp.csr_matrix,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,  # the files were written by Python 2
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise GraphveilError(
                f"the file uses {module}.{name}, which is not allowed because it could run code: fetch the data set"
                " again."
            )
        return _ALLOWED[module, name]
