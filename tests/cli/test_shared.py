"""What the verbs share: tables that fit a terminal, and a warning if the utility is lost."""

import io

import pytest

from graphveil.auditing import Utility
from graphveil.cli.console import PlainConsole, console
from graphveil.cli.shared import scores_table, show_table, warn_if_utility_is_lost
from graphveil.training.score import Joint, Score


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
    show_table("T", ("secret", "accuracy"), [["gender", "50.9"]])
    output = capsys.readouterr().out
    assert row in output
    assert "…" not in output


@pytest.mark.parametrize(("kept", "warned"), [(0.5, True), (0.58, True), (0.61, True), (0.612, False)])
@pytest.mark.parametrize("name", ["links", "labels", "segment"])
def test_a_lost_utility_is_reported(name: str, kept: float, warned: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """With 1,000 examples, 3.1 points above the chance level are significant; the audit has the same rule."""
    warn_if_utility_is_lost(Utility(name, kept, 0.58, 1000), "Raise it.")
    warning = f"on 1,000 test examples, the embeddings predict {name} not significantly better than chance. Raise it."
    assert (f"warning: {warning}" in capsys.readouterr().out) is warned
