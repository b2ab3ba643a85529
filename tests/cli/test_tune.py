"""`graphveil tune`: the table, the sentence, the exit code, and wrong input."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from graphveil.runs.audit import audit_run
from tests.program import CommandLine
from tests.release.made import change


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, one_process: None) -> None:
    """Two candidates, and a quick audit of the chosen one."""
    monkeypatch.setattr("graphveil.experiments.tune.TRADEOFFS", (0.7,))
    monkeypatch.setattr("graphveil.experiments.tune.SEEDS", 1)
    monkeypatch.setattr("graphveil.experiments.tune.audit_run", partial(audit_run, attacks="quick", controls=False))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("limit", "code"), [("1", 0), ("0.3", 3)])
def test_a_limit_is_met_or_the_exit_code_is_3(limit: str, code: int, tmp_path: Path, graphveil: CommandLine) -> None:
    few = ["--encoder", "gcn", "--rounds", "12", "--jobs", "1", "--out", str(tmp_path / "out")]
    done = graphveil("tune", "karate", "--max-leak", limit, *few)
    assert done.returncode == code, done.stderr
    assert "candidates, in percent" in done.stdout
    assert "Audit of labels" in done.stdout
    if code == 0:
        assert "; the limit is 100.0 %. But its audit is flagged (" in done.stdout, "it was quick"
        assert "so export refuses it." in done.stdout
        assert "graphveil export" not in done.stdout
    else:
        assert "The limit is not met" in done.stderr
        assert "points above the limit" in done.stderr
    assert (tmp_path / "out" / "chosen" / "run.json").exists()
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert ("✓ limit met" if code == 0 else "✗ limit not met") in page


@pytest.mark.usefixtures("short")
def test_the_record_is_printed_even_if_the_limit_is_not_met(tmp_path: Path, graphveil: CommandLine) -> None:
    few = ["--encoder", "gcn", "--rounds", "12", "--jobs", "1", "--out", str(tmp_path / "out")]
    done = graphveil("tune", "karate", "--max-leak", "0.3", *few, "--json", "--quiet")
    assert done.returncode == 3
    assert json.loads(done.stdout) == json.loads((tmp_path / "out" / "tune.json").read_text())
    assert done.stderr.startswith("graphveil: The limit is not met")


@pytest.mark.usefixtures("short")
def test_a_verdict_above_the_limit_is_neither_printed_nor_on_a_page(
    tmp_path: Path, graphveil: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its flags, such as that of the quick panel, the audit of these codes is *protected*."""
    monkeypatch.setattr("graphveil.auditing.result.audit_flags", lambda _: ())
    out, chosen = tmp_path / "out", tmp_path / "out" / "chosen"
    few = ["--encoder", "gcn", "--rounds", "12", "--jobs", "1", "--out", str(out)]
    done = graphveil("tune", "karate", "--max-leak", "0.3", *few)
    assert done.returncode == 3
    audit = json.loads((chosen / "audit.json").read_text())
    assert audit["verdict"] == "protected", "otherwise the test could not fail"
    assert graphveil("report", str(chosen)).returncode == 0
    again = graphveil("audit", str(chosen), "--panel", "quick", "--no-controls")
    for printed in (done.stdout, again.stdout):
        assert "Audit of labels: above the limit of 30.0 %" in printed
        assert not re.search(r"(?<!un)protected", printed)
    for page in (out / "report.html", chosen / "report.html"):
        text = page.read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
        assert "✗ limit not met" in text
        assert "Audit of labels: above the limit of 30.0 %. Attacks on the embeddings alone reach at most" in text
        assert not re.search(r"(?<!un)protected|better than without the embeddings", text)
    change(chosen / "audit.json", origin={"panel": "full"})
    refused = graphveil("export", str(chosen), "--out", str(tmp_path / "release"))
    assert refused.returncode == 2
    assert "above the search's limit of 0.3" in refused.stderr
    assert graphveil("export", str(chosen), "--max-leak", "1", "--out", str(tmp_path / "release")).returncode == 0
    stated = "Limit set with `--max-leak`, in place of the search's limit of 0.3: 1, for"
    assert stated in (tmp_path / "release" / "CARD.md").read_text()


@pytest.mark.usefixtures("short")
def test_a_missed_utility_is_stated_in_place_of_the_verdict(
    tmp_path: Path, graphveil: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphveil.auditing.result.audit_flags", lambda _: ())
    monkeypatch.setattr("graphveil.experiments.tune.GAINS", (0.0,))
    few = ["--encoder", "gcn", "--rounds", "12", "--jobs", "1", "--out", str(tmp_path / "out")]
    done = graphveil("tune", "karate", "--min-utility", "1", *few)
    assert done.returncode == 3
    assert "Audit of labels: utility below 100.0 %" in done.stdout
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert "Audit of labels: utility below 100.0 %." in page


@pytest.mark.usefixtures("short")
def test_a_damaged_limits_file_is_one_sentence(tmp_path: Path, graphveil: CommandLine) -> None:
    few = ["--encoder", "gcn", "--rounds", "2", "--jobs", "1", "--out", str(tmp_path / "out")]
    assert graphveil("tune", "karate", "--max-leak", "1", *few).returncode == 0
    chosen = str(tmp_path / "out" / "chosen")
    (tmp_path / "out" / "chosen" / "limits.json").write_text("{}")
    for words in (["audit", chosen, "--panel", "quick"], ["report", chosen]):
        done = graphveil(*words)
        assert done.returncode == 2
        assert "limits.json" in done.stderr
        assert "it has no schema, expected 'graphveil/limits/1'" in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--max-leak", "2"], "--max-leak '2' is not a limit"),
        (["--max-leak", "+2", "--min-utility", "0.8"], "were both given"),
        (["--encoder", "gnc"], "unknown encoder 'gnc'"),
        (["--secret", "gender"], "the graph has no 'gender'"),
    ],
)
def test_wrong_input_is_one_sentence(words: list[str], says: str, tmp_path: Path, graphveil: CommandLine) -> None:
    done = graphveil("tune", "karate", *words, "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert says in done.stderr
    assert not (tmp_path / "out").exists()


def test_somebodys_folder_is_refused(tmp_path: Path, graphveil: CommandLine) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    done = graphveil("tune", "karate", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
