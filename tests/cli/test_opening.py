"""What a verb remembers of the graph that it opened: its name or path, how it was read, and its usual split."""

from pathlib import Path

import pytest
from torch_geometric.data import Data

from graphveil.cli.opening import open_and_show
from graphveil.data import ReadOptions
from graphveil.runs.opening import OpenedGraph
from tests.data.readers.made import tables


def test_a_graph_of_the_catalogue_is_remembered_by_its_name() -> None:
    opened = open_and_show("karate", ReadOptions(), None, (), ())
    assert opened.title == "karate"
    assert opened.source == {"graph": "karate", "reading": None}


@pytest.mark.parametrize(("name", "split"), [("cora", "paper"), ("karate", "proportional"), ("/cora", "proportional")])
def test_the_paper_s_split_is_the_default_for_its_graphs_only(name: str, split: str) -> None:
    """A file that is called like one of them is no such graph."""
    assert OpenedGraph(Data(), name, None).default_split == split


def test_tables_are_remembered_by_their_path_with_the_columns_that_were_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "people").mkdir()
    tables(tmp_path / "people")
    monkeypatch.chdir(tmp_path)
    opened = open_and_show("people", ReadOptions(), None, ("links", "gender"), ())
    assert (opened.title, opened.default_split) == ("people", "proportional")
    assert opened.source["graph"] == str(tmp_path / "people"), "it can be opened from any folder"
    reading = opened.source["reading"]
    assert (reading["id"], reading["label"], list(reading["attributes"])) == ("id", "label", ["gender"])
    assert "Links are read from the columns 'source' and 'target' of edges.csv." in capsys.readouterr().out
