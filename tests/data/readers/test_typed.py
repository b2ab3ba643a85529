"""Tables in memory: pandas, polars, pyarrow and whatever has Arrow's PyCapsule interface, with the checks of files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
import torch

import graphveil as gv
from tests.data.readers.made import EDGES, NODES, links, tables

MakeTable = Callable[[Mapping[str, list[Any]]], Any]


class Capsule:
    """A table of a library that nobody knows."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.fixture(params=["pyarrow", "pandas", "polars", "capsule", "views"])
def make(request: pytest.FixtureRequest) -> MakeTable:
    if request.param == "capsule":
        return lambda columns: Capsule(pa.table(columns))
    if request.param == "views":
        return lambda columns: Capsule(pa.table(columns).cast(views(pa.table(columns).schema)))
    library = pytest.importorskip(request.param)
    made: MakeTable = library.table if request.param == "pyarrow" else library.DataFrame
    return made


def views(schema: pa.Schema) -> pa.Schema:
    """As polars exports texts."""
    return pa.schema([(one.name, pa.string_view() if pa.types.is_string(one.type) else one.type) for one in schema])


def columns(text: str) -> dict[str, list[Any]]:
    """A CSV file in memory."""
    table = pa_csv.read_csv(
        pa.BufferReader(text.encode()), convert_options=pa_csv.ConvertOptions(strings_can_be_null=True)
    )
    found: dict[str, list[Any]] = table.to_pydict()
    return found


def test_tables_in_memory_are_read_like_files(make: MakeTable, tmp_path: Path) -> None:
    expected = gv.read_graph(tables(tmp_path), attributes=["gender"])
    graph = gv.read_graph(make(columns(EDGES)), nodes=make(columns(NODES)), attributes=["gender"])
    assert torch.equal(graph.x, expected.x)
    assert torch.equal(graph.edge_index, expected.edge_index)
    assert torch.equal(graph.y, expected.y)
    assert torch.equal(graph.gender, expected.gender)
    assert graph.origin.ids.to_pylist() == ["ann", "bob", "cid", "dee"]
    notes = graph.origin.notes
    assert "Links are read from the columns 'source' and 'target' of the table of links." in notes
    assert "Nodes are the 4 rows of the table of nodes, with the ids of the column 'id'." in notes


def test_links_alone_with_named_columns(make: MakeTable) -> None:
    graph = gv.read_graph(make({"who": [7, 8], "whom": [8, 11], "kilo": [0.5, 2.0]}), source="who", target="whom")
    assert links(graph) == [(7, 8), (8, 11)]


def test_nodes_in_a_file(make: MakeTable, tmp_path: Path) -> None:
    tables(tmp_path)
    graph = gv.read_graph(make(columns(EDGES)), nodes=str(tmp_path / "nodes.csv"))
    assert graph.x.size(0) == 4


@pytest.mark.parametrize(
    ("edges", "nodes", "says"),
    [
        ({"source": ["ann"], "target": ["eve"]}, {"id": ["ann"]}, "the table of links, data row 1.*'eve'"),
        ({"source": ["ann"], "target": ["ann"]}, {"id": ["ann", "ann"]}, "the table of nodes, data row 2"),
        ({"source": ["ann"]}, {"id": ["ann"]}, "the table of links has 1 column and no target"),
        (
            {"source": ["ann"], "target": ["bob"], "weight": ["x"]},
            {"id": ["ann", "bob"]},
            "weight that is not a number",
        ),
    ],
)
def test_the_checks_are_those_of_files(
    edges: dict[str, list[Any]], nodes: dict[str, list[Any]], says: str, make: MakeTable
) -> None:
    with pytest.raises(gv.GraphveilError, match=says):
        gv.read_graph(make(edges), nodes=make(nodes))


def test_a_table_of_nodes_needs_a_table_of_links(make: MakeTable, tmp_path: Path) -> None:
    with pytest.raises(gv.GraphveilError, match="the links are not a table in memory: give both as tables"):
        gv.read_graph(tables(tmp_path), nodes=make(columns(NODES)))


def test_the_index_of_pandas_is_a_column_without_a_name() -> None:
    pandas = pytest.importorskip("pandas")
    people = pandas.DataFrame(columns(NODES), index=["p", "q", "r", "s"])
    before = people.copy()
    graph = gv.read_graph(pandas.DataFrame(columns(EDGES)), nodes=people)
    assert any("without a name are not read: '__index_level_0__'" in note for note in graph.origin.notes)
    assert people.equals(before), "the caller's table is not changed"
    twice = pandas.DataFrame([["ann", "bob", 1]], columns=["source", "target", "target"])
    with pytest.raises(gv.GraphveilError, match="the table of links"):
        gv.read_graph(twice)
    mixed = pandas.DataFrame({"source": ["ann", 3], "target": ["bob", b"x"]}, dtype=object)
    with pytest.raises(gv.GraphveilError, match="the table of links is a DataFrame that cannot be used as a table"):
        gv.read_graph(mixed)


def test_categories_are_classes() -> None:
    polars = pytest.importorskip("polars")
    people = polars.DataFrame(columns(NODES)).with_columns(polars.col("gender").cast(polars.Categorical))
    graph = gv.read_graph(polars.DataFrame(columns(EDGES)), nodes=people, attributes=["gender"])
    assert graph.gender.tolist() == [0, 1, -1, 0]
