"""`graphveil embed` on the command line: options that override the run, and what is printed."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from graphveil import cli
from tests.release.made import NODES, change, drawn, write_tables


@pytest.mark.parametrize(("words", "direction"), [([], "mutual"), (["--direction", "either"], "either")])
def test_an_option_with_the_default_value_overrides_the_run(
    words: list[str], direction: str, trained: Path, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(trained, tmp_path / "run")
    change(tmp_path / "run" / "run.json", reading={"direction": "mutual"})
    columns, links = drawn(0)
    newer = write_tables(tmp_path / "newer", columns, [*links, *((other, one) for one, other in links[:100])])
    whole = ["embed", str(tmp_path / "run"), str(newer), "--out", str(tmp_path / "out"), "--no-audit", *words]
    monkeypatch.setattr(sys, "argv", ["graphveil", *whole, "--device", "cpu"])
    with pytest.raises(SystemExit) as left:
        cli.run()
    assert (left.value.code or 0) == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["reading"]["direction"] == direction
    assert record["features"]["mean_degree"] == 2 * (100 if direction == "mutual" else 500) / NODES


def test_on_the_command_line(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    columns, links = drawn(0)
    del columns["tribe"]
    newer = write_tables(tmp_path / "newer", columns, links)
    words = ["embed", str(trained), str(newer), "--out", str(tmp_path / "out"), "--panel", "quick", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["graphveil", *words])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as left:
        cli.run()
    said, err = capfd.readouterr()
    assert (left.value.code or 0, err) == (0, "")
    assert "160 nodes, of which 160 are in the run too" in said
    assert "warning: the embeddings predict labels no better than chance. Train a run on this graph." in said
    assert "tribe was not audited: the graph has no 'tribe'" in said
    assert "Audit of links" in said
    assert (tmp_path / "out" / "audit.links.json").exists()
