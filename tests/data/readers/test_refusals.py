"""Untrusted files: every fault is reported in one sentence, quickly, and no code in a file is run."""

import gzip
import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData

import graphveil as gv
from graphveil.data.readers import safe_open, text
from graphveil.data.readers.arrays import check_compressed
from tests.data.readers.made import NODES, refusal, tables


@pytest.mark.parametrize(
    ("edges", "nodes", "sentence"),
    [
        ("", None, "edges.csv is empty"),
        ("\n\n# nothing\n", None, "edges.csv is empty"),
        ("source,target\n", None, "edges.csv has no node"),
        ("source\na\n", None, "edges.csv has 1 column and no target"),
        ("source,target\na,b\nc\n", None, "edges.csv, line 3, has 1 column, but the table has 2"),
        ("source,target\na,b,c\n", None, "edges.csv, line 2, has 3 columns, but the table has 2"),
        (
            "source,target\nann,eve\n",
            NODES,
            "edges.csv, line 2, column 'target', has the id 'eve', which is not in the table of nodes",
        ),
        ("source,target\nann,bob\n,bob\n", NODES, "edges.csv, line 3, column 'source', is empty"),
        ("source,source\na,b\n", None, "edges.csv has two columns called 'source'"),
        ("source,target\nann,bob\n", "id\nann\nbob\nann\n", "nodes.csv, line 4, column 'id', repeats the id 'ann'"),
        ("source,target\nann,bob\n", "id,k\nann,1\n,2\n", "nodes.csv, line 3, column 'id', has no id"),
        ("source,target\nann,bob\n", "id\n", "line 2, column 'source', has the id 'ann'"),
        ("source,target\n1,2\n", "id\n01\n2\n", "line 2, column 'source', has the id '1'"),
        ("source,target\na\0b,c\n", None, "edges.csv, line 2, has a zero byte"),
        ('source,target\n"a,b\nc,d\n', None, "edges.csv"),
        ("source,target\n" + "a" * 200_000 + ",eve\n", NODES, "edges.csv, line 2, column 'source', has the id 'aaa"),
    ],
)
def test_faults_of_tables_say_where(tmp_path: Path, edges: str, nodes: str | None, sentence: str) -> None:
    assert sentence in refusal(tables(tmp_path, edges, nodes))


def test_a_graph_without_a_link_or_with_one_node_is_read(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path, "source,target\n"))
    assert graph.edge_index.shape == (2, 0)
    assert graph.x.size(0) == 4
    assert gv.read_graph(tables(tmp_path, "source,target\na,a\n", nodes=None)).x.size(0) == 1


