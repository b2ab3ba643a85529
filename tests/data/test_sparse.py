"""Sparse feature matrices."""

import torch
from torch_geometric.data import Data

from graphveil.data.sparse import csr_from_rows, identity, join_features, split_features


def test_words_that_occur_twice_count_once() -> None:
    x = csr_from_rows(torch.tensor([[2, 0], [1, 1], [3, 2]]), 5)
    assert x.layout == torch.sparse_csr
    assert x.to_dense().tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0]]


def test_the_identity() -> None:
    assert identity(3).to_dense().equal(torch.eye(3))


def test_features_are_split_from_a_graph_and_joined_again() -> None:
    graph = Data(x=identity(3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    without, parts = split_features(graph)
    assert without.x is None
    assert graph.x is not None, "the graph itself is not changed"
    joined = join_features(without, parts)
    assert joined.x.layout == torch.sparse_csr
    assert joined.x.to_dense().equal(torch.eye(3))
    assert joined.edge_index.equal(graph.edge_index)
    dense = Data(x=torch.ones(3, 2))
    assert split_features(dense) == (dense, None)
    assert join_features(dense, None) is dense
