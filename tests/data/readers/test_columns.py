"""Words for nothing in a column, and options and targets that name no column."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphveil as gv
from graphveil.data import check_targets, node_classes
from graphveil.data.readers.columns import BadCells, missing_words, mostly_numbers, words
from tests.data.readers.made import people, refusal, tables


def test_a_word_for_nothing_is_a_class_and_an_empty_cell_is_none(tmp_path: Path) -> None:
    folder = people(tmp_path, "illness: None flu None . cancer NA", "k: NA 1 2 None 1 null", "w: u NA v u v None")
    graph = gv.read_graph(folder, attributes=["illness", "k"])
    assert graph.origin.encoding.classes == {"illness": ["NA", "None", "cancer", "flu"], "k": ["1", "2"]}
    assert graph["illness"].tolist() == [1, 3, 1, -1, 2, 0]
    assert graph["k"].tolist() == [-1, 0, 1, -1, 0, -1], "among numbers such a word is none"
    assert graph.x.tolist() == [[1, 0], [0, 0], [0, 1], [1, 0], [0, 1], [0, 0]], "and among features"
    expected = "'NA', 'None' of 'illness' count as classes; leave a cell empty if its value is unknown."
    assert [note for note in graph.origin.notes if "leave a cell empty" in note] == [expected]
    newer = people(tmp_path, "illness: None . NA", "k: 1 1 2", "w: u u v")
    again = gv.read_graph(newer, attributes=["illness"], encoding=graph.origin.encoding)
    assert again["illness"].tolist() == [1, -1, 0], "though a table has no other words"
    cut = gv.read_graph(people(tmp_path, "k: 1 2 3 4"), attributes=["k"], bins={"k": 2})
    empty = gv.read_graph(people(tmp_path, "k: NA . NA"), attributes=["k"], encoding=cut.origin.encoding)
    assert empty["k"].tolist() == [-1, -1, -1]
    words = people(tmp_path, "k: NA old NA")
    assert "'k' held numbers, which were cut into bins" in refusal(
        words, attributes=["k"], encoding=cut.origin.encoding
    )


def test_one_word_for_nothing_in_a_typed_table(tmp_path: Path) -> None:
    column = pa.array(["None", None, "flu", "None"])
    pq.write_table(pa.table({"id": [0, 1, 2, 3], "illness": column}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("u,v\n0,1\n")
    graph = gv.read_graph(tmp_path, attributes=["illness"])
    assert graph["illness"].tolist() == [0, -1, 1, 0]
    assert "'None' of 'illness' counts as a class; leave a cell empty if its value is unknown." in (graph.origin.notes)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"direction": "both"}, "unknown direction 'both': choose one of either, mutual"),
        ({"missing": "zero"}, "unknown missing 'zero'"),
        ({"attributes": "gender"}, "attributes is 'gender': give a list of names"),
        ({"bins": {"age": 1}}, "1 bins are given for 'age'"),
        ({"bins": {"age": True}}, "True bins are given"),
        ({"min_weight": float("nan")}, "min_weight is nan"),
        ({"colour": 1}, "unknown option 'colour'"),
        ({"bins": {"age": 3}}, "bins are given for 'age', which is not an attribute"),
        ({"attributes": ["sex"]}, "nodes.csv has no column 'sex': it has 'age', 'city', 'gender', 'label'."),
        ({"min_weight": 1}, "the links have no weight"),
        ({"source": "who"}, "edges.csv has no column 'who': it has 'source', 'target'."),
    ],
)
def test_invalid_options(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal(tables(tmp_path), **options)


def test_the_error_for_a_missing_target_lists_the_columns(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path, nodes="id,age,city\nann,1,u\nbob,2,v\ncid,3,u\ndee,4,v\n"))
    for ask in (lambda: check_targets(graph, "links", ["labels"]), lambda: node_classes(graph, "labels")):
        with pytest.raises(
            gv.GraphveilError, match=r"no 'labels'.*columns 'age', 'city'\..* --secret NAME .*attributes="
        ):
            ask()
    read = gv.read_graph(tmp_path, attributes=["city"])
    with pytest.raises(gv.GraphveilError, match="no 'labels': it has 'city', and its table has the columns 'age'"):
        node_classes(read, "labels")


def text(*values: str | None) -> pa.ChunkedArray:
    return pa.chunked_array([list(values)], pa.string())


CELLS = BadCells("missing", lambda row: f"in row {row}")


def test_one_bad_cell_does_not_turn_numbers_into_words() -> None:
    notes: list[str] = []
    values = mostly_numbers(text(*map(str, range(18)), "12k", None, " 3 "), "income", notes, CELLS)
    assert values is not None
    assert np.isnan(values[[18, 19]]).all()
    assert values[[0, 17, 20]].tolist() == [0, 17, 3]
    assert notes == ["1 value of 'income' is not a number and counts as missing: '12k' in row 18."]


def test_a_bad_cell_is_refused_on_request(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i if i != 12 else '12k'},{'ab'[i % 2]}\n" for i in range(20))
    (tmp_path / "nodes.csv").write_text(f"id,income,label\n{rows}")
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(19)))
    says = r"'12k' in line 14 of nodes.csv is not a number, but 19 other values of 'income' .*--bad-values missing"
    with pytest.raises(gv.GraphveilError, match=says):
        gv.read_graph(tmp_path, bad_values="refuse")
    assert gv.read_graph(tmp_path, bad_values="refuse", drop=["income"]).x.size(0) == 20
    with pytest.raises(gv.GraphveilError, match=r"bad_values .no.*missing.*refuse"):
        gv.read_graph(tmp_path, bad_values="no")


def test_a_bad_cell_of_a_newer_table_is_refused_on_request(tmp_path: Path) -> None:
    old = gv.read_graph(people(tmp_path, "age: 20 30 40 50"))
    newer = people(tmp_path, "age: 20 30 x7 50")
    graph = gv.read_graph(newer, encoding=old.origin.encoding)
    assert graph.origin.differences == (
        "1 value of 'age' is not a number and counts as missing: 'x7' in line 4 of nodes.csv.",
    )
    assert graph.x[2] == 0, "the mean"
    assert "'x7' in line 4" in refusal(newer, encoding=old.origin.encoding, bad_values="refuse")


@pytest.mark.parametrize(
    ("nodes", "place"),
    [
        ("# people\n\nid,age\na,1\n\nb,2\nc,3\nd,x7\n", "in line 8 of nodes.csv"),
        ('id,note,age\na,"two\nlines",1\nb,"",2\nc,"",3\nd,"",x7\n', "in line 6 of nodes.csv"),
        ('id,note,age\na,"",1\nb,"",2\nc,"",3\nd,"two\r\nlines",x7\n', "in lines 5 to 6 of nodes.csv"),
        ("id;age\r\na;1\r\nb;2\r\n\r\nc;3\r\nd;x7\r\n", "in line 6 of nodes.csv"),
    ],
)
def test_a_bad_cell_is_named_by_its_line(tmp_path: Path, nodes: str, place: str) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    (tmp_path / "nodes.csv").write_bytes(nodes.encode())
    notes = gv.read_graph(tmp_path).origin.notes
    assert [note.partition(": ")[2] for note in notes if "not a number" in note] == [f"'x7' {place}."]


def test_a_bad_cell_without_a_line_is_named_by_its_row_or_its_node(tmp_path: Path) -> None:
    ages = ["1", "2", "x7", "3"]
    pq.write_table(pa.table({"id": list("abcd"), "age": ages}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    graph = nx.path_graph(["a", "b", "c", "d"])
    nx.set_node_attributes(graph, dict(zip("abcd", ages, strict=True)), "age")
    for source, place in ((tmp_path, "in data row 3 of nodes.parquet"), (graph, "of node 'c'")):
        assert any(note.endswith(f"counts as missing: 'x7' {place}.") for note in gv.read_graph(source).origin.notes)


@pytest.mark.parametrize(
    "values", [("1", "2", "3", "x7"), (*"1234567", "x7", None, ""), (*map(str, range(18)), "x", "y")]
)
def test_a_tenth_of_the_values_or_one_beside_three_numbers_may_be_bad(values: tuple[str | None, ...]) -> None:
    found = mostly_numbers(text(*values), "age", [], CELLS)
    assert found is not None
    assert np.isnan(found).tolist() == [value is None or not value.isdigit() for value in values]


def test_several_bad_cells_are_counted_and_the_first_is_named() -> None:
    notes: list[str] = []
    mostly_numbers(text(*map(str, range(40)), "12k", "x"), "income", notes, CELLS)
    assert notes == ["2 values of 'income' are not numbers and count as missing: the first is '12k' in row 40."]


def test_decimal_commas_are_numbers() -> None:
    notes: list[str] = []
    values = mostly_numbers(text("3,25", "-1,5", "7", "n/a"), "height", notes, CELLS)
    assert values is not None
    assert values[:3].tolist() == [3.25, -1.5, 7]
    assert np.isnan(values[3])
    assert notes == ["2 values of 'height' with a decimal comma: read as numbers."]


@pytest.mark.parametrize(
    "values",
    [
        ("980", "1,234", "12,500", "2,100"),
        ("-1", "1,234", "1,250,000", "2,500,000", "3,100,000"),
        ("3.5", "1,234", None, "x", "2.5", "4.5"),
        ("1", "1,234"),
    ],
)
def test_commas_that_may_separate_thousands_are_refused(values: tuple[str | None, ...]) -> None:
    """As decimal commas, a thousand would be less than two."""
    notes: list[str] = []
    with pytest.raises(gv.GraphveilError) as refused:
        mostly_numbers(text(*values), "income", notes, CELLS)
    assert str(refused.value) == (
        "'1,234' in row 1 may mean 1234 or 1.234, since every comma in 'income' is followed by exactly three digits:"
        " write the numbers of this column without commas, or drop it."
    )
    assert notes == []


@pytest.mark.parametrize("decimal", ["1,5", "0,125", "-00,125", "1234,567", "1,2345"])
def test_one_decimal_comma_shows_what_the_others_are(decimal: str) -> None:
    notes: list[str] = []
    values = mostly_numbers(text("1,234", decimal, "-12,500"), "height", notes, CELLS)
    assert values is not None
    assert values.tolist() == [1.234, float(decimal.replace(",", ".")), -12.5]
    assert notes == ["3 values of 'height' with a decimal comma: read as numbers."]


def test_an_ambiguous_column_is_refused_where_it_counts_as_numbers(tmp_path: Path) -> None:
    """As classes it is text, whose meaning does not matter."""
    tables(tmp_path, "source,target\n1,2\n", 'id,income\n1,"1,234"\n2,"12,500"\n3,980\n')
    sentence = "'1,234' in line 2 of nodes.csv may mean 1234 or 1.234"
    assert sentence in refusal(tmp_path)
    assert sentence in refusal(tmp_path, attributes=["income"], bins={"income": 2})
    assert gv.read_graph(tmp_path, drop=["income"]).origin.structural
    classes = gv.read_graph(tmp_path, attributes=["income"]).origin.encoding.classes
    assert classes["income"] == ["1,234", "12,500", "980"]


@pytest.mark.parametrize(
    "values",
    [
        ("a", "b", "3"),
        ("a1", "2", "3"),
        ("1", "2", "x", "y"),
        ("1", "2", "3", "a", "b", "c"),
        ("1,234,567", "2,000,000"),
        (None, None),
        ("7",),
        (*map(str, range(17)), "x", "y"),
    ],
)
def test_words_stay_words(values: tuple[str | None, ...]) -> None:
    notes: list[str] = []
    assert mostly_numbers(text(*values), "team", notes, CELLS) is None
    assert notes == []


@pytest.mark.parametrize("word", ["n/a", "unknown", "-", "NA", "?"])
def test_words_for_missing_values_are_missing(word: str) -> None:
    assert words(text("red", word), "team").to_pylist() == ["red", None]
    assert missing_words(text("red", word, "")) == [word]
