"""`graphveil embed` on the command line: options that override the run, and what is printed."""

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from graphveil import cli
from graphveil.auditing.attacks import Answers
from graphveil.auditing.tasks import Task
from tests.program import CommandLine
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
    assert "the embeddings predict labels not significantly better than chance. Train a run on this graph." in said
    assert "tribe was not audited: the graph has no 'tribe'" in said
    assert "Audit of links" in said
    assert (tmp_path / "out" / "audit.links.json").exists()


@pytest.mark.parametrize("finished", [0, 2])
def test_ctrl_c_in_the_audit_states_the_command_that_audits_the_embeddings(
    finished: int, trained: Path, tmp_path: Path, graphveil: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack, calls = Task._attack, list[str]()

    def interrupted(task: Task, *arguments: Any) -> Answers:
        calls.append(task.title)
        if len(calls) == finished + 1:
            raise KeyboardInterrupt
        return attack(task, *arguments)

    monkeypatch.setattr(Task, "_attack", interrupted)
    newer, out = write_tables(tmp_path / "newer", *drawn(0)), tmp_path / "an out"
    done = graphveil("embed", str(trained), str(newer), "--out", str(out), "--panel", "quick", "--device", "cpu")
    command = f"graphveil audit '{out}' --secret tribe --secret links --panel quick"
    kept = f"the embeddings and the finished attacks are kept; to continue the audit: {command} --resume\n"
    expected = kept if finished else f"the embeddings are kept; to audit them: {command}\n"
    assert (done.returncode, done.stderr) == (130, f"graphveil: interrupted; {expected}")
    words = shlex.split(expected.partition(": graphveil ")[2])
    assert graphveil(*words).returncode == 0
    assert calls[finished + 1] == calls[finished], "it continues with the attack that was interrupted"
