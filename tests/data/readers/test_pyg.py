"""PyG's graphs keep their nodes and sparse features; files that are older or repeat a tensor are refused."""

from pathlib import Path

import torch
from torch_geometric.data import Data

import graphveil as gv
from tests.data.readers.made import refusal


def test_isolated_nodes_of_pyg_are_kept() -> None:
    graph = gv.read_graph(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=4))
    assert graph.x.size(0) == 4
    assert graph.origin.structural


def test_sparse_features_stay_sparse() -> None:
    graph = gv.generate(gv.GraphSpec(num_nodes=60, num_edges=100, num_features=300, words_per_node=5))
    found = gv.read_graph(graph)
    assert found.x.layout == torch.sparse_csr
    assert torch.equal(found.x.to_dense(), graph.x.to_dense())
    assert torch.equal(found.edge_index, graph.edge_index)
    assert torch.equal(found["secret"], graph["secret"])


def test_a_tensor_that_repeats_itself_is_refused(tmp_path: Path) -> None:
    torch.save(
        Data(x=torch.zeros(1).expand(10**9, 1), edge_index=torch.zeros(2, 1, dtype=torch.long)), tmp_path / "g.pt"
    )
    assert "x has 1,000,000,000 values but stores fewer" in refusal(tmp_path / "g.pt")


def test_a_graph_of_an_older_pyg(tmp_path: Path) -> None:
    """Before version 2 the tensors were attributes, without a store."""
    graph = Data.__new__(Data)
    vars(graph).update(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=None)
    torch.save(graph, tmp_path / "g.pt")
    assert "g.pt was saved by an older version of PyG" in refusal(tmp_path / "g.pt")
    torch.save(dict(vars(graph)), tmp_path / "g.pt")
    assert gv.read_graph(tmp_path / "g.pt").x.tolist() == [[1], [1]], "as the message advises"
