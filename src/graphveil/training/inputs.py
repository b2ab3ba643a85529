"""From a graph to what an encoder takes: features and adjacency on a device."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch_geometric.data import Data

from graphveil.data import Split
from graphveil.data.degree_features import degree_features, is_structural
from graphveil.data.graph import both_directions, undirected_pairs
from graphveil.errors import GraphveilError
from graphveil.models import Adjacency, SparseMatrix
from graphveil.models.layers import Features

SCALINGS = ("none", "sum", "length")
"""A row of features stays as it is, is divided by its sum, or gets a Euclidean length of `LENGTH`."""
LENGTH = 4.0
"""That of about 16 words: with shorter rows a GCN for links learned too little, with longer ones not steadily."""
FEWEST_COLUMNS = 16
"""With fewer, rows are not scaled to a length."""


def features(graph: Data, splits: Sequence[Split], scaling: str, device: torch.device) -> Features:
    """The node features as float32: sparse where the graph has them sparse, scaled by one of `SCALINGS`.

    For a batch they are the same for every run, dense as (runs, num_nodes, channels). But features that are counted
    from the links are counted from those that messages pass along, or they would tell of links that are held out.
    """
    if is_structural(graph):
        pairs = [split.message_pairs for split in splits] or [undirected_pairs(graph.edge_index.cpu())]
        found = [degree_features(part, graph.x.size(0)) for part in pairs]
        return (found[0] if len(found) == 1 else torch.stack(found)).to(device)
    runs = max(1, len(splits))
    x: Tensor = graph.x.float()
    p, length = (2, LENGTH) if scaling == "length" else (1, 1.0)
    if x.layout == torch.sparse_csr:
        matrix = SparseMatrix.from_csr(x).to(device)
        if scaling != "none":
            matrix = matrix.row_normalized(p)
            matrix = matrix.with_values(length * matrix.values)
        return matrix.repeated(runs)
    x = x.to(device)
    if scaling != "none":
        x = length * F.normalize(x, p=p, dim=1)
    return x if runs == 1 else x.expand(runs, -1, -1)


def applicable_scaling(scaling: str, graph: Data) -> str:
    """The scaling that is asked for, or "none" where it would destroy features.

    A row with a negative feature has no sum to be divided by, and of few columns the length is much of what they say.
    """
    x: Tensor = graph.x.values() if graph.x.layout == torch.sparse_csr else graph.x
    has_negative = x.numel() > 0 and bool(x.min() < 0)
    destroys = {"none": False, "sum": has_negative, "length": graph.x.size(1) < FEWEST_COLUMNS}
    return "none" if destroys[scaling] else scaling


def adjacency(graph: Data, splits: Sequence[Split], device: torch.device) -> Adjacency:
    """The links messages pass along: each split's message edges, or without a split all links of the graph."""
    num_nodes = graph.x.size(0)
    pairs = [split.message_pairs for split in splits] or [undirected_pairs(graph.edge_index.cpu())]
    links = torch.cat([run * num_nodes + part for run, part in enumerate(pairs)], dim=1).to(device)
    return Adjacency.from_edge_index(both_directions(links), len(pairs) * num_nodes)


def pick_device(name: str) -> torch.device:
    """The device called `name`; "auto" is CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise GraphveilError(f"device {name!r} cannot be used ({reason}): try 'auto' or 'cpu'.") from error


@contextmanager
def repeatable() -> Iterator[None]:
    """Inside, CUDA adds in a fixed order, so that a run repeats itself bit for bit."""
    before = torch.are_deterministic_algorithms_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS wants it for that, and torch looks
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
