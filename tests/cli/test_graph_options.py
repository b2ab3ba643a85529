"""The options of reading that every verb has."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import graphveil as gv
from graphveil.cli.graph_options import takes_graph
from tests.cli.made import show
from tests.data.readers.made import tables


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


@pytest.mark.parametrize("bins", ["age", "=4", "age=x", "age=-1", "age=" + "9" * 30])
def test_invalid_bins(tmp_path: Path, bins: str) -> None:
    with pytest.raises(gv.GraphveilError, match=r"--bins .* is invalid"):
        show(str(tables(tmp_path)), "--bins", bins)


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
