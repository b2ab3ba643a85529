"""Tables of links and of nodes: which columns are detected, in which order nodes are kept, and what is noted."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphveil as gv
from graphveil.data import open_graph
from tests.data.readers.made import links, refusal, tables


def test_two_tables_are_a_graph(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path), attributes=["gender"])
    assert graph.origin.ids.to_pylist() == ["ann", "bob", "cid", "dee"]
    assert links(graph) == [("ann", "bob"), ("bob", "cid"), ("cid", "dee")]
    assert graph.edge_index.size(1) == 6, "both directions"
    assert graph.y.tolist() == [0, 1, 0, 1]
    assert graph["gender"].tolist() == [0, 1, -1, 0]
    assert graph.origin.encoding.classes == {"labels": ["x", "y"], "gender": ["f", "m"]}
    deviation = float(np.std([20, 30, 40]))
    ages = [(20 - 30) / deviation, 0, 0, (40 - 30) / deviation]  # the missing one stands as the mean
    assert np.allclose(graph.x, [[ages[0], 0, 1], [ages[1], 1, 0], [ages[2], 0, 1], [ages[3], 1, 0]])
    assert not graph.origin.structural


@pytest.mark.parametrize("order", ["dee,bob,ann,cid", "cid,ann,dee,bob"])
def test_the_order_of_the_nodes_is_kept(tmp_path: Path, order: str) -> None:
    names = order.split(",")
    graph = gv.read_graph(tables(tmp_path, nodes="id\n" + "\n".join(names) + "\n"))
    assert graph.origin.ids.to_pylist() == names
    assert {frozenset(pair) for pair in links(graph)} == {
        frozenset(pair) for pair in [("ann", "bob"), ("bob", "cid"), ("cid", "dee")]
    }


def test_the_index_of_pandas_is_no_feature(tmp_path: Path) -> None:
    nodes = pa.table({"id": [1, 2, 3], "age": [1, 2, 4], "__index_level_0__": [0, 1, 2]})
    pq.write_table(nodes, tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("u,v\n1,2\n")
    assert gv.read_graph(tmp_path).x.size(1) == 1


def test_columns_are_detected_in_any_case_and_can_be_given(tmp_path: Path) -> None:
    edges = "Weight,TO,From\n3,b,a\n1,c,b\n"
    assert links(gv.read_graph(tables(tmp_path, edges, nodes=None), min_weight=2)) == [("a", "b")]
    edges = "when,who,whom\n1,a,b\n2,b,c\n"
    graph = gv.read_graph(tables(tmp_path, edges, nodes=None), source="who", target="whom")
    assert links(graph) == [("a", "b"), ("b", "c")]
    assert any("'who' and 'whom'" in note for note in graph.origin.notes)


def test_a_table_of_nodes_is_found_beside_its_links(tmp_path: Path) -> None:
    (tmp_path / "club_edges.csv").write_text("u,v\n1,2\n")
    (tmp_path / "club_nodes.csv").write_text("id,z\n2,5\n1,6\n3,7\n")
    (tmp_path / "other_nodes.csv").write_text("id\n9\n")
    assert gv.read_graph(tmp_path / "club_edges.csv").origin.ids.to_pylist() == [2, 1, 3]
    (tmp_path / "list.csv").write_text("u,v\n1,2\n")
    assert gv.read_graph(tmp_path / "list.csv").origin.ids.to_pylist() == [1, 2], "only by its name"
    graph = gv.read_graph(tmp_path / "list.csv", nodes=str(tmp_path / "club_nodes.csv"))
    assert graph.origin.ids.to_pylist() == [2, 1, 3]
    assert gv.read_graph(tmp_path / "list.csv", nodes="club_nodes.csv").origin.ids.to_pylist() == [2, 1, 3]


def test_an_unnamed_first_column_is_the_id_or_nothing(tmp_path: Path) -> None:
    """As pandas writes its index."""
    graph = gv.read_graph(tables(tmp_path, "source,target\n5,6\n", ",age\n5,1\n6,2\n"))
    assert graph.origin.ids.to_pylist() == [5, 6]
    graph = gv.read_graph(tables(tmp_path, "source,target\na,b\n", ",id,age\n0,a,1\n1,b,2\n"))
    assert graph.origin.ids.to_pylist() == ["a", "b"]
    assert graph.x.size(1) == 1, "a row number is no feature"


def test_names_come_before_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "karate").mkdir()
    tables(tmp_path / "karate")
    monkeypatch.chdir(tmp_path)
    assert open_graph("karate").x.size(0) == 34
    assert open_graph("./karate").x.size(0) == 4
    with pytest.raises(gv.GraphveilError, match=r"use ./karate for a folder"):
        open_graph("karate", gv.ReadOptions(label="x"))
    with pytest.raises(
        gv.GraphveilError, match=r"unknown graph 'karat': give a file, a folder or one of cora.*'karate'"
    ):
        open_graph("karat")
    with pytest.raises(gv.GraphveilError, match="cannot read 'no/such': No such file"):
        open_graph("no/such")


def test_notes_use_the_singular_for_one(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path, "source,target\nann,ann\n", "id,n\nann,1\n"))
    assert "Nodes are the 1 row of nodes.csv, with the ids of the column 'id'." in graph.origin.notes
    assert "1 self-loop dropped." in graph.origin.notes
    assert "links a node to itself (the only such row): remove it" in refusal(tmp_path, loops="refuse")


def test_detected_columns_are_recorded(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path, nodes="node,label,age\nann,x,1\nbob,y,2\ncid,x,3\ndee,y,4\n"))
    reading = graph.origin.reading
    assert (reading.source, reading.target, reading.id, reading.label) == ("source", "target", "node", "label")
    bare = gv.read_graph(tables(tmp_path, "ann,bob\nbob,ann\nbob,cid\n", nodes=None))
    reading = bare.origin.reading
    assert (reading.source, reading.target, reading.id, reading.label) == (None, None, None, None), (
        "columns without a name"
    )
    again = gv.read_graph(tmp_path, reading)
    assert again.edge_index.equal(bare.edge_index)
