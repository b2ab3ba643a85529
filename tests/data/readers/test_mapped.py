"""Features in a file of their own are mapped, belong to the nodes in order, and are refused in one sentence."""

import errno
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from numpy.typing import NDArray

import graphveil as gv
from graphveil.data import digest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel which memory is mapped")

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def tables(folder: Path) -> Path:
    (folder / "edges.csv").write_text("source,target\nb,a\nc,d\na,c\n")
    (folder / "nodes.csv").write_text("id,gender,age,label\nb,f,31,x\na,m,20,y\nd,f,5,x\nc,m,77,y\n")
    return folder


def save(folder: Path, kind: str, x: NDArray[Any] = X) -> Path:
    if kind == "npy":
        np.save(folder / "features.npy", x)
    elif kind == "lists":
        column = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])
        pq.write_table(pa.table({"x": column}), folder / "features.parquet", row_group_size=3)
    else:
        columns = {f"c{i}": x[:, i] for i in range(x.shape[1])}
        pq.write_table(pa.table(columns), folder / "features.parquet", row_group_size=3)
    return folder


@pytest.mark.parametrize("spelled", ["{folder}/features.parquet", "{folder}/../{name}/features.parquet"])
def test_a_table_of_nodes_is_never_its_own_features(tmp_path: Path, spelled: str) -> None:
    """However its path is written: its secret would be a feature."""
    (tmp_path / "edges.csv").write_text("source,target\n1,0\n2,3\n0,2\n")
    table = pa.table({"id": [0, 1, 2, 3], "age": [3.0, 1.0, 2.0, 5.0], "gender": [0, 1, 1, 0]})
    pq.write_table(table, tmp_path / "features.parquet")
    nodes = spelled.format(folder=tmp_path, name=tmp_path.name)
    graph = gv.read_graph(tmp_path, nodes=nodes, attributes=["gender"])
    assert graph.x.size(1) == 1


@pytest.mark.parametrize("reading", [{"attributes": ["gender"]}, {"drop": ["gender"]}, {"label": "gender"}])
def test_mapped_features_without_the_columns_that_are_no_features(tmp_path: Path, reading: dict[str, Any]) -> None:
    pq.write_table(pa.table({"age": X[:, 0], "gender": X[:, 1]}), tables(tmp_path) / "features.parquet")
    with pytest.raises(gv.GraphveilError, match="has the column 'gender', which must not be a feature"):
        gv.read_graph(tmp_path, **reading)


@pytest.mark.parametrize("name", ["id", "node", "Node_ID", "nodeid", "vertex", "person", "class"])
def test_an_id_is_no_mapped_feature(tmp_path: Path, name: str) -> None:
    """Whether it has a usual name or that of the ids in the table of nodes; nor is a label."""
    (tables(tmp_path) / "nodes.csv").write_text("person,gender\nb,f\na,m\nd,f\nc,m\n")
    pq.write_table(pa.table({name: [0, 1, 2, 3], "age": X[:, 0]}), tmp_path / "features.parquet")
    with pytest.raises(gv.GraphveilError, match=f"has the column '{name}', which must not be a feature.*remove it"):
        gv.read_graph(tmp_path)


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(
        gv.GraphveilError,
        match=r"features\.parquet has features of shape \(4, 3\), and no temporary file can .*No space left",
    ):
        gv.read_graph(save(tables(tmp_path), "columns"))


