"""A graph is opened by its name or path, and can be opened again from any folder."""

from pathlib import Path

import pytest

from graphveil.data.origin import ReadOptions
from graphveil.runs.opening import open_source


def test_a_named_graph_has_no_options() -> None:
    opened = open_source("karate", None)
    assert (opened.name, opened.title, opened.reading) == ("karate", "karate", None)
    assert opened.source == {"graph": "karate", "reading": None}
    assert opened.graph.num_nodes == 34
    assert (opened.default_split, open_source("karate", ReadOptions()).default_split) == ("proportional",) * 2


def test_files_are_recorded_by_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "town").mkdir()
    (tmp_path / "town" / "links.csv").write_text("source,target\na,b\nb,c\nc,d\n")
    (tmp_path / "people.csv").write_text("id,age,team\na,1,x\nb,2,y\nc,3,x\nd,4,y\n")
    monkeypatch.chdir(tmp_path)
    opened = open_source("town/links.csv", ReadOptions(nodes="people.csv"), targets=("team",))
    assert opened.title == "links.csv"
    assert Path(opened.name) == (tmp_path / "town" / "links.csv").resolve()
    assert opened.reading is not None
    assert opened.reading.nodes == str((tmp_path / "people.csv").resolve())
    assert opened.graph.x.size(1) == 1, "the age; the team is a target, not a feature"
    monkeypatch.chdir("/")
    again = open_source(opened.name, opened.reading)
    assert again.graph.edge_index.equal(opened.graph.edge_index)
    assert again.source == opened.source
