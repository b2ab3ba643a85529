"""`graphveil data show`: classes, notes, and texts that cannot control the terminal."""

from pathlib import Path

from tests.cli.made import show
from tests.data.readers.made import tables


def test_a_graph_is_shown_with_its_classes_and_notes(tmp_path: Path) -> None:
    output = show(str(tables(tmp_path)), "--attribute", "gender", "--attribute", "age", "--bins", "age=2")
    assert "4 nodes, 3 links, 2 features" in output
    assert "Links are read from the columns 'source' and 'target' of edges.csv." in output
    assert "f 2, m 1" in output
    assert "20 1, 30 to 40 2" in output


def test_a_name_works_as_before() -> None:
    assert "34 nodes, 78 links, 34 features" in show("karate")


def test_texts_of_a_file_cannot_control_the_terminal(tmp_path: Path) -> None:
    nodes = "id,[red]k[/red]\x1b[31m\nann,\x1b[2J\nbob,[bold]\ncid,[/bold]\ndee,[bold]\n"
    output = show(str(tables(tmp_path, nodes=nodes)), "--label", "[red]k[/red]\x1b[31m")
    assert "\x1b[31m" not in output
    assert "\x1b[2J" not in output
    assert "[bold] 2" in output, "shown as it is"
