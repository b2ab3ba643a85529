"""Tables of text: delimiters, headers, comments, blanks and lines that are counted."""

from pathlib import Path

import pytest

import graphveil as gv
from tests.data.readers.made import links, refusal, tables


def test_a_column_that_looks_like_numbers_at_first(tmp_path: Path) -> None:
    """pyarrow guesses the type of a column from its first eight megabytes."""
    rows = [f"{row},{row % 7}{'0' * 400}1" for row in range(25_000)]
    rows.append("25000,word")
    nodes = "id,k\n" + "\n".join(rows) + "\n"
    graph = gv.read_graph(tables(tmp_path, "u,v\n0,1\n", nodes), attributes=["k"])
    assert len(graph.origin.encoding.classes["k"]) == 8


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


def test_lines_are_counted_past_comments_blank_lines_and_quoted_breaks(tmp_path: Path) -> None:
    edges = '# a comment\n\nsource,target,note\nann,bob,"two\nlines"\n\nbob,bob,none\n'
    assert "edges.csv, line 7, links a node to itself" in refusal(tables(tmp_path, edges), loops="refuse")


@pytest.mark.parametrize(
    ("edges", "place"),
    [
        ("# a comment\n\nsource,target\n\nann,bob\n\r\nbob,bob\n", "line 7"),
        ('# a comment\nsource,target,note\nann,bob,none\nbob,bob,"two\nlines"\n', "lines 4 to 5"),
        ('source,target,note\r\nann,bob,"a\rb\r\nc"\r\n\r\nbob,bob,none\r\n', "line 6"),
        ('source,target,note\nann,bob,"' + 200_000 * "a" + '"\n\nbob,bob,none\n', "data row 2"),
        ("source,target,note\nann,bob," + 200_000 * "a" + "\n\nbob,bob,none\n", "line 4"),
        ("source target\n ann\tbob \n\n   \nbob  bob\n", "line 5"),
    ],
)
def test_a_row_is_named_by_its_lines_where_they_are_known(tmp_path: Path, edges: str, place: str) -> None:
    (tmp_path / "list.txt").write_bytes(edges.encode())
    assert f"list.txt, {place}, links a node to itself" in refusal(tmp_path / "list.txt", loops="refuse")


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


def test_a_quotation_mark_within_a_name_is_no_open_quote(tmp_path: Path) -> None:
    nodes = 'id,height (5"),"a ""b"""\nann,1,2\nbob,3,5\ncid,4,4\ndee,5,1\n'
    assert gv.read_graph(tables(tmp_path, nodes=nodes), features=['height (5")', 'a "b"']).x.size(1) == 2


def test_more_columns_than_can_be_meant(tmp_path: Path) -> None:
    header = ",".join(f"c{number}" for number in range(1_000_000))
    (tmp_path / "edges.csv").write_text(f"{header}\n")
    assert "edges.csv has 1,000,000 columns, and at most 100,000 are supported" in refusal(tmp_path)


def test_a_row_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphveil.data.readers.text.MAX_ROW_BYTES", 1 << 20)
    assert "has a row of more than 1 MB" in refusal(tables(tmp_path, 'source,target\n"a' + "b" * (3 << 20), nodes=None))
    assert "has a first row of more than 1 MB" in refusal(tables(tmp_path, "b" * (3 << 20), nodes=None))
