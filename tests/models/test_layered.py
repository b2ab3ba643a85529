"""A layer gives the same for some rows, for sampled blocks and for the whole graph."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from graphveil.models import ENCODERS, Adjacency, SparseMatrix
from graphveil.models.layered import Block, Layered, through_layers
from graphveil.models.sparse import Pattern

LAYERED = [name for name, encoder in ENCODERS.items() if isinstance(encoder(2, 8, 2), Layered)]


def rows_of(adjacency: Adjacency, first: int, last: int) -> Block:
    matrix = adjacency.normalized
    begin, end = int(matrix.pattern.crow[first]), int(matrix.pattern.crow[last])
    crow = matrix.pattern.crow[first : last + 1] - begin
    pattern = Pattern(crow, matrix.pattern.col[begin:end], (last - first, matrix.pattern.shape[1]))
    return Block(SparseMatrix(pattern, matrix.values[begin:end]), first)


def test_these_encoders_are_layered() -> None:
    assert LAYERED == ["gcn", "gat", "sage"]


@pytest.mark.parametrize("name", LAYERED)
def test_rows_of_a_layer_are_those_of_the_whole_graph(name: str, small: Data) -> None:
    adjacency, x = Adjacency.from_edge_index(small.edge_index, 150), SparseMatrix.from_csr(small.x)
    torch.manual_seed(0)
    encoder = ENCODERS[name](40, 8, 4)
    for parameter in encoder.parameters():
        nn.init.normal_(parameter)  # biases, too
    encoder.eval()
    assert isinstance(encoder, Layered)
    whole = Block.of(adjacency)
    projected = encoder.project(0, x)
    h = encoder.aggregate(0, projected, whole)
    parts = [encoder.aggregate(0, projected, rows_of(adjacency, *ends)) for ends in ((0, 40), (40, 41), (41, 150))]
    assert torch.allclose(torch.cat(parts), h, rtol=1e-5, atol=1e-6)
    z = encoder.aggregate(1, encoder.project(1, h), whole)
    assert through_layers(encoder, x, [whole, whole]).equal(z)
    assert isinstance(encoder, nn.Module)
    assert encoder(x, adjacency).equal(z), "without smoothing, the encoder is its layers"


def test_the_mean_over_neighbours_excludes_the_node_itself_and_dropped_links() -> None:
    edges = torch.tensor([[0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0]])
    adjacency, h = Adjacency.from_edge_index(edges, 4), torch.tensor([[1.0], [2.0], [4.0], [8.0]])
    assert Block.of(adjacency).neighbour_mean(h).flatten().tolist() == [3.0, 2.5, 1.5, 0.0]
    without = adjacency.thinned(torch.tensor([0, 1, 1]))  # the links are (0, 1), (0, 2) and (1, 2)
    assert Block.of(without).neighbour_mean(h).flatten().tolist() == [4.0, 4.0, 1.5, 0.0]
    assert rows_of(adjacency, 1, 3).neighbour_mean(h).flatten().tolist() == [2.5, 1.5]
