"""The options of every verb: --json prints one document and nothing else on stdout, and --quiet prints only errors."""

import json
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from typer.testing import CliRunner

from graphveil.cli import app
from graphveil.cli.verbs import Verbs
from graphveil.formats.results import (
    AuditsRecord,
    EmbedRecord,
    ExperimentsRecord,
    GraphRecord,
    GraphsRecord,
    GridRecord,
    ReleaseRecord,
    ReportRecord,
)
from graphveil.formats.run import RunRecord
from graphveil.formats.store import parse
from tests.program import CommandLine, Done
from tests.release.made import drawn, write_tables

SHORT = ["--set", "rounds=4", "--set", "hidden_channels=8", "--set", "out_channels=4", "--device", "cpu"]
Call = Callable[..., Done]


@pytest.fixture(params=["--json", "--quiet", "both"])
def call(request: pytest.FixtureRequest, graphveil: CommandLine) -> Call:
    """Calls a verb that must succeed, and checks its output; the document is in `stdout`."""
    options = ["--json", "--quiet"] if request.param == "both" else [request.param]

    def checked(*words: str | Path) -> Done:
        done = graphveil(*map(str, words), *options)
        assert done.returncode == 0, done.stderr
        if "--json" in options:
            json.loads(done.stdout)  # refuses a second document
        else:
            assert done.stdout == ""
        if "--quiet" in options:
            assert done.stderr == ""
        return done

    return checked


def document(done: Done, kind: Any) -> Any:
    return parse(json.loads(done.stdout), kind) if done.stdout else None


def verbs() -> Iterator[Any]:
    group = typer.main.get_command(app)
    for command in group.commands.values():  # type: ignore[attr-defined]
        yield from getattr(command, "commands", {"": command}).values()


def test_every_verb_has_the_common_options() -> None:
    assert len(list(verbs())) == 13
    for verb in verbs():
        assert {"json", "quiet", "config"} <= {parameter.name for parameter in verb.params}, verb.name


def test_a_run_is_trained_audited_reported_and_released(call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = call("protect", "synthetic", "--utility", "labels", "--secret", "secret", *SHORT, "--out", run)
    written = json.loads((run / "run.json").read_text())
    if done.stdout:
        assert document(done, RunRecord) == parse(written, RunRecord)
        assert ("files in" in done.stderr) == (done.stderr != ""), "the table is on stderr unless --quiet is given"
    found = document(call("audit", run, "--panel", "quick"), AuditsRecord)
    if found is not None:
        (file, audit), *_ = found.audits.items()
        assert file == str(run / "audit.json")
        assert audit.verdict == json.loads((run / "audit.json").read_text())["verdict"]
    page = document(call("report", run), ReportRecord)
    assert page is None or page.file == str(run / "report.html")
    release = document(call("export", run, "--out", tmp_path / "release", "--force"), ReleaseRecord)
    if release is not None:
        assert set(release.files) == {file.name for file in (tmp_path / "release").iterdir()}
        assert release.secrets["secret"].verdict == "flagged"
        assert len(release.objections) > 0


def test_embeddings_of_another_graph(call: Call, trained: Path, tmp_path: Path) -> None:
    newer = write_tables(tmp_path / "newer", *drawn(0))
    done = call("embed", trained, newer, "--out", tmp_path / "out", "--no-audit", "--device", "cpu")
    found = document(done, EmbedRecord)
    if found is not None:
        assert (found.nodes, found.known, found.kept_codes, found.audits) == (160, 160, None, {})
        shutil.rmtree(tmp_path / "out")
        done = call("embed", trained, newer, "--out", tmp_path / "out", "--panel", "quick", "--device", "cpu")
        assert sorted(document(done, EmbedRecord).audits) == sorted(map(str, (tmp_path / "out").glob("audit*.json")))


def test_a_rounded_file(call: Call, tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", np.random.default_rng(0).normal(size=(20, 3)))
    found = document(call("grid", tmp_path / "z.npy", "--out", tmp_path / "grid.npy"), GridRecord)
    assert found is None or (found.file, found.columns) == (str(tmp_path / "grid.npy"), 3)


def test_graphs(call: Call) -> None:
    listed = document(call("data", "list"), GraphsRecord)
    shown = document(call("data", "show", "karate"), GraphRecord)
    if listed is not None:
        assert {one.name: one.nodes for one in listed.graphs}["karate"] == 34
        assert (shown.nodes, shown.links, sum(shown.targets["labels"].classes.values())) == (34, 78, 34)


@pytest.mark.usefixtures("one_process", "cheap_cells")
def test_a_sweep(call: Call, tmp_path: Path) -> None:
    few = ["--tradeoff", "0.5", "--seeds", "1", "--jobs", "1", "--rounds", "1", "--out", tmp_path]
    found = document(call("sweep", "synthetic", "--secret", "secret", *few), ExperimentsRecord)
    if found is not None:
        assert [row.tradeoff for row in found.experiments["sweep"].rows] == [0.5]
        assert found.table1 is None


def test_an_error_is_a_sentence_on_stderr_alone(graphveil: CommandLine) -> None:
    done = graphveil("data", "show", "nowhere", "--json", "--quiet")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("graphveil: unknown graph 'nowhere'")


def test_an_option_is_for_one_call_only(graphveil: CommandLine) -> None:
    assert graphveil("data", "show", "karate", "--quiet").stdout == ""
    assert "34 nodes" in graphveil("data", "show", "karate").stdout


def test_quiet_logs_errors_only(caplog: pytest.LogCaptureFixture) -> None:
    verbs = Verbs()

    @verbs.command()
    def verb() -> None:
        for level in (logging.INFO, logging.WARNING, logging.ERROR):
            logging.getLogger("graphveil.data").log(level, logging.getLevelName(level))

    caplog.set_level(logging.INFO)  # as --verbose does
    for words, logged in (["--quiet"], ["ERROR"]), ([], ["INFO", "WARNING", "ERROR"]):
        caplog.clear()
        assert CliRunner().invoke(verbs, words).exit_code == 0
        assert caplog.messages == logged
