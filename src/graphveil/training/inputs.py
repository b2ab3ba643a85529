"""The inputs of an encoder: features and adjacency of a graph on a device."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch_geometric.data import Data

from graphveil.data import Split
from graphveil.data.degree_features import degree_features, is_structural
from graphveil.data.graph import ROWS_AT_ONCE, both_directions, undirected_pairs
from graphveil.errors import GraphveilError, first_line
from graphveil.models import Adjacency, SparseMatrix
from graphveil.models.layers import AnyFeatures, Features
from graphveil.models.sparse import Pattern

SCALINGS = ("none", "sum", "length")
"""A row of features is not changed, is divided by its sum, or is scaled to the Euclidean length `LENGTH`."""
LENGTH = 4.0
"""The length of about 16 words. With shorter rows a GCN for links underfitted, with longer ones it was unstable."""
MIN_COLUMNS = 16
"""Rows with fewer features are not scaled to a length."""


def features(graph: Data, splits: Sequence[Split], scaling: str, device: torch.device) -> Features:
    """Return the node features as float32, sparse if those of the graph are.

    In a batch, dense features are (runs, num_nodes, channels) and sparse ones block-diagonal, the same for every run.
    But `degree_features` are computed from the message-passing links of each split, since they would reveal held-out
    links.

    Args:
        graph: The graph.
        splits: The split of each run; empty for all links.
        scaling: One of `SCALINGS`.
        device: The device.
    """
    if is_structural(graph):
        pairs = [split.message_pairs for split in splits] or [undirected_pairs(graph.edge_index.cpu())]
        of_runs = [degree_features(part, graph.x.size(0)) for part in pairs]
        return (of_runs[0] if len(of_runs) == 1 else torch.stack(of_runs)).to(device)
    runs = max(1, len(splits))
    x: Tensor = graph.x.float()
    if x.layout == torch.sparse_csr:
        return _scaled(SparseMatrix.from_csr(x).to(device), scaling).repeated(runs)
    dense = _scaled(x.to(device), scaling)
    return dense if runs == 1 else dense.expand(runs, -1, -1)


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Features of which only some rows are read at a time, such as those that are mapped from a file.

    Args:
        x: (num_nodes, channels), dense or CSR.
        scaling: One of `SCALINGS`.
    """

    x: Tensor
    scaling: str

    @classmethod
    def of(cls, graph: Data, splits: Sequence[Split], scaling: str) -> "FeatureRows":
        """Return the features of a graph; see `features`."""
        if not is_structural(graph):
            return cls(graph.x, scaling)
        x = features(graph, splits, scaling, torch.device("cpu"))
        assert isinstance(x, Tensor)
        return cls(x, "none")

    def __getitem__(self, nodes: Tensor | slice) -> Features:
        """Return rows, (nodes, channels) float32, scaled."""
        if self.x.layout == torch.sparse_csr:
            return _scaled(_rows_of_csr(self.x, nodes), self.scaling)
        rows = self.x[nodes] if isinstance(nodes, slice) else self.x.index_select(0, nodes)
        return _scaled(rows.float(), self.scaling)

    def blocks(self) -> Iterator[Features]:
        """Return all rows, in blocks of at most `ROWS_AT_ONCE`."""
        count = self.x.size(0)
        return (self[slice(start, min(start + ROWS_AT_ONCE, count))] for start in range(0, count, ROWS_AT_ONCE))


def _scaled(x: AnyFeatures, scaling: str) -> AnyFeatures:
    """Scale each row."""
    if scaling == "none":
        return x
    p, length = (2, LENGTH) if scaling == "length" else (1, 1.0)
    if isinstance(x, SparseMatrix):
        matrix = x.row_normalized(p)
        return matrix.with_values(length * matrix.values)
    return length * F.normalize(x, p=p, dim=1)


def _rows_of_csr(x: Tensor, nodes: Tensor | slice) -> SparseMatrix:
    start, col, values = x.crow_indices(), x.col_indices(), x.values()
    if isinstance(nodes, slice):
        nodes = torch.arange(nodes.start, nodes.stop)
    first, count = start[nodes], start[nodes + 1] - start[nodes]
    crow = F.pad(count.cumsum(0), (1, 0))
    row = torch.repeat_interleave(torch.arange(len(nodes)), count)
    place = first[row] + torch.arange(len(row)) - crow[row]
    pattern = Pattern.from_rows(row, col[place], (len(nodes), x.size(1)))
    return SparseMatrix(pattern, values[place].float())


def applicable_scaling(scaling: str, graph: Data) -> str:
    """Return the scaling, or "none" if it would destroy features.

    A row with negative features cannot be divided by its sum, and the length of a row of few features is informative.
    """
    x: Tensor = graph.x.values() if graph.x.layout == torch.sparse_csr else graph.x
    has_negative = x.numel() > 0 and bool(x.min() < 0)
    destroys = {"none": False, "sum": has_negative, "length": graph.x.size(1) < MIN_COLUMNS}
    return "none" if destroys[scaling] else scaling


def adjacency(graph: Data, splits: Sequence[Split], device: torch.device) -> Adjacency:
    """Return the adjacency for message passing: of the message edges of each split, or without splits of all links."""
    num_nodes = graph.x.size(0)
    pairs = [split.message_pairs for split in splits] or [undirected_pairs(graph.edge_index.cpu())]
    links = torch.cat([run * num_nodes + part for run, part in enumerate(pairs)], dim=1).to(device)
    return Adjacency.from_edge_index(both_directions(links), len(pairs) * num_nodes)


def pick_device(name: str) -> torch.device:
    """Return the device called `name`, with its number; "auto" is the present GPU if there is one, else the CPU.

    Without a number, a device would be GPU 0 in other threads.
    """
    if name == "auto":
        available = torch.cuda.is_available()
        return torch.device("cuda", torch.cuda.current_device()) if available else torch.device("cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise GraphveilError(f"device {name!r} cannot be used ({first_line(error)}): try 'auto' or 'cpu'.") from error


@contextmanager
def repeatable() -> Iterator[None]:
    """Use deterministic CUDA kernels inside, so that a run is reproducible bit for bit."""
    before = torch.are_deterministic_algorithms_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS needs it, and torch checks it
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
