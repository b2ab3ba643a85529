"""One graph in every format gives the same graph, whoever wrote it."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

import graphveil as gv
from graphveil.data.readers import READERS
from graphveil.data.readers.tables import PARQUET, TEXT
from tests.data.readers.made import SMALL_LINKS, links, refusal, small

Writer = Callable[[Data, Path], Any]


def as_data(graph: Data, _: Path) -> Any:
    return graph


def as_pt(graph: Data, folder: Path) -> Any:
    torch.save(graph, folder / "graph.pt")
    return folder / "graph.pt"


def as_pth(graph: Data, folder: Path) -> Any:
    return as_pt(graph, folder).rename(folder / "graph.pth")


def as_processed(graph: Data, folder: Path) -> Any:
    """As `InMemoryDataset` saves its one graph."""
    torch.save((graph.to_dict(), None, Data), folder / "data.pt")
    return folder / "data.pt"


def as_arrays(graph: Data, _: Path) -> Any:
    return {key: graph[key].numpy() for key in ("x", "edge_index", "y", "gender")}


def as_tensors(graph: Data, _: Path) -> Any:
    adjacency = torch.sparse_coo_tensor(graph.edge_index, torch.ones(6), (5, 5), check_invariants=True)
    return {"adjacency": adjacency} | {key: graph[key] for key in ("x", "y", "gender")}


def as_npz(graph: Data, folder: Path) -> Any:
    np.savez_compressed(folder / "graph.npz", **as_arrays(graph, folder))
    return folder / "graph.npz"


def as_benchmark_npz(graph: Data, folder: Path) -> Any:
    """As the citation graphs of 2018 are published: two SciPy matrices in parts, and labels."""
    adjacency = sp.csr_matrix((np.ones(6), graph.edge_index.numpy()), shape=(5, 5))
    attributes = sp.csr_matrix(graph.x.numpy())
    parts = {f"adj_{key}": getattr(adjacency, key) for key in ("data", "indices", "indptr", "shape")}
    parts |= {f"attr_{key}": getattr(attributes, key) for key in ("data", "indices", "indptr", "shape")}
    np.savez(folder / "graph.npz", **parts, labels=graph.y.numpy(), gender=graph.gender.numpy())
    return folder / "graph.npz"


def as_ogb(graph: Data, folder: Path) -> Any:
    raw = folder / "raw"
    raw.mkdir()

    def write(name: str, rows: Any) -> None:
        text = "".join(",".join(map(str, row)) + "\n" for row in rows)
        (raw / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))

    write("edge", graph.edge_index.t().tolist())
    write("num-node-list", [[5]])
    write("num-edge-list", [[6]])
    write("node-feat", graph.x.tolist())
    write("node-label", [["nan" if label < 0 else label] for label in graph.y.tolist()])
    return folder


OF_OBJECTS = [as_data, as_pt, as_pth, as_processed, as_arrays, as_tensors, as_npz, as_benchmark_npz, as_ogb]
TABLES = tuple(suffix[1:] for suffix in (*TEXT, *PARQUET))
NETWORKX = ("object", "graphml", "gexf", "gml", "graphml.gz")


def test_every_reader_has_a_round_trip() -> None:
    """`.npy` has links or an adjacency, and `.pth` is another name of `.pt`; both are below."""
    assert set(READERS) == {f".{kind}" for kind in (*TABLES, *NETWORKX[1:4], "npz", "npy", "pt", "pth")}


@pytest.mark.parametrize("write", OF_OBJECTS)
def test_round_trips(tmp_path: Path, write: Writer) -> None:
    graph = small()
    found = gv.read_graph(write(graph, tmp_path))
    assert links(found) == SMALL_LINKS
    assert found.x.to_dense().tolist() == graph.x.tolist()
    assert found.y.tolist() == graph.y.tolist()
    assert found.origin.ids.to_pylist() == [0, 1, 2, 3, 4]
    assert found.origin.encoding.classes["labels"] == ["0", "1"]
    if write is not as_ogb:
        assert found["gender"].tolist() == graph["gender"].tolist()
    assert set(small().keys()) == {"x", "edge_index", "y", "gender"}, "the caller's graph is as it was"


@pytest.mark.parametrize("kind", TABLES)
def test_round_trips_of_tables(tmp_path: Path, kind: str) -> None:
    graph = small()
    nodes = {"id": list("abcde"), "y": graph.y.tolist(), "gender": graph.gender.tolist()}
    values: dict[str, list[Any]] = {
        key: [None if value == -1 else value for value in column] for key, column in nodes.items()
    }
    values["x"] = graph.x.tolist()
    ends = [[list("abcde")[node] for node in row] for row in graph.edge_index.tolist()]
    if f".{kind}" in PARQUET:
        pq.write_table(pa.table(values), tmp_path / f"nodes.{kind}")
        pq.write_table(pa.table({"source": ends[0], "target": ends[1]}), tmp_path / f"edges.{kind}")
    else:
        mark = "," if kind == "csv" else "\t"
        del values["x"]
        rows = [
            mark.join("" if value is None else str(value) for value in row)
            for row in zip(*values.values(), strict=True)
        ]
        (tmp_path / f"nodes.{kind}").write_text("\n".join([mark.join(values), *rows]))
        rows = [mark.join(row) for row in zip(*ends, strict=True)]
        (tmp_path / f"edges.{kind}").write_text("\n".join([f"source{mark}target", *rows]))
    found = gv.read_graph(tmp_path, attributes=["gender"])
    assert links(found) == [("a", "b"), ("a", "c"), ("b", "c"), ("d", "e")]
    assert found.y.tolist() == graph.y.tolist()
    assert found["gender"].tolist() == graph["gender"].tolist()
    if f".{kind}" in PARQUET:
        assert found.x.tolist() == graph.x.tolist()


@pytest.mark.parametrize("kind", NETWORKX)
def test_round_trips_of_networkx(tmp_path: Path, kind: str) -> None:
    graph = small()
    made = nx.DiGraph()
    for node in range(5):
        made.add_node(f"nö{node}", size=float(graph.x[node, 0]), gender="mf"[node % 2])
    made.add_edges_from((f"nö{u}", f"nö{v}") for u, v in graph.edge_index.t().tolist())
    source: Any = made
    if kind != "object":
        source = tmp_path / f"graph.{kind}"
        getattr(nx, f"write_{kind.split('.', maxsplit=1)[0]}")(made, source)
    found = gv.read_graph(source, attributes=["gender"])
    assert found.origin.ids.to_pylist() == [f"nö{node}" for node in range(5)]
    assert links(found) == [(f"nö{u}", f"nö{v}") for u, v in SMALL_LINKS]
    assert found["gender"].tolist() == [1, 0, 1, 0, 1]
    sizes = graph.x[:, 0].numpy()
    assert np.allclose(found.x[:, 0], (sizes - sizes.mean()) / sizes.std())


def test_multigraphs_and_weights_of_networkx() -> None:
    made = nx.MultiGraph()
    made.add_edge(1, 2, weight=3)
    made.add_edge(1, 2, weight=0.5)
    made.add_edge(2, 2)
    made.add_edge(2, 3, weight=1)
    graph = gv.read_graph(made)
    assert graph.origin.ids.to_pylist() == [1, 2, 3]
    assert links(graph) == [(1, 2), (2, 3)]
    assert "the graph, link (2, 2), has a link without a weight" in refusal(made, min_weight=1)
    made.remove_edge(2, 2)
    assert links(gv.read_graph(made, min_weight=1.5)) == [(1, 2)]
    assert links(gv.read_graph(made, direction="mutual")) == [(1, 2), (2, 3)], "an undirected link is mutual"


def test_nodes_of_any_kind_in_networkx() -> None:
    made = nx.Graph([("a", 1), (1, (2, 3))])
    assert gv.read_graph(made).origin.ids.to_pylist() == ["a", "1", "(2, 3)"]
    made.add_node("1")
    assert "two nodes with the same id as text" in refusal(made)
    graph = gv.read_graph(to_networkx(small()))
    assert links(graph) == SMALL_LINKS


def test_a_scipy_matrix_and_its_file(tmp_path: Path) -> None:
    matrix = sp.csr_matrix(np.array([[0, 2, 0], [0, 0, 0.5], [0, 0, 7]]))
    for kind in ("csr", "csc", "coo"):
        sp.save_npz(tmp_path / "matrix.npz", matrix.asformat(kind))
        for source in (matrix, tmp_path / "matrix.npz"):
            assert links(gv.read_graph(source)) == [(0, 1), (1, 2)]
            assert links(gv.read_graph(source, min_weight=1)) == [(0, 1)]


def test_arrays_of_links_and_adjacencies(tmp_path: Path) -> None:
    ends = np.array([[0, 1], [1, 2], [3, 1]], dtype=np.int32)
    np.save(tmp_path / "links.npy", np.asfortranarray(ends))
    dense = np.zeros((4, 4))
    dense[0, 1] = dense[1, 2] = dense[3, 1] = 1
    for source in (ends, ends.T, torch.from_numpy(ends), tmp_path / "links.npy", dense, dense.astype(bool)):
        assert links(gv.read_graph(source)) == [(0, 1), (1, 2), (1, 3)]
    named = gv.read_graph({"edge_index": ends, "ids": np.array(["d", "c", "b", "a"])})
    assert named.origin.ids.to_pylist() == ["d", "c", "b", "a"]


def test_isolated_nodes_of_pyg_are_kept() -> None:
    graph = gv.read_graph(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=4))
    assert graph.x.size(0) == 4
    assert graph.origin.structural


def test_numbers_of_an_array_can_be_binned() -> None:
    source = {"edge_index": np.array([[0, 1, 2], [1, 2, 3]]), "age": np.array([1.5, 20.0, np.nan, 70.0])}
    assert "age" not in gv.read_graph(source)
    graph = gv.read_graph(source, attributes=["age"], bins={"age": 3})
    assert graph["age"].tolist() == [0, 1, -1, 2]


def test_numbers_without_end_in_a_folder_of_ogb_are_refused_before_they_are_parsed(tmp_path: Path) -> None:
    """A parser whose time is quadratic in the digits would need a day."""
    folder = as_ogb(small(), tmp_path)
    for name, text in (("num-node-list", "9" * 10_000_000 + "x\n"), ("edge", "0,1\n99999999999999999999999,1\n")):
        for file in (folder / "raw").glob(f"{name}.csv*"):
            file.unlink()
        (folder / "raw" / f"{name}.csv").write_text(text)
        with pytest.raises(gv.GraphveilError, match=name):
            gv.read_graph(folder)


def test_a_mapping_of_ogb_gives_the_ids(tmp_path: Path) -> None:
    folder = as_ogb(small(), tmp_path)
    (folder / "mapping").mkdir()
    text = "node idx,paper id\n" + "".join(f"{4 - row},{100 + row}\n" for row in range(5))
    (folder / "mapping" / "nodeidx2paperid.csv.gz").write_bytes(gzip.compress(text.encode()))
    graph = gv.read_graph(folder)
    assert graph.origin.ids.to_pylist() == [104, 103, 102, 101, 100]
    (folder / "raw" / "node-feat.csv.gz").write_bytes(gzip.compress(b"1,2\n"))
    assert "node-feat.csv.gz has 1 row for 5 nodes" in refusal(folder)


def test_sparse_features_stay_sparse() -> None:
    graph = gv.generate(gv.GraphSpec(num_nodes=60, num_edges=100, num_features=300, words_per_node=5))
    found = gv.read_graph(graph)
    assert found.x.layout == torch.sparse_csr
    assert torch.equal(found.x.to_dense(), graph.x.to_dense())
    assert torch.equal(found.edge_index, graph.edge_index)
    assert torch.equal(found["secret"], graph["secret"])


def test_a_sparse_tensor_that_points_outside_itself_is_refused() -> None:
    parts = (torch.tensor([0, 1, 2]), torch.tensor([1, 99]), torch.ones(2))
    broken = torch.sparse_csr_tensor(*parts, size=(2, 2), check_invariants=False)
    assert "cannot be read" in refusal({"adjacency": broken})
