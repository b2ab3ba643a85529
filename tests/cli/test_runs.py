"""`graphveil protect` and `graphveil audit`: results, wrong input, a small terminal and none."""

import contextlib
import json
import os
import pty
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphveil.auditing.attacks import Answers
from graphveil.auditing.tasks import Task
from graphveil.runs.folder import RunFolder
from graphveil.training.recipes import default_recipe
from tests.forked import Forks, Shell, processes_of_group
from tests.program import CommandLine

QUICK = ["--set", "rounds=6", "--set", "hidden_channels=8", "--set", "out_channels=4", "--device", "cpu"]


@pytest.mark.parametrize(
    "problem",
    [
        ["karate", "--utility", "links", "--secret", "labels"],
        ["synthetic", "--utility", "labels", "--secret", "links", "--encoder", "hgcn", "--message-edges", "train"],
        ["synthetic", "--utility", "labels", "--secret", "secret", "--objective", "entropy", "--adversary", "linear"],
    ],
    ids=lambda words: words[4],
)
def test_protect_without_a_terminal_is_plain_text(problem: list[str], tmp_path: Path, graphveil: CommandLine) -> None:
    done = graphveil("protect", *problem, *QUICK, "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "attack (" in done.stdout
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert list(record["certificates"]) == record["config"]["secrets"]
    (certificate,) = record["certificates"].values()
    if record["config"]["objective"] == "codes":
        of_links = record["config"]["secrets"] == ["links"]
        assert (
            f"The attack is the {'link rate per pair of codes' if of_links else 'majority class per code'}"
            in done.stdout
        )
        if certificate is not None:
            assert f"Certificate for {record['config']['secrets'][0]}: {certificate['sentence']}" in done.stdout
        else:
            assert "karate" in problem, "too small a graph for so few rounds: all nodes have one code"
    else:
        assert certificate is None
        assert "trained with the encoder. A new attacker may learn more" in done.stdout


def test_protect_by_mini_batches(tmp_path: Path, graphveil: CommandLine) -> None:
    done = graphveil(
        *["protect", "synthetic", "--encoder", "sage", "--batch-size", "256", *QUICK, "--out", str(tmp_path / "run")]
    )
    assert done.returncode == 0, done.stderr
    assert "every round uses the whole graph" not in done.stdout
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["config"]["recipe"]["batch_size"] == 256
    again = graphveil("protect", "--config", str(tmp_path / "run" / "run.json"), "--out", str(tmp_path / "again"))
    assert again.returncode == 0, again.stderr
    scores = json.loads((tmp_path / "again" / "run.json").read_text())["scores"]
    assert scores == record["scores"], "the run.json of a run repeats it"


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--batch-size", "100"], 0, "A mini-batch of 100 is not smaller than the graph (34 nodes, 78 links): every"),
        (["--batch-size", "20", "--encoder", "hgcn"], 2, "encoder hgcn cannot be trained with a batch_size: choose"),
        (["--batch-size", "0"], 2, "batch_size=0: expected a whole number of at least 1."),
    ],
)
def test_other_batches_are_one_sentence(
    options: list[str], code: int, says: str, tmp_path: Path, graphveil: CommandLine
) -> None:
    done = graphveil("protect", "karate", *QUICK, *options, "--out", str(tmp_path / "run"))
    assert done.returncode == code, done.stderr
    assert says in " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize(
    ("options", "dropout"),
    [
        (["--batch-size", "16"], 0.5),
        (["--set", "batch_size=16"], 0.5),
        (["--set", "batch_size=16", "--set", "dropout=0.8"], 0.8),
        (["--batch-size", "100"], 0.8),
        (["--set", "batch_size=100"], 0.8),
    ],
)
def test_the_dropout_is_lower_by_mini_batches_that_are_smaller_than_the_graph(
    options: list[str], dropout: float, tmp_path: Path, graphveil: CommandLine
) -> None:
    """The run.json of the run repeats it; the default of the recipe is 0.8."""
    assert default_recipe("labels", "gcn", "codes", ["links"]).dropout == 0.8
    keep = ["--utility", "labels", "--secret", "links", *QUICK, *options]
    repeat = ["--config", str(tmp_path / "run" / "run.json")]
    for name, arguments in (("run", ["karate", *keep]), ("again", repeat)):
        done = graphveil("protect", *arguments, "--out", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
        assert json.loads((tmp_path / name / "run.json").read_text())["config"]["recipe"]["dropout"] == dropout


@pytest.mark.parametrize(
    ("columns", "objective", "live"),
    [
        (60, "codes", r"utility \d+\.\d% attack \d+\.\d% [^l]"),
        (80, "codes", r"attack \d+\.\d% loss -?\d+\.\d{3}/\d"),
        (80, "club", r"attack \d+\.\d% loss \d+\.\d{3}/\d"),
    ],
)
def test_protect_on_a_terminal_shows_progress_that_fits(
    columns: int, objective: str, live: str, forks: Forks, tmp_path: Path
) -> None:
    """A real pseudo-terminal: a live line with the validation values, and the losses where there is room for them.

    Sentences are not cut into lines: a terminal does that itself.
    """
    ours, theirs = pty.openpty()
    command = ["protect", "synthetic", "--objective", objective, *QUICK, "--out", str(tmp_path / "run")]
    program = forks.start(*command, before=Shell(tmp_path, columns, os.ttyname(theirs)))
    os.close(theirs)
    output = b""
    with contextlib.suppress(OSError):  # how a pseudo-terminal reports that the program has exited
        while chunk := os.read(ours, 4096):
            output += chunk
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode())
    assert program.wait() == 0, text
    assert re.search(live, text)
    sentences = ("warning: ", "Certificate for ")
    lines = [line for line in re.split(r"[\r\n]+", text) if str(tmp_path) not in line]
    drawn = [line for line in lines if not line.startswith(sentences)]
    assert any("utility (auc)" in line for line in drawn)
    assert max(map(len, drawn)) <= columns


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "unknown graph 'nowhere': give a file, a folder or one of cora"),
        (["karate", "--split", "paper"], "use --split proportional"),
        (["synthetic", "--encoder", "gnc"], "unknown encoder 'gnc'"),
        (["synthetic", "--objective", "none"], "unknown objective 'none'"),
        (["synthetic", "--tradeoff", "7"], "tradeoff is 7.0"),
        (["synthetic", "--secret", "gender"], "no 'gender'"),
        (["synthetic", "--set", "rounds=no"], "rounds is a whole number"),
        (["synthetic", "--split", "random"], "unknown split 'random'"),
        (["synthetic", "--message-edges", "all"], 'use message_edges="train"'),
        (["synthetic", "--message-edges", "some"], "unknown message_edges 'some'"),
        (["synthetic", "--adversary-knows", "most"], "expected 'few' or 'all'"),
        (["synthetic", "--adversary-steps", "0"], "adversary steps=0"),
        (["synthetic", "--device", "tpu"], "device 'tpu' cannot be used"),
        (["citeseer", "--root", "/nonexistent"], "does not hold the raw files of citeseer"),
        (["synthetic", "--seed", "x"], "Invalid value for '--seed'"),
        (["--frobnicate"], "No such option"),
        ([], "Missing argument"),
    ],
    ids=" ".join,
)
def test_wrong_input_is_one_sentence_and_exit_code_2(
    arguments: list[str], says: str, tmp_path: Path, graphveil: CommandLine
) -> None:
    done = graphveil("protect", *arguments, "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run" / "run.json").exists()


