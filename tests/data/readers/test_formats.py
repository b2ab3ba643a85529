"""One graph in every format gives the same graph, whoever wrote it."""

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

import graphveil as gv
from graphveil.data.readers import READERS
from graphveil.data.readers.find import PARQUET, TEXT
from tests.data.readers.made import SMALL_LINKS, as_ogb, links, small

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