def test_what_is_no_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is not a regular file" in refusal(tmp_path / "pipe.csv")
    assert "is not a regular file" in refusal("/dev/zero")
    tables(tmp_path, nodes=None)
    os.mkfifo(tmp_path / "nodes.csv")
    assert "is not a regular file" in refusal(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    assert "holds no table" in refusal(tmp_path / "folder.csv")
    assert "No such file" in refusal(tmp_path / "none.csv")
    assert "File name too long" in refusal(str(tmp_path / ("n" * 300)))
    assert "null byte" in refusal("a\0b")


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("u,v\na,b\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    assert gv.read_graph(tmp_path / "link.csv").x.size(0) == 2
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    assert "loop" in refusal(tmp_path / "loop.csv")


@pytest.mark.parametrize("value", [3, None, [1, 2], object(), HeteroData(), Data(), np.zeros(3), np.zeros((2, 2)), {}])
def test_objects_that_are_no_graph(value: Any) -> None:
    assert refusal(value)


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


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/graphveil-was-here",)


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    evil = np.array([Evil()], dtype=object)
    np.savez(tmp_path / "evil.npz", edge_index=evil)
    np.save(tmp_path / "evil.npy", evil)
    torch.save({"edge_index": Evil()}, tmp_path / "evil.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Evil()))
    assert "'edge_index' holds Python objects" in refusal(tmp_path / "evil.npz")
    assert "holds Python objects" in refusal(tmp_path / "evil.npy")
    assert "uses posix.system, which is not allowed" in refusal(tmp_path / "evil.pt")
    assert "is not a file of torch.save" in refusal(tmp_path / "plain.pt")
    assert not Path("/tmp/graphveil-was-here").exists()


def test_bombs_are_refused_unopened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_open, "SMALL", 1 << 20)
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(b"0,0\n" * 2_000_000))
    assert "as a decompression bomb does" in refusal(tmp_path / "edges.csv.gz")
    with zipfile.ZipFile(tmp_path / "zeros.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        content = io.BytesIO()
        np.save(content, np.zeros((2, 1_000_000), dtype=np.int64))
        archive.writestr("edge_index.npy", content.getvalue())
    assert "as a decompression bomb does" in refusal(tmp_path / "zeros.npz")
    pq.write_table(
        pa.table({"u": np.zeros(50_000_000, dtype=np.int8), "v": np.zeros(50_000_000, dtype=np.int8)}),
        tmp_path / "e.parquet",
    )
    assert "as a decompression bomb does" in refusal(tmp_path / "e.parquet")


def test_an_array_that_announces_more_than_there_is(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<i8", "fortran_order": False, "shape": (2, 10**15)})
    (tmp_path / "huge.npy").write_bytes(content.getvalue())
    assert "declares 16,000,000,000,000,000 bytes, but the file has" in refusal(tmp_path / "huge.npy")


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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_xml_with_definitions_is_refused(tmp_path: Path, encoding: str) -> None:
    bomb = "".join(f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">' for level in range(1, 9))
    xml = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE g [<!ENTITY a0 "lol">{bomb}]><graphml>&a8;</graphml>'
    for kind in ("graphml", "gexf"):
        (tmp_path / f"bomb.{kind}").write_text(xml, encoding=encoding)
        assert "has a DOCTYPE" in refusal(tmp_path / f"bomb.{kind}")
    (tmp_path / "torn.graphml").write_text("<graphml>\n<graph")
    assert "cannot be read as graphml" in refusal(tmp_path / "torn.graphml")
    (tmp_path / "words.graphml").write_text("hello\n")
    assert "words.graphml, line 1, column 1, is not XML" in refusal(tmp_path / "words.graphml")
    (tmp_path / "deep.gml").write_text("graph [ " + "a [ " * 100_000)
    assert "deep.gml cannot be read as gml" in refusal(tmp_path / "deep.gml")


def test_more_columns_than_can_be_meant(tmp_path: Path) -> None:
    header = ",".join(f"c{number}" for number in range(1_000_000))
    (tmp_path / "edges.csv").write_text(f"{header}\n")
    assert "edges.csv has 1,000,000 columns, and at most 100,000 are supported" in refusal(tmp_path)


def test_a_row_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_ROW_BYTES", 1 << 20)
    assert "has a row of more than 1 MB" in refusal(tables(tmp_path, 'source,target\n"a' + "b" * (3 << 20), nodes=None))
    assert "has a first row of more than 1 MB" in refusal(tables(tmp_path, "b" * (3 << 20), nodes=None))


@pytest.mark.parametrize(
    "name", ["edges.parquet", "g.npz", "g.npy", "g.pt", "g.graphml", "g.gexf", "g.gml", "edges.csv.gz"]
)
@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"PAR1PAR1", b"\x1f\x8b\x08\x00", b"PK\x03\x04" + b"\0" * 60, b"\xff" * 99]
)
def test_files_of_rubbish(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert name in refusal(tmp_path / name)


def test_a_kind_of_file_that_nobody_knows(tmp_path: Path) -> None:
    (tmp_path / "graph.docx").write_text("a")
    assert "ends in '.docx', which is not a supported format" in refusal(tmp_path / "graph.docx")
    assert "holds no table: expected one edges.csv" in refusal(tmp_path)


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=200),
    st.sampled_from(["edges.csv", "edges.tsv", "edges.txt", "g.gml", "g.graphml", "g.npy", "g.parquet"]),
)
def test_any_bytes_are_a_graph_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    file = tmp_path_factory.mktemp("bytes") / name
    file.write_bytes(data)
    assert outcome(file)


lines = st.lists(
    st.lists(st.sampled_from(["a", "b", "1", "-2", "", '"', "x y", "é", "nan", "1e999", "#", "007"]), max_size=4),
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(lines, lines, st.sampled_from([",", ";", "\t", " ", "|"]))
def test_any_tables_are_a_graph_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, edges: list[list[str]], nodes: list[list[str]], mark: str
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    tables(folder, *("\n".join(mark.join(row) for row in table) for table in (edges, nodes)))
    assert outcome(folder)


def outcome(source: Path) -> str:
    """A graph that holds together, or one line."""
    try:
        graph = gv.read_graph(source)
    except gv.GraphveilError as error:
        return "" if "\n" in str(error) else str(error)
    return "a graph" if len(graph.origin.ids) == graph.x.size(0) > 0 else ""


def test_a_reader_alters_nothing_in_its_folder(tmp_path: Path) -> None:
    tables(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    gv.read_graph(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_names_without_end_make_no_sentence_without_end(tmp_path: Path) -> None:
    name = "n" * 5000
    (tmp_path / "links.csv").write_text(f"source,target,{name},{name}\n1,2,3,4\n")
    with pytest.raises(gv.GraphveilError, match="two columns") as refused:
        gv.read_graph(tmp_path / "links.csv")
    assert len(str(refused.value)) <= 500 + len(str(tmp_path / "links.csv"))
    assert "links.csv" in str(refused.value)
    (tmp_path / "links.csv").write_text(f"{name},target\n1,2\n")
    assert max(map(len, gv.read_graph(tmp_path / "links.csv").origin.notes)) <= 600


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


def test_a_wrong_encoding_is_named(tmp_path: Path) -> None:
    """Two bytes are one letter then, and no letter is the end of a line."""
    rows = "".join(f"a{number % 10},b{number % 10}\n" for number in range(60_000))
    folder = tables(tmp_path, "source,target\n" + rows, None)
    sentence = refusal(folder / "edges.csv", text_encoding="utf-16")
    assert "cannot be read as 'utf-16' (all lines would become one)" in sentence
