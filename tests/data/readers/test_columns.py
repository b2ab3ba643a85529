"""Words for nothing in a column, and options and targets that name no column."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphveil as gv
from graphveil.data import check_targets, node_classes
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
