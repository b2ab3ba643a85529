"""Every verb with every argument: it succeeds, or fails with one sentence and leaves no files."""

import contextlib
import io
import os
import random
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphveil import cli, pool
from graphveil.cli.tune import NOT_MET
from graphveil.data.datasets import catalog
from graphveil.errors import GraphveilError
from graphveil.experiments import tune
from graphveil.runs.audit import audit_run
from graphveil.runs.folder import RunFolder
from tests.cheap import InThisProcess
from tests.forked import Forks
from tests.fuzz import files
from tests.fuzz.harness import LONGEST, Case, run_cases
from tests.fuzz.words import command_line, make_inputs, verbs

VERBS = {verb.name: verb for verb in verbs()}
CELLS = ("sweep", "reproduce")
"""Verbs that leave with 1 where single cells failed."""


def no_network(*_: object) -> Any:
    raise GraphveilError("there is no network in these tests.")


@pytest.fixture(scope="module")
def base(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables, a finished and audited run of them, and things that are none."""
    folder = tmp_path_factory.mktemp("base")
    pick = random.Random(5)
    while not (folder / "nodes.csv").exists() or len((folder / "nodes.csv").read_text().splitlines()) < 40:
        files.write("nodes", pick, folder)
    run = folder / "run"
    few = ["--set", "rounds=1", "--set", "hidden_channels=4", "--set", "out_channels=4", "--device", "cpu"]
    assert forks("protect", folder / "edges.csv", *few, "--out", run) == (0, "")
    assert forks("audit", run, "--panel", "quick") == (0, "")
    np.save(folder / "z.npy", RunFolder(run).embeddings().z)
    make_inputs(folder)
    return folder


def attempt(base: Path, name: str, pick: random.Random, place: Path) -> Sequence[str]:
    """Run a verb with words of all kinds, in a copy of the folder."""
    here = place / "a" / "b" / "c"
    shutil.copytree(base, here, symlinks=True, copy_function=_copy)
    (place / "cache").mkdir()
    os.environ |= {"GRAPHVEIL_CACHE": str(place / "cache"), "COLUMNS": "100"}
    os.chdir(here)
    quick_audit = partial(audit_run, attacks="quick", controls=False)
    for module, name_, stand_in in (
        (pool, "ProcessPoolExecutor", lambda **_: InThisProcess()),
        (catalog, "fetch", no_network),
        (tune, "audit_run", quick_audit),
    ):
        setattr(module, name_, stand_in)
    words = command_line(VERBS[name], pick)
    before, around = listing(place), surroundings()
    code, said = call(words)
    faults = faults_of(code, said, name, words)
    after = listing(place)
    named = [str(Path("a/b/c") / word) for word in words]  # a file that is named may be written anew
    changed = [file for file in before if after.get(file) != before[file] and file not in named]
    faults += [f"{file} is gone or another" for file in changed]
    new = sorted(set(after) - set(before))
    if code == 2 and "--mlflow" not in words:  # a run that is finished stays, whatever a server says to it
        faults += [f"{file} was left behind" for file in new]
    if surroundings() != around:
        faults.append("something outside has changed")
    shown = repr([word[:60] for word in words])
    return f"code {code}", *(f"{fault[:400]} {shown}" for fault in faults)


def call(words: Sequence[str]) -> tuple[int, str]:
    """The program in this process: its exit code and its stderr."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv, sys.stdin = ["graphveil", *words], io.StringIO()
    code: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.run()
        except SystemExit as left:
            code = left.code
    return int(code) if isinstance(code, int) else 0 if code is None else 1, err.getvalue()


def faults_of(code: int, said: str, name: str, words: Sequence[str]) -> list[str]:
    """What is wrong with how it ended."""
    faults = []
    if code not in (0, 2) and not (code == 1 and name in CELLS) and not (code == NOT_MET and name == "tune"):
        faults.append(f"exit code {code}: {said!r}")
    if "Traceback" in said or "Warning" in said:
        faults.append(f"it says {said[-300:]!r}")
    if code == 2 and not said.strip():
        faults.append("it says nothing")
    if said.startswith("graphveil:"):
        sentence = said.removesuffix("\n")
        if "\n" in sentence or not sentence.isprintable() or len(sentence) > LONGEST + 200:
            faults.append(f"no sentence, {len(sentence)} characters: {sentence[:300]!r}")
    elif code == 2 and "Usage" not in said:
        faults.append(f"neither a sentence nor the usage: {said[:300]!r}")
    return faults


def listing(place: Path) -> dict[str, Any]:
    """Files and folders, with sizes and dates of those that may not change."""
    found = {}
    for file in place.rglob("*"):
        status = file.lstat()
        found[str(file.relative_to(place))] = status.st_mode if file.is_dir() else (status.st_mode, status.st_size)
    return {name: state for name, state in found.items() if not Path(name).name.startswith(("report.html", "audit"))}


def surroundings() -> list[tuple[str, int]]:
    """What lies where root could do harm."""
    return [(file.name, file.lstat().st_mode) for top in ("/", "/dev") for file in sorted(Path(top).iterdir())]


def _copy(source: str, target: str) -> str:
    if Path(source).is_fifo():
        os.mkfifo(target)
        return target
    return shutil.copy2(source, target)


def cases(count: int) -> list[Case]:
    """Verbs with many options more often."""
    return [(name, number) for name, verb in VERBS.items() for number in range(count * (1 + len(verb.parameters) // 4))]


def test_a_few_command_lines_of_every_verb(base: Path, tmp_path: Path) -> None:
    tally = run_cases(cases(1), partial(attempt, base), tmp_path)
    assert not tally.faults, "\n".join(tally.faults)
    assert {"code 0", "code 2"} <= set(tally.ended)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_thousands_of_command_lines(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tally = run_cases(cases(int(os.environ.get("GRAPHVEIL_CASES", "70"))), partial(attempt, base), tmp_path)
    with capsys.disabled():
        sys.stdout.write(f"\ncommand lines: {tally}\n")
    assert not tally.faults, "\n".join(tally.faults)
    assert tally.tried.total() > 3000
