"""From a graph to what an encoder takes: features and adjacency on a device."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch_geometric.data import Data

from graphveil.data import Split
from graphveil.data.graph import both_directions, undirected_pairs
from graphveil.errors import GraphveilError
from graphveil.models import Adjacency, SparseMatrix
from graphveil.models.encoders import Features


def features(graph: Data, normalize: bool, device: torch.device) -> Features:
    """The node features as float32: sparse where the graph has them sparse, rows divided by their sum on request."""
    x: Tensor = graph.x.float()
    if x.layout == torch.sparse_csr:
        matrix = SparseMatrix.from_csr(x).to(device)
        return matrix.row_normalized() if normalize else matrix
    return F.normalize(x.to(device), p=1, dim=1) if normalize else x.to(device)


def adjacency(graph: Data, split: Split | None, device: torch.device) -> Adjacency:
    """The links messages pass along: the split's message edges, or without a split all links of the graph."""
    num_nodes = graph.x.size(0)
    pairs = split.message_pairs if split is not None else undirected_pairs(graph.edge_index.cpu(), num_nodes)
    return Adjacency.from_edge_index(both_directions(pairs).to(device), num_nodes)


def pick_device(name: str) -> torch.device:
    """The device called `name`; "auto" is CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise GraphveilError(f"device {name!r} cannot be used ({reason}): try 'auto' or 'cpu'.") from error
