"""Tables with unexpected names, and spreadsheets: each is named, with what to do, and never left out in silence."""

from pathlib import Path

import pytest

import graphveil as gv
from tests.data.readers.made import NODES, tables


def named(folder: Path, name: str) -> Path:
    """The tables of a graph, with the table of nodes under another name."""
    tables(folder, nodes=None)
    (folder / name).write_text(NODES, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["customers.csv", "attributes.tsv", "2024.parquet"])
def test_a_table_with_an_unexpected_name_is_asked_about(name: str, tmp_path: Path) -> None:
    sentence = f"holds {name}: if it is the table of nodes, give --nodes {name}; if the graph has no table of nodes"
    with pytest.raises(gv.GraphveilError, match=sentence):
        gv.read_graph(named(tmp_path, name))


def test_both_answers_work(tmp_path: Path) -> None:
    folder = named(tmp_path, "customers.csv")
    assert gv.read_graph(folder, nodes="customers.csv").origin.columns[0] == "age"
    alone = gv.read_graph(folder / "edges.csv")
    assert "No table of nodes: nodes are the 4 ids of the links, sorted." in alone.origin.notes


@pytest.mark.parametrize("name", ["people.xlsx", "nodes.XLSX", "people.ods"])
def test_a_spreadsheet_is_asked_about(name: str, tmp_path: Path) -> None:
    with pytest.raises(gv.GraphveilError, match=f"holds {name}, a spreadsheet, which is not read: save it as"):
        gv.read_graph(named(tmp_path, name))
    for wrong in ({"source": tmp_path / name}, {"source": tmp_path, "nodes": name}):
        with pytest.raises(gv.GraphveilError, match=f"{name} is a spreadsheet, which is not read: save the sheet"):
            gv.read_graph(wrong.pop("source"), **wrong)
    (tmp_path / "edges.csv").unlink()
    with pytest.raises(gv.GraphveilError, match=rf"holds {name}: expected one edges.csv .* Save spreadsheets as CSV\."):
        gv.read_graph(tmp_path)


@pytest.mark.parametrize("name", ["README.txt", "LICENSE.txt", "~$people.xlsx", "notes.md"])
def test_files_for_people_are_not_tables(name: str, tmp_path: Path) -> None:
    assert gv.read_graph(named(tmp_path, name)).x.size(0) == 4


def test_a_table_of_nodes_with_its_usual_name_leaves_no_question(tmp_path: Path) -> None:
    tables(named(tmp_path, "customers.csv"))
    assert gv.read_graph(tmp_path).x.size(0) == 4


def test_of_several_tables_of_nodes_one_can_be_named(tmp_path: Path) -> None:
    tables(tmp_path)
    (tmp_path / "users.csv").write_text(NODES, encoding="utf-8")
    with pytest.raises(gv.GraphveilError, match="at most one nodes"):
        gv.read_graph(tmp_path)
    assert gv.read_graph(tmp_path, nodes="users.csv").x.size(0) == 4