def test_an_output_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path, graphveil: CommandLine) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = graphveil("protect", "synthetic", *QUICK, "--out", str(tmp_path / "file" / "run"))
    assert done.returncode == 2
    assert done.stderr.startswith("graphveil: cannot write")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("problem", "row"),
    [
        (["--objective", "club"], "joint adversary"),
        (["--utility", "labels", "--secret", "secret"], "certificate"),
    ],
    ids=["club", "codes"],
)
def test_audit_of_a_run_and_of_a_file(problem: list[str], row: str, tmp_path: Path, graphveil: CommandLine) -> None:
    run = str(tmp_path / "run")
    assert graphveil("protect", "synthetic", *problem, *QUICK, "--out", run).returncode == 0
    done = graphveil("audit", run, "--panel", "quick")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    secret = problem[-1] if "--secret" in problem else "labels"
    for words in (f"Audit of {secret}", "strongest attack", "mutual information"):
        assert words in done.stdout
    assert [words for words in ("joint adversary", "certificate") if words in done.stdout] == [row]
    file, out = str(tmp_path / "run" / "embeddings.parquet"), str(tmp_path / "other.json")
    arguments = ["--embeddings", file, "--graph", "synthetic", "--secret", "links", "--panel", "quick", "--out", out]
    done = graphveil("audit", *arguments)
    assert done.returncode == 0, done.stderr
    assert "class-matched AUC" in done.stdout
    assert "floor" in done.stdout
    assert Path(out).exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give either the folder of a run, or --embeddings"),
        (["."], "not a finished run of `graphveil protect` (run.json is missing): give the folder of a run"),
        ([".", "--embeddings", "z.npy"], "give either the folder of a run"),
        ([".", "--seed", "3"], "--seed was given with a run folder, which has its own"),
        (["--embeddings", "z.npy", "--graph", "synthetic", "--secret", "labels", "--split", "half"], "unknown split"),
        (["--embeddings", "z.npy", "--graph", "synthetic", "--secret", "labels", "--out", "z.npy"], "would overwrite"),
        (["--embeddings", "z.npy", "--resume"], "--resume was given with --embeddings"),
        (["--embeddings", "z.npy"], "--embeddings needs --graph and exactly one --secret"),
        (["--embeddings", "z.npy", "--graph", "nowhere", "--secret", "labels"], "unknown graph 'nowhere'"),
        (["--embeddings", "no.npy", "--graph", "synthetic", "--secret", "labels"], "no.npy is not a file"),
        (["--embeddings", "short.npy", "--graph", "synthetic", "--secret", "labels"], "10 rows and the graph has 2000"),
        (["--embeddings", "nan.npy", "--graph", "synthetic", "--secret", "labels"], "nan in row 0, column 1"),
        (["--embeddings", "flat.npy", "--graph", "synthetic", "--secret", "labels"], "shape (2000,)"),
        (["--embeddings", "z.npy", "--graph", "synthetic", "--secret", "gender"], "the graph has no 'gender'"),
        (["--embeddings", "z.npy", "--graph", "synthetic", "--secret", "labels", "--panel", "slow"], "unknown panel"),
        (
            ["--embeddings", "z.npy", "--graph", "karate", "--secret", "labels", "--split", "paper"],
            "use --split proportional",
        ),
        (["--embeddings", "z.npy", "--graph", "synthetic", "--secret", "labels", "--jobs", "0"], "'--jobs'"),
        (["--embeddings", "z.npy", "--graph", "synthetic", "--secret", "labels", "--time-budget", "-1"], "budget"),
    ],
    ids=" ".join,
)
def test_wrong_input_of_audit_is_one_sentence_and_leaves_nothing(
    arguments: list[str], says: str, tmp_path: Path, graphveil: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    z = np.random.default_rng(0).normal(size=(2000, 3))
    spoiled = z.copy()
    spoiled[0, 1] = np.nan
    files = {"z": z, "short": z[:10], "nan": spoiled, "flat": z[:, 0]}
    for name, array in files.items():
        np.save(tmp_path / f"{name}.npy", array)
    monkeypatch.chdir(tmp_path)
    done = graphveil("audit", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    left = {file.name for file in tmp_path.iterdir()} - {f"{name}.npy" for name in files}
    assert left == set()


def test_embeddings_that_have_collapsed_are_flagged(
    tmp_path: Path, graphveil: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They reveal nothing, and whoever takes them for protected should know that they are of no use either."""
    np.save(tmp_path / "same.npy", np.ones((2000, 3)))
    monkeypatch.chdir(tmp_path)
    done = graphveil(
        *("audit", "--embeddings", "same.npy", "--graph", "synthetic", "--secret", "labels", "--panel", "quick")
    )
    assert done.returncode == 0, done.stderr
    assert "collapsed: every node has the same row" in done.stdout
    written = json.loads((tmp_path / "audit.json").read_text())
    assert written["verdict"] == "flagged"
    assert "collapsed" in [flag["name"] for flag in written["flags"]]


def test_an_interrupted_audit_of_a_run_continues(
    trained: Path, tmp_path: Path, graphveil: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    attack, calls = Task._attack, list[str]()

    def interrupted(task: Task, *arguments: Any) -> Answers:
        calls.append(task.title)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return attack(task, *arguments)

    monkeypatch.setattr(Task, "_attack", interrupted)
    command = ["audit", str(run), "--secret", "tribe", "--panel", "quick"]
    done = graphveil(*command)
    assert done.returncode == 130
    assert "interrupted; the finished attacks are kept: run the same command with --resume" in done.stderr
    resumed = graphveil(*command, "--resume")
    assert (resumed.returncode, "starting over" in resumed.stdout) == (0, False)
    assert calls[3] == calls[2], "it continues with the attack that was interrupted"
    assert len(set(calls)) == len(calls) - 1, "and runs no other attack twice"


def test_an_audit_that_starts_over_says_so(trained: Path, tmp_path: Path, graphveil: CommandLine) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    kept = RunFolder(run).unfinished_audit
    kept.mkdir()
    command = ["audit", str(run), "--secret", "tribe", "--panel", "quick"]
    done = graphveil(*command)
    assert f"starting over: the finished attacks of an interrupted audit are removed from {kept}" in done.stdout
    assert (done.returncode, kept.exists()) == (0, False)
    assert "starting over" not in graphveil(*command).stdout


def test_an_interrupted_audit_writes_nothing(forks: Forks, tmp_path: Path) -> None:
    """Ctrl-C reaches the worker processes too, as on a terminal."""
    np.save(tmp_path / "z.npy", np.random.default_rng(0).normal(size=(2000, 32)))
    command = ["--verbose", "audit", "--embeddings", "z.npy", "--graph", "synthetic", "--secret", "links"]
    program = forks.start(*command, "--jobs", "2", before=Shell(tmp_path))
    group = program.process.pid or 0
    everybody = 4  # the program, joblib's tracker and two workers
    assert program.wait_for(lambda: len(processes_of_group(group)) >= everybody, 300), program.said
    program.signal(signal.SIGINT)
    assert program.wait() == 130, program.said
    assert program.said.startswith("graphveil: interrupted")
    assert "Traceback" not in program.said
    assert [file.name for file in tmp_path.iterdir()] == ["z.npy"]
