"""Tables of links and of nodes: what is detected, kept, dropped and noted."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphveil as gv
from graphveil.data import open_graph
from tests.data.readers.made import EDGES, links, refusal, tables


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


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["1", "2", "30"], [1, 2, 30]),
        (["-5", "0", "9223372036854775807"], [-5, 0, 9223372036854775807]),
        (["007", "8", "9"], ["007", "8", "9"]),
        (["+1", "2", "3"], ["+1", "2", "3"]),
        (["-0", "1", "2"], ["-0", "1", "2"]),
        (["1.0", "2", "3"], ["1.0", "2", "3"]),
        (["0x10", "2", "3"], ["0x10", "2", "3"]),
        (["9223372036854775808", "2", "3"], [9223372036854775808, 2, 3]),
        (["9223372036854775808", "-2", "3"], ["9223372036854775808", "-2", "3"]),
        (["18446744073709551616", "2", "3"], ["18446744073709551616", "2", "3"]),
        (["NA", "nan", "null"], ["NA", "nan", "null"]),
        (["Zoë", "李", "a b"], ["Zoë", "李", "a b"]),
    ],
)
def test_ids_are_numbers_only_if_all_are_plainly_written(
    tmp_path: Path, written: list[str], expected: list[object]
) -> None:
    a, b, c = written
    graph = gv.read_graph(tables(tmp_path, f"u,v\n{a},{b}\n{b},{c}\n", f"id\n{a}\n{b}\n{c}\n"))
    assert graph.origin.ids.to_pylist() == expected
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([3, 1, 2], pa.int32()),
        pa.array([3, 1, 2], pa.uint8()),
        pa.array([2**63 + 1, 2**63, 5], pa.uint64()),
        pa.array(["c", "a", "b"]),
        pa.array(["c", "a", "b"], pa.large_string()),
        pa.array(["c", "a", "b"]).dictionary_encode(),
        pa.array([b"\x00\x01", b"\xff\xfe", b"zz"], pa.binary(2)),
        pa.array([18_000, 17_000, 16_000], pa.date32()),
    ],
    ids=lambda ids: str(ids.type),
)
def test_ids_of_any_type_in_parquet(tmp_path: Path, ids: pa.Array) -> None:
    pq.write_table(pa.table({"id": ids}), tmp_path / "nodes.parquet")
    pq.write_table(pa.table({"src": ids.take([0, 1]), "dst": ids.take([1, 2])}), tmp_path / "edges.parquet")
    graph = gv.read_graph(tmp_path)
    assert len(graph.origin.ids) == 3
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]
    if pa.types.is_integer(ids.type) and ids.type != pa.uint64():
        assert graph.origin.ids.equals(ids)


def test_tables_of_two_kinds_agree_on_their_ids(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([10, 20, 30], pa.int16())}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\n10,20\n30,20\n")
    graph = gv.read_graph(tmp_path)
    assert links(graph) == [(10, 20), (20, 30)]


def test_without_nodes_the_ends_are_the_nodes_in_order(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path, "from,to\n10,9\n9,100\n", nodes=None))
    assert graph.origin.ids.to_pylist() == [9, 10, 100]
    assert graph.origin.structural
    assert graph.x[:, 1].tolist() == pytest.approx([np.log(3), np.log(2), np.log(2)])


SNAP = "# Directed graph: example\n# Nodes: 3 Edges: 3\n# FromNodeId\tToNodeId\n0\t1\n1\t0\n2\t1\n"


@pytest.mark.parametrize(
    "text",
    [
        SNAP,
        "% sym unweighted\n% 3 3\n0 1\n1 0\n2 1\n",
        "0 1\n1 0\n2 1",
        "0  1\n1 0 \n 2\t1\n\n",
        "0,1\r\n1,0\r\n2,1\r\n",
        "0;1\n1;0\n2;1\n",
        "a|b\n0|1\n1|0\n2|1\n",
        "0\t1\r1\t0\r2\t1\r",
        "source target\n0 1\n1 0\n2 1\n",
        '"source","target"\n"0","1"\n"1","0"\n"2","1"\n',
        "source, target\n0, 1\n1, 0\n2, 1\n",
    ],
)
def test_lists_of_links_as_people_write_them(tmp_path: Path, text: str) -> None:
    file = tmp_path / "list.txt"
    file.write_bytes(text.encode())
    graph = gv.read_graph(file)
    assert graph.origin.ids.to_pylist() == [0, 1, 2]
    assert links(graph) == [(0, 1), (1, 2)]


def test_the_first_link_is_not_taken_for_a_header(tmp_path: Path) -> None:
    for text in ("ann bob\nbob cid\n", "ann\tbob\nbob\tcid\n"):
        (tmp_path / "list.txt").write_text(text)
        graph = gv.read_graph(tmp_path / "list.txt")
        assert links(graph) == [("ann", "bob"), ("bob", "cid")]
        assert "list.txt has no header." in graph.origin.notes
    (tmp_path / "list.txt").write_text("ann bob\nbob bob\n")
    assert "list.txt, line 2, links a node to itself" in refusal(tmp_path / "list.txt", loops="refuse")


def test_the_index_of_pandas_is_no_feature(tmp_path: Path) -> None:
    nodes = pa.table({"id": [1, 2, 3], "age": [1, 2, 4], "__index_level_0__": [0, 1, 2]})
    pq.write_table(nodes, tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("u,v\n1,2\n")
    assert gv.read_graph(tmp_path).x.size(1) == 1


def test_gz_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(EDGES.encode()))
    (tmp_path / "nodes.tsv.gz").write_bytes(
        gzip.compress(b"id\tz\nann\t1\nbob\t2\n") + gzip.compress(b"cid\t3\ndee\t4\n")
    )
    graph = gv.read_graph(tmp_path)
    assert links(graph) == [("ann", "bob"), ("bob", "cid"), ("cid", "dee")]
    assert graph.x.size(1) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_marks_of_encodings_are_understood(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "edges.csv").write_text("source,target\nZoë,李\n", encoding=encoding)
    assert links(gv.read_graph(tmp_path)) == [("Zoë", "李")]


def test_another_encoding_is_reported_with_its_line_and_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\nZoë,b\n", encoding="latin-1")
    sentence = refusal(tmp_path)
    assert "edges.csv, line 3, has the byte 0xeb" in sentence
    assert "--text-encoding latin-1" in sentence
    assert gv.read_graph(tmp_path, text_encoding="latin-1").origin.ids.to_pylist() == ["Zoë", "a", "b"]


MESSY = "source,target,weight\na,b,1\nb,a,2\na,b,3\nb,c,.5\nc,c,9\nc,d,4\n"


def test_what_is_dropped_is_counted(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path, MESSY, nodes=None))
    assert links(graph) == [("a", "b"), ("b", "c"), ("c", "d")]
    notes = " ".join(graph.origin.notes)
    assert "1 self-loop dropped." in notes
    assert "1 duplicate link dropped." in notes
    assert "1 link exists in both directions and counts once" in notes
    assert "3 links from 6 rows." in notes


def test_options_of_links(tmp_path: Path) -> None:
    folder = tables(tmp_path, MESSY, nodes=None)
    assert links(gv.read_graph(folder, direction="mutual")) == [("a", "b")]
    assert links(gv.read_graph(folder, min_weight=2.5)) == [("a", "b"), ("c", "d")]
    assert "edges.csv, line 6, links a node to itself" in refusal(folder, loops="refuse")
    assert "edges.csv, line 4, repeats a link" in refusal(folder, duplicates="refuse")
    assert "line 3, repeats a link" in refusal(
        tables(tmp_path, "source,target\na,b\na,b\nc,c\n", nodes=None), duplicates="refuse"
    )


def test_lines_are_counted_past_comments_blank_lines_and_quoted_breaks(tmp_path: Path) -> None:
    edges = '# a comment\n\nsource,target,note\nann,bob,"two\nlines"\n\nbob,bob,none\n'
    assert "edges.csv, line 7, links a node to itself" in refusal(tables(tmp_path, edges), loops="refuse")


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


words = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters='"'), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    ids=st.lists(words.map(str.strip).filter(bool), min_size=2, max_size=8, unique=True),
    ends=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=12),
)
def test_any_words_come_back_as_ids(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str], ends: list[tuple[int, int]]
) -> None:
    """Quoted, any word without a quotation mark is an id, and the links are those that were written."""
    folder = tmp_path_factory.mktemp("words")
    pairs = [(ids[a % len(ids)], ids[b % len(ids)]) for a, b in ends]
    tables(
        folder,
        "source,target\n" + "".join(f'"{a}","{b}"\n' for a, b in pairs),
        "id,z\n" + "".join(f'"{name}",{place}\n' for place, name in enumerate(ids)),
    )
    graph = gv.read_graph(folder)
    assert [str(found) for found in graph.origin.ids.to_pylist()] == ids
    expected = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    assert {frozenset(map(str, pair)) for pair in links(graph)} == expected


@pytest.mark.parametrize("parquet", [True, False])
def test_the_largest_ids_stay_numbers(tmp_path: Path, parquet: bool) -> None:
    ids = [2**64 - 1, 2**63, 7]
    edges, nodes = {"source": ids[:2], "target": ids[1:]}, {"id": ids, "n": [1, 2, 4]}
    for name, columns in (("edges", edges), ("nodes", nodes)):
        table = pa.table({key: pa.array(values, pa.uint64()) for key, values in columns.items()})
        if parquet:
            pq.write_table(table, tmp_path / f"{name}.parquet")
        else:
            pa_csv.write_csv(table, tmp_path / f"{name}.csv")
    graph = gv.read_graph(tmp_path)
    assert (graph.origin.ids.type, graph.origin.ids.to_pylist()) == (pa.uint64(), ids)
    assert links(graph) == [(2**63, 7), (2**64 - 1, 2**63)]


@pytest.mark.parametrize(
    ("edges", "nodes"),
    [
        ("source,target\nnode 0 ,node 1\nnode 1,node 2 \n", "id,n\nnode 0,1\nnode 1,2\nnode 2,4\n"),
        ("source,target\nnode 0,node 1\nnode 1,node 2\n", "n,id\n1,node 0 \n2,node 1\t\n4,node 2\n"),
        ("source,target\nnode 0,node 1\nnode 1,node 2\n", 'id,n\n"node 0 ",1\n node 1,2\n"node 2",4\n'),
    ],
)
def test_blanks_at_the_ends_of_a_cell_are_no_part_of_an_id(tmp_path: Path, edges: str, nodes: str) -> None:
    graph = gv.read_graph(tables(tmp_path, edges, nodes))
    assert graph.origin.ids.to_pylist() == ["node 0", "node 1", "node 2"]
    assert links(graph) == [("node 0", "node 1"), ("node 1", "node 2")]


def test_notes_use_the_singular_for_one(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path, "source,target\nann,ann\n", "id,n\nann,1\n"))
    assert "Nodes are the 1 row of nodes.csv, with the ids of the column 'id'." in graph.origin.notes
    assert "1 self-loop dropped." in graph.origin.notes
    assert "links a node to itself, the only such row: remove it" in refusal(tmp_path, loops="refuse")
