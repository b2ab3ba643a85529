"""`graphveil data show`, and the options of reading that every verb has."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import graphveil as gv
from graphveil.cli import app
from graphveil.cli.graphs import takes_graph
from tests.data.readers.made import tables


def show(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["data", "show", *arguments], env={"COLUMNS": "200"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0
    return done.output


def test_a_graph_is_shown_with_its_classes_and_notes(tmp_path: Path) -> None:
    output = show(str(tables(tmp_path)), "--attribute", "gender", "--attribute", "age", "--bins", "age=2")
    assert "4 nodes, 3 links, 2 features" in output
    assert "Links are read from the columns 'source' and 'target' of edges.csv." in output
    assert "f 2, m 1" in output
    assert "20 1, 30 to 40 2" in output


def test_every_option_arrives(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("who,whom,kilo\na,b,3\nb,a,3\nb,c,1\n", encoding="utf-16")
    (tmp_path / "club.csv").write_text("k,team,age,x\na,r,1,2\nb,s,2,4\nc,r,3,9\n", encoding="utf-16")
    output = show(
        str(tmp_path / "list.csv"),
        *("--nodes", "club.csv", "--source", "who", "--target", "whom", "--weight", "kilo", "--id", "k"),
        *("--label", "team", "--features", "age, x", "--drop", "x", "--missing", "embedding", "--direction", "mutual"),
        *("--min-weight", "2", "--loops", "refuse", "--duplicates", "refuse", "--text-encoding", "utf-16"),
    )
    assert "3 nodes, 1 link, 1 feature" in output
    assert "r 2, s 1" in output


def test_a_name_works_as_before() -> None:
    assert "34 nodes, 78 links, 34 features" in show("karate")


@pytest.mark.parametrize("bins", ["age", "=4", "age=x", "age=-1", "age=" + "9" * 30])
def test_invalid_bins(tmp_path: Path, bins: str) -> None:
    with pytest.raises(gv.GraphveilError, match=r"--bins .* is invalid"):
        show(str(tables(tmp_path)), "--bins", bins)


def test_texts_of_a_file_cannot_control_the_terminal(tmp_path: Path) -> None:
    nodes = "id,[red]k[/red]\x1b[31m\nann,\x1b[2J\nbob,[bold]\ncid,[/bold]\ndee,[bold]\n"
    output = show(str(tables(tmp_path, nodes=nodes)), "--label", "[red]k[/red]\x1b[31m")
    assert "\x1b[31m" not in output
    assert "\x1b[2J" not in output
    assert "[bold] 2" in output, "shown as it is"


def test_a_verb_gets_its_read_options() -> None:
    import typer

    got = []
    verbs = typer.Typer()

    @verbs.command()
    @takes_graph
    def verb(graph: str, reading: "gv.ReadOptions", seed: int = 0) -> None:
        got.append((graph, reading, seed))

    done = CliRunner().invoke(verbs, ["g", "--seed", "3", "--attribute", "a", "--attribute", "b", "--drop", "c"])
    assert done.exit_code == 0
    assert got == [("g", gv.ReadOptions(attributes=("a", "b"), drop=("c",)), 3)]
    assert got[0][1].with_targets("links", "b", "d", "labels").attributes == ("a", "b", "d")
