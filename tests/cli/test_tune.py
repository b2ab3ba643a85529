"""`graphveil tune`: the table, the sentence, the exit code, and wrong input."""

import json
from functools import partial
from pathlib import Path

import pytest

from graphveil.runs.audit import audit_run
from tests.program import CommandLine


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert "candidates on the validation part" in done.stdout
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
