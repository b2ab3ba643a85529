"""The console: literal texts, one JSON document on stdout, and one sentence for errors and for Ctrl-C."""

import json
from pathlib import Path

import pytest

from graphveil.cli.console import PlainConsole, exit_on_interrupt, fail
from graphveil.formats.results import AuditsRecord


def test_names_are_neither_markup_nor_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    PlainConsole(width=80).print("[red]town[/red] :smile: \x1b[2J")
    shown = capsys.readouterr().out
    assert "[red]town[/red] :smile:" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("quiet", [False, True])
def test_json_is_the_only_text_on_stdout(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    console = PlainConsole()
    console.start(as_json=True, quiet=quiet)
    console.print("on the way")
    console.result(AuditsRecord({}))
    shown = capsys.readouterr()
    assert json.loads(shown.out)["schema"] == AuditsRecord.SCHEMA
    assert ("on the way" in shown.err) is not quiet


def test_without_json_the_record_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    console = PlainConsole()
    console.start(as_json=False, quiet=False)
    console.result(AuditsRecord({}))
    assert capsys.readouterr().out == ""


def test_an_error_is_one_shortened_sentence_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        fail("a" * 10_000, code=7)
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (7, "")
    assert shown.err.startswith("graphveil: aaa")
    assert len(shown.err) < 5_000


@pytest.mark.parametrize(
    ("outcome", "otherwise", "exists", "sentence"),
    [
        ("continue with --resume.", None, True, "interrupted; continue with --resume."),
        ("continue with --resume.", None, False, "interrupted before anything was finished"),
        ("continue with --resume.", "run audit.", True, "interrupted; continue with --resume."),
        ("continue with --resume.", "run audit.", False, "interrupted; run audit."),
        (None, None, True, "interrupted before anything was finished"),
    ],
)
def test_ctrl_c_says_what_is_left(
    outcome: str | None,
    otherwise: str | None,
    exists: bool,
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path if exists else tmp_path / "missing"
    with pytest.raises(SystemExit) as ended, exit_on_interrupt(outcome, folder, otherwise):
        raise KeyboardInterrupt
    assert ended.value.code == 130
    assert sentence in capsys.readouterr().err
