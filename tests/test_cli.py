"""The program as a person meets it: help, results, wrong input, a small terminal and none."""

import contextlib
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from torch_geometric.data import Data

from graphveil import cli
from graphveil.auditing import Audit, audit, classifiers
from graphveil.cli.shared import PlainConsole, console, scores_table, show_table, warn_if_utility_is_lost
from graphveil.data import Split
from graphveil.experiments import cells
from graphveil.training.score import Joint, Score
from tests.cheap import untuned_regression
from tests.forked import Forks, Shell, processes_of_group


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def graphveil(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """The program in this process, since importing torch anew takes seconds."""

    def call(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["graphveil", *arguments])
        monkeypatch.setattr(console, "_width", int(os.environ["COLUMNS"]))
        with pytest.raises(SystemExit) as left:
            cli.run()
        out, err = capfd.readouterr()
        return Done(int(left.value.code or 0), out, err)

    monkeypatch.setenv("COLUMNS", "200")
    return call


Program = Callable[..., Done]


@pytest.fixture
def cheap_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells have the quick panel and no map: `experiments/test_reproduce.py` says which of them have the full one."""

    def quick(z: object, graph: Data, split: Split, secret: str, panel: str, *rest: object, **more: object) -> Audit:
        assert panel in ("quick", "full")
        return audit(z, graph, split, secret, "quick", *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(cells, "audit", quick)
    monkeypatch.setattr(cells, "draw", lambda *_: None)
    monkeypatch.setattr(classifiers, "logistic_regression", untuned_regression)


VERBS = [
    [],
    ["data"],
    ["data", "list"],
    ["data", "fetch"],
    ["protect"],
    ["audit"],
    ["export"],
    ["embed"],
    ["grid"],
    ["data", "show"],
    ["report"],
    ["sweep"],
    ["reproduce"],
    ["demo"],
]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_reads_well_and_carries_an_example(verb: list[str], graphveil: Program) -> None:
    done = graphveil(*verb, "--help")
    assert done.returncode == 0
    assert "Usage: " in done.stdout
    assert re.search(r"(Example|Start with):  graphveil|Examples:\s+graphveil .*\n(.*\n)*\s*graphveil ", done.stdout)


def test_help_imports_neither_torch_nor_pyg() -> None:
    code = "import sys, graphveil.cli; print([m for m in ('torch', 'torch_geometric', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version_and_data_list(graphveil: Program) -> None:
    assert re.fullmatch(r"graphveil \d+\.\d+\.\d+\n", graphveil("--version").stdout)
    listing = graphveil("data", "list").stdout
    for name in ("cora", "citeseer", "pubmed", "karate", "synthetic"):
        assert name in listing
    assert "19,717" in listing


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
def test_protect_without_a_terminal_is_plain_text(problem: list[str], tmp_path: Path, graphveil: Program) -> None:
    done = graphveil("protect", *problem, *QUICK, "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "attack (" in done.stdout
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert list(record["certificates"]) == record["config"]["secrets"]
    (certificate,) = record["certificates"].values()
    if record["config"]["objective"] == "codes":
        assert "most frequent class of each code" in done.stdout
        if certificate is not None:
            assert f"Certificate for {record['config']['secrets'][0]}: {certificate['sentence']}" in done.stdout
        else:
            assert "karate" in problem, "too small a graph for so few rounds: all nodes have one code"
    else:
        assert certificate is None
        assert "trained with the encoder. A fresh attacker may learn more" in done.stdout


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
    arguments: list[str], says: str, tmp_path: Path, graphveil: Program
) -> None:
    done = graphveil("protect", *arguments, "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run" / "run.json").exists()


@pytest.mark.parametrize("metrics", [("accuracy",), ("accuracy", "accuracy")], ids=str)
def test_scores_stand_beside_the_chance_level_in_80_columns(metrics: tuple[str, ...]) -> None:
    joint = [Joint(f"secret{i}", metric, 0.625, 0.625, 0.5) for i, metric in enumerate(metrics)]
    table = scores_table("a run", {"tradeoff 0.5": Score(0.5801, "accuracy", 0.5799, tuple(joint))})
    narrow = PlainConsole(width=80, file=io.StringIO())
    narrow.print(table)
    text = narrow.file.getvalue()  # type: ignore[attr-defined]
    assert text.count("58.0% (chance 58.0%)") == text.count("62.5% (chance 50.0%)") == len(metrics)
    assert len(text.splitlines()) == 5 + len(metrics), "nothing is folded"


@pytest.mark.parametrize(("width", "row"), [(80, "│ gender │ 50.9     │"), (14, "│ gend│ 50.9 │")])
def test_a_table_has_blanks_and_is_folded_but_never_cut(
    width: int, row: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "_width", width)
    show_table("T", ("secret", "guessing"), [["gender", "50.9"]])
    output = capsys.readouterr().out
    assert row in output
    assert "…" not in output


@pytest.mark.parametrize(
    "command",
    [
        ["protect", "nowhere"],
        ["sweep", "nowhere"],
        ["reproduce", "table1"],
        ["reproduce", "table2"],
    ],
    ids=" ".join,
)
def test_no_verb_writes_into_a_folder_with_other_files(command: list[str], tmp_path: Path, graphveil: Program) -> None:
    (tmp_path / "customers.csv").write_text("id\n1\n")
    done = graphveil(*command, "--out", str(tmp_path))
    assert done.returncode == 2
    assert "customers.csv' and no files of this command: choose a folder that is new or empty" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["customers.csv"]


@pytest.mark.parametrize(
    "command",
    [
        ["protect", "nowhere", "--tradeoff", "7"],
        ["protect", "nowhere", "--set", "leak_limit=-1"],
        ["protect", "nowhere", "--device", "tpu"],
        ["sweep", "nowhere", "--tradeoff", "0.5,7"],
    ],
    ids=" ".join,
)
def test_a_bad_setting_is_reported_before_a_graph_is_read(
    command: list[str], tmp_path: Path, graphveil: Program
) -> None:
    done = graphveil(*command, "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    expected = {"7": "7", "leak_limit=-1": "leak_limit=-1.0: expected a number of at least 0", "tpu": "'tpu'"}
    assert expected[command[-1].removeprefix("0.5,")] in done.stderr
    assert "dropout" not in done.stderr
    assert "nowhere" not in done.stderr


@pytest.mark.parametrize(("kept", "warned"), [(0.58, True), (0.581, False)])
def test_a_lost_utility_is_reported(kept: float, warned: bool, capsys: pytest.CaptureFixture[str]) -> None:
    warn_if_utility_is_lost("segment", Score(kept, "accuracy", 0.58, ()))
    assert ("warning: the embeddings predict segment no better than chance" in capsys.readouterr().out) is warned


@pytest.fixture
def own_tables(tmp_path: Path) -> Path:
    """A user's own small graph, with names that ASCII does not have."""
    folder = tmp_path / "Müller 数据"
    folder.mkdir()
    nodes = "".join(f"{i},{('Genève', '京都')[i % 2]},{i}\n" for i in range(40))
    (folder / "nodes.csv").write_text(f"id,city,age\n{nodes}", encoding="utf-8")
    links = "".join(f"{i},{(i + step) % 40}\n" for i in range(40) for step in (1, 3))
    (folder / "edges.csv").write_text(f"source,target\n{links}", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("encoding", "says"),
    [("ascii", b"Gen\\xe8ve 20, \\u4eac\\u90fd 20"), ("cp1252", b"Gen\xe8ve 20, \\u4eac\\u90fd 20")],
)
def test_characters_that_a_terminal_cannot_show_are_escaped(encoding: str, says: bytes, own_tables: Path) -> None:
    command = [sys.executable, "-m", "graphveil", "data", "show", str(own_tables), "--attribute", "city"]
    environment = os.environ | {"PYTHONIOENCODING": encoding, "COLUMNS": "200"}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert b"| target |" in done.stdout, "no lines that it cannot draw either"


def test_names_of_files_are_utf8_whatever_the_locale_is(own_tables: Path) -> None:
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    out = own_tables.with_name("Größe")
    command = [sys.executable, "-m", "graphveil", "protect", own_tables.name, "--secret", "city", "--out", out.name]
    done = subprocess.run(
        [*command, "--set", "rounds=2", "--device", "cpu"],
        cwd=own_tables.parent,
        env=os.environ | locale,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "files in Größe" in done.stdout.decode()
    assert (out / "embeddings.parquet").exists()


def test_a_name_that_is_not_utf8_is_one_sentence(graphveil: Program) -> None:
    done = graphveil("data", "show", "M\udcfcller")
    assert done.returncode == 2
    assert "'M\\udcfcller' is not UTF-8" in done.stderr


def test_too_little_memory_is_one_sentence(tmp_path: Path, graphveil: Program) -> None:
    """A terabyte and more, which no machine gives."""
    done = graphveil(
        "protect",
        "karate",
        "--split",
        "proportional",
        "--set",
        f"hidden_channels={10**12}",
        "--out",
        str(tmp_path / "run"),
    )
    assert done.returncode == 2
    assert done.stderr.startswith("graphveil: out of memory: lower --set hidden_channels")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_an_output_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path, graphveil: Program) -> None:
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
def test_audit_of_a_run_and_of_a_file(problem: list[str], row: str, tmp_path: Path, graphveil: Program) -> None:
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
        (["."], "not a finished run of `graphveil protect` (run.json is missing): give its folder"),
        ([".", "--embeddings", "z.npy"], "give either the folder of a run"),
        ([".", "--seed", "3"], "--seed was given with a run folder, which has its own"),
        (["--embeddings", "z.npy", "--graph", "synthetic", "--secret", "labels", "--split", "half"], "unknown split"),
        (["--embeddings", "z.npy", "--graph", "synthetic", "--secret", "labels", "--out", "z.npy"], "would overwrite"),
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
    arguments: list[str], says: str, tmp_path: Path, graphveil: Program, monkeypatch: pytest.MonkeyPatch
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
    tmp_path: Path, graphveil: Program, monkeypatch: pytest.MonkeyPatch
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


@pytest.mark.usefixtures("one_process", "cheap_cells")
def test_reproduce_writes_tables_and_does_nothing_twice(tmp_path: Path, graphveil: Program) -> None:
    arguments = ["table2", "--dataset", "cora", "--encoder", "gcn", "--seeds", "1", "--jobs", "1", "--rounds", "1"]
    done = graphveil("reproduce", *arguments, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "unprotected" in done.stdout
    assert "| codes | cora | gcn | 0.5 | 1 |" in (tmp_path / "findings.md").read_text()
    assert "codes" in (tmp_path / "report.html").read_text()
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").glob("*.json")}
    assert len(files) == 5
    assert graphveil("reproduce", *arguments, "--out", str(tmp_path)).returncode == 0
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


def test_a_report_of_a_run(tmp_path: Path, graphveil: Program) -> None:
    run = tmp_path / "run"
    protect = ["protect", "synthetic", "--secret", "secret", "--set", "rounds=4", "--out", str(run)]
    assert graphveil(*protect).returncode == 0
    done = graphveil("report", str(run))
    assert done.returncode == 0, done.stderr
    assert str(run / "report.html") in done.stdout
    assert "synthetic" in (run / "report.html").read_text()
    elsewhere = tmp_path / "new" / "page.html"
    assert graphveil("report", str(run), "--out", str(elsewhere)).returncode == 0
    assert elsewhere.exists()
    for wrong, says in (
        ([str(tmp_path / "nothing")], "cannot be shown"),
        ([str(tmp_path)], "holds neither run.json nor"),
        ([str(run), "--out", str(run / "run.json")], "ends in .html"),
    ):
        done = graphveil("report", *wrong)
        assert done.returncode == 2
        assert says in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("one_process", "cheap_cells")
def test_sweep_over_tradeoffs(tmp_path: Path, graphveil: Program) -> None:
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
