"""Arrays of links, adjacencies and features; those that do not hold together are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.data.readers.arrays import check_compressed
from tests.data.readers.made import links, refusal


def test_arrays_of_links_and_adjacencies(tmp_path: Path) -> None:
    ends = np.array([[0, 1], [1, 2], [3, 1]], dtype=np.int32)
    np.save(tmp_path / "links.npy", np.asfortranarray(ends))
    dense = np.zeros((4, 4))
    dense[0, 1] = dense[1, 2] = dense[3, 1] = 1
    for source in (ends, ends.T, torch.from_numpy(ends), tmp_path / "links.npy", dense, dense.astype(bool)):
        assert links(gv.read_graph(source)) == [(0, 1), (1, 2), (1, 3)]
    named = gv.read_graph({"edge_index": ends, "ids": np.array(["d", "c", "b", "a"])})
    assert named.origin.ids.to_pylist() == ["d", "c", "b", "a"]


def test_numbers_of_an_array_can_be_binned() -> None:
    source = {"edge_index": np.array([[0, 1, 2], [1, 2, 3]]), "age": np.array([1.5, 20.0, np.nan, 70.0])}
    assert "age" not in gv.read_graph(source)
    graph = gv.read_graph(source, attributes=["age"], bins={"age": 3})
    assert graph["age"].tolist() == [0, 1, -1, 2]


def test_a_sparse_tensor_that_points_outside_itself_is_refused() -> None:
    parts = (torch.tensor([0, 1, 2]), torch.tensor([1, 99]), torch.ones(2))
    broken = torch.sparse_csr_tensor(*parts, size=(2, 2), check_invariants=False)
    assert "cannot be read" in refusal({"adjacency": broken})


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"edge_index": [[0, 9], [1, 1]], "x": np.eye(3)}, "link 1, names node 9, but there are nodes 0 to 2"),
        ({"edge_index": [[0, -1], [1, 1]], "x": np.eye(3)}, "names node -1"),
        ({"edge_index": [[0.5], [1]], "x": np.eye(3)}, "type float64: expected (2, n) whole numbers"),
        ({"edge_index": [[0], [1]], "x": np.eye(3), "y": [0, 1]}, "features of 3, labels of 2 rows"),
        ({"edge_index": [[0], [10**12]]}, "without large gaps"),
        (sp.coo_matrix(([1], ([0], [1])), shape=(10**9, 10**9)), "without large gaps"),
        (Data(edge_index=torch.zeros(2, 1, dtype=torch.long), num_nodes=10**12), "has 1,000,000,000,000 nodes"),
        ({"edge_index": [[0], [1]], "x": np.array([["a"], ["b"]])}, "expected numbers"),
        ({"edge_index": [[0], [1]], "ids": ["a", "a"]}, "has duplicate ids"),
        ({"adjacency": np.ones((2, 3))}, "expected a square one"),
        ({"edge_index": [[0, 1], [1, 2]], "edge_weight": [1.0]}, "expected 2 numbers"),
        ({"edge_index": [[0], [1]], "y": np.eye(2)}, "expected one value for each of 2 nodes"),
        ({"weights": [1]}, "has neither 'edge_index' nor 'adjacency'"),
    ],
)
def test_faults_of_arrays(arrays: Any, sentence: str) -> None:
    assert sentence in refusal(arrays)


def test_nan_in_features_is_missing() -> None:
    x = np.array([[np.nan, 1], [np.inf, 1e300]])
    graph = gv.read_graph({"edge_index": [[0], [1]], "x": x})
    assert graph.x.tolist() == [[0, 1], [0, 0]], "beyond float32 there is no number either"


@pytest.mark.parametrize(
    ("starts", "indices"),
    [
        ([0, 2**40, 1, 0], [0, 1]),
        ([0, 5, -3, 2], [0, 1]),
        ([0, 1, 1], [0, 1]),
        ([1, 1, 2, 2], [0, 1]),
        ([0, 1, 1, 2], [0, 3]),
        ([0, 1, 1, 2], [-1, 0]),
    ],
)
def test_a_sparse_matrix_that_does_not_hold_together_crashes_nothing(
    starts: list[int], indices: list[int], tmp_path: Path
) -> None:
    parts = {"data": np.ones(2), "indices": np.array(indices), "indptr": np.array(starts)}
    whole: dict[str, Any] = {"format": np.array("csr"), "shape": np.array([3, 3]), **parts}
    np.savez(tmp_path / "a.npz", **whole)
    with pytest.raises(gv.GraphveilError, match="holds an invalid sparse matrix"):
        gv.read_graph(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"indptr|index"):
        check_compressed(parts["data"], parts["indices"], parts["indptr"], (3, 3))
