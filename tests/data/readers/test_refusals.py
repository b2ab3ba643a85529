"""Untrusted files: every fault is reported in one sentence, quickly, and no code in a file is run."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData

import graphveil as gv
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
        (
            "source,target\nann,bob\n",
            'id,"age\n(years)",k\nann,1,2\nbob,3,4\n',
            "nodes.csv, line 1, ends within quotation marks, but the first row must be on one line",
        ),
        ('# "people"\n\nann,"bob\nbob",cid\n', None, "edges.csv, line 3, ends within quotation marks"),
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


@pytest.mark.parametrize("value", [3, None, [1, 2], object(), HeteroData(), Data(), np.zeros(3), np.zeros((2, 2)), {}])
def test_objects_that_are_no_graph(value: Any) -> None:
    assert refusal(value)


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
