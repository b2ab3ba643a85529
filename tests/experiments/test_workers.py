"""Cells in processes: one that dies, a parent that is killed, and progress meanwhile."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from graphveil.experiments import reproduce as reproduce_module
from graphveil.experiments.cells import Cell, read_result
from graphveil.experiments.reproduce import run_missing
from tests.experiments.made import TINY, write_result
from tests.forked import Forks, happens, processes_of_group


@pytest.mark.usefixtures("forked_workers")
def test_the_other_cells_are_finished_if_a_process_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    todo = [replace(TINY, seed=seed) for seed in range(4)]
    first = min(todo, key=lambda cell: cell.key)  # in the order in which they run

    def run(cell: Cell, folder: Path) -> str | None:
        if cell == first:
            (folder / "dying").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        happens((folder / "dying").exists)
        write_result(cell, folder, {"utility": 0.5})
        return None

    monkeypatch.setattr(reproduce_module, "run_cell", run)
    seen: list[int] = []
    failed = run_missing(todo, tmp_path, 2, lambda cell, _: seen.append(cell.seed))
    assert [(cell, "its process died" in fault) for cell, fault in failed] == [(first, True)]
    assert sorted(seen) == [0, 1, 2, 3]
    assert [read_result(cell, tmp_path) is not None for cell in todo] == [cell != first for cell in todo]


def test_workers_end_when_their_parent_is_killed(forks: Forks, tmp_path: Path) -> None:
    """Cells that were finished before are not run again."""
    few = ["--dataset", "cora", "--encoder", "gcn", "--variant", "club", "--rounds", "1", "--jobs", "1"]
    command = ["reproduce", "table2", *few, "--out", str(tmp_path)]
    program = forks.start(*command, "--seeds", "50")
    finished = tmp_path / "cells"
    assert program.wait_for(lambda: any(finished.glob("cora*.json")), 300), program.said
    program.process.kill()
    program.process.join()
    assert happens(lambda: processes_of_group(program.process.pid or 0) == [], 120), "no worker is left"
    before = {file: file.stat().st_mtime_ns for file in finished.glob("cora*.json")}
    assert 0 < len(before) < 50
    assert forks(*command, "--seeds", str(len(before))) == (0, "")
    after = {file: file.stat().st_mtime_ns for file in finished.glob("cora*.json")}
    kept = [file for file in before if after[file] == before[file]]
    assert kept == list(before)


@pytest.mark.usefixtures("forked_workers")
def test_progress_is_reported_while_other_cells_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(cell: Cell, folder: Path) -> str | None:
        """The second cell ends only after the first has been reported."""
        reported = cell.seed == 0 or happens((folder / "reported").exists)
        return None if reported else "the first cell was not reported"

    monkeypatch.setattr(reproduce_module, "run_cell", run)
    todo = [replace(TINY, seed=seed) for seed in range(2)]
    assert run_missing(todo, tmp_path, 2, lambda *_: (tmp_path / "reported").touch()) == []
