"""`graphveil reproduce` and `graphveil sweep` on few cells: their files, and wrong input."""

import inspect
import json
from pathlib import Path

import pytest

import graphveil as gv
from graphveil.experiments.sweep import TRADEOFFS
from graphveil.formats.results import ExperimentsRecord
from graphveil.formats.store import parse
from tests.program import CommandLine


@pytest.mark.usefixtures("one_process", "cheap_cells")
def test_reproduce_writes_tables_and_does_nothing_twice(tmp_path: Path, graphveil: CommandLine) -> None:
    arguments = ["table2", "--dataset", "cora", "--encoder", "gcn", "--seeds", "1", "--jobs", "1", "--rounds", "1"]
    done = graphveil("reproduce", *arguments, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "unprotected" in done.stdout
    assert "| codes | cora | gcn | 0.5 | 1 |" in (tmp_path / "findings.md").read_text()
    assert "codes" in (tmp_path / "report.html").read_text()
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").glob("*.json")}
    assert len(files) == 5
    again = graphveil("reproduce", *arguments, "--out", str(tmp_path), "--json")
    assert again.returncode == 0, again.stderr
    assert list(parse(json.loads(again.stdout), ExperimentsRecord).experiments) == ["table2"]
    assert "table2: 5 cells, 5 of them finished before" in again.stderr
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").glob("*.json")} == files
    for wrong, says in (
        (["table9"], "unknown experiment 'table9'"),
        (["table2", "--dataset", "x"], "unknown dataset"),
        (["table2", "--variant", "x"], "unknown variant"),
        (["table1", "--dataset", "x"], "unknown dataset"),
        (["all", "--results", str(tmp_path / "none.md")], "cannot be read"),
        (["table2", "--results", str(tmp_path / "none.md")], "--results is for `reproduce all`"),
    ):
        done = graphveil("reproduce", *wrong, "--out", str(tmp_path))
        assert done.returncode == 2
        assert says in done.stderr


@pytest.mark.usefixtures("one_process", "cheap_cells")
def test_sweep_over_tradeoffs(tmp_path: Path, graphveil: CommandLine) -> None:
    few = ["--seeds", "1", "--jobs", "1", "--rounds", "1", "--out", str(tmp_path)]
    done = graphveil("sweep", "synthetic", "--secret", "secret", "--tradeoff", "0,1", *few)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sweep.csv").read_text().count("\n") == 3
    for wrong, says in (
        (["synthetic", "--secret", "gender"], "the graph has no 'gender'"),
        (["synthetic", "--secret", "links"], "utility and secret are both 'links'"),
        (["nowhere"], "unknown graph"),
        (["synthetic", "--tradeoff", "a,b"], "cannot be read"),
        (["synthetic", "--tradeoff", "2"], "from 0"),
        (["synthetic", "--encoder", "gnc"], "unknown encoder"),
        (["synthetic", "--split", "x"], "unknown split"),
    ):
        done = graphveil("sweep", *wrong, *few)
        assert done.returncode == 2
        assert says in done.stderr


@pytest.mark.usefixtures("one_process", "cheap_cells")
def test_the_default_tradeoffs_are_those_of_the_library(
    tmp_path: Path, graphveil: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert inspect.signature(gv.sweep).parameters["tradeoffs"].default is TRADEOFFS
    monkeypatch.setattr("graphveil.experiments.sweep.TRADEOFFS", (0.25, 0.75))
    few = ["--seeds", "1", "--jobs", "1", "--rounds", "1", "--out", str(tmp_path), "--json"]
    done = graphveil("sweep", "synthetic", "--secret", "secret", *few)
    assert done.returncode == 0, done.stderr
    rows = parse(json.loads(done.stdout), ExperimentsRecord).experiments["sweep"].rows
    assert [row.tradeoff for row in rows] == [0.25, 0.75]