def is_mapped(x: torch.Tensor) -> bool:
    """Whether a tensor is in the memory of a mapped file, by the kernel's own list."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        ends, _, _, _, inode, *name = line.split(maxsplit=5)
        low, high = (int(end, 16) for end in ends.split("-"))
        if low <= x.data_ptr() < high:
            return inode != "0" and bool(name)
    return False


@pytest.mark.parametrize("kind", ["npy", "lists", "columns"])
def test_rows_are_those_of_the_table_of_nodes_and_are_mapped(tmp_path: Path, kind: str) -> None:
    graph = gv.read_graph(save(tables(tmp_path), kind), attributes=["gender"])
    assert is_mapped(graph.x)
    assert graph.x.equal(torch.from_numpy(X))
    assert graph.gender.tolist() == [0, 1, 0, 1]
    assert graph.y.tolist() == [0, 1, 0, 1]
    assert graph.origin.ids.to_pylist() == ["b", "a", "d", "c"]
    assert any("mapped and not read into memory" in note for note in graph.origin.notes)
    in_memory = graph.clone()
    in_memory.x = torch.from_numpy(X.copy())
    assert not is_mapped(in_memory.x)
    assert digest(in_memory) == digest(graph)


def test_no_column_but_the_label_and_the_attributes_is_used_beside_mapped_features(tmp_path: Path) -> None:
    """Another column named like a label would be a feature, so all features would be copied into memory."""
    (tmp_path / "edges.csv").write_text("source,target\nb,a\nc,d\na,c\n")
    (tmp_path / "nodes.csv").write_text("id,job,class,category\nb,f,1,x\na,m,2,y\nd,f,5,x\nc,m,7,y\n")
    save(tmp_path, "npy")
    for label in (None, "job"):
        graph = gv.read_graph(tmp_path, label=label)
        assert is_mapped(graph.x)
        assert graph.x.size(1) == 3
    with pytest.raises(
        gv.GraphveilError, match=r"'category' cannot be a feature, because the features of nodes\.csv are"
    ):
        gv.read_graph(tmp_path, label="job", features=["category"])


def test_without_a_table_of_nodes_rows_are_those_of_the_sorted_ids(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n1,0\n2,3\n0,2\n")
    graph = gv.read_graph(save(tmp_path, "npy"))
    assert is_mapped(graph.x)
    assert graph.origin.ids.to_pylist() == [0, 1, 2, 3]


def test_a_newer_graph_is_read_in_the_same_way(tmp_path: Path) -> None:
    first = gv.read_graph(save(tables(tmp_path), "npy"), attributes=["gender"])
    again = gv.read_graph(tmp_path, attributes=["gender"], encoding=first.origin.encoding)
    assert again.x.equal(first.x)


def test_any_kind_of_numbers_is_mapped_and_used(tmp_path: Path) -> None:
    graph = gv.read_graph(save(tables(tmp_path), "npy", X.astype(np.float64)))
    assert graph.x.dtype == torch.float64
    assert is_mapped(graph.x)


@pytest.mark.parametrize(
    ("x", "says"),
    [
        (X[:3], "has 3 rows, and the graph has 4 nodes"),
        (X.astype(str), "expected one row for each node, in C order, of float16, float32"),
        (X.astype(">f4"), "type >f4: expected one row"),
        (X.astype(np.uint16), "type uint16: expected one row"),
        (X.astype(np.longdouble), "type float128: expected one row"),
        (X[:, 0], r"has shape \(4,\)"),
        (np.asfortranarray(X), "in C order"),
        (X[:, :0], "has 0 columns"),
        (np.full((4, 3), np.nan), "x holds NaN or infinite values"),
        (np.array([[{}]] * 4, dtype=object), "cannot be read as features"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, x: NDArray[Any], says: str) -> None:
    np.save(tables(tmp_path) / "features.npy", x)
    with pytest.raises(gv.GraphveilError, match=says) as caught:
        gv.read_graph(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("size", [0, 40, 100, 130])
@pytest.mark.parametrize("name", ["features.npy", "features.parquet"])
def test_a_truncated_file_is_refused(tmp_path: Path, name: str, size: int) -> None:
    file = save(tables(tmp_path), "npy" if name.endswith("npy") else "columns") / name
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(gv.GraphveilError, match="cannot be read") as caught:
        gv.read_graph(tmp_path)
    assert "\n" not in str(caught.value)


def test_other_parquet_files_are_refused(tmp_path: Path) -> None:
    for table, says in (
        (pa.table({"a": ["x", "y", "z", "w"]}), "has columns of string: expected numbers"),
        (pa.table({"a": [1.0, None, 2.0, 3.0]}), "has missing values"),
        (pa.table({"a": pa.array([], pa.float32())}), "has no rows"),
    ):
        pq.write_table(table, tables(tmp_path) / "features.parquet")
        with pytest.raises(gv.GraphveilError, match=says):
            gv.read_graph(tmp_path)


def test_two_files_of_features_are_refused(tmp_path: Path) -> None:
    save(save(tables(tmp_path), "npy"), "columns")
    with pytest.raises(gv.GraphveilError, match=r"holds 'features\.npy', 'features\.parquet': remove one of them"):
        gv.read_graph(tmp_path)
