"""The rule of export: certificates decide before intervals, and both before flags."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tools.links import ROOT

from graphveil.errors import GraphveilError
from graphveil.formats.limits import LimitsRecord
from graphveil.release import release
from graphveil.runs.folder import RunFolder
from tests.release.made import CODES, best_accuracy, change, limits, tribes
from tests.release.test_export import LEAKS

FEW = {"name": "too few examples", "sentence": "one class has 12 test examples"}
NO_ENCODER = {"name": "no unprotected encoder", "sentence": "a leak may look like traces"}
COLLAPSED = {"name": "collapsed", "sentence": "every node has the same row"}
MISSING = "missing"
DAMAGED = "belongs to a search whose limits cannot be read"
RULE: dict[str, list[dict[str, Any] | str]] = {
    "is missing, or cannot be read": [MISSING, {"chance": "much"}],
    "does not match these embeddings, or this split": [{"origin": {"embeddings": "x"}}, {"origin": {"split": "x"}}],
    "is *flagged* only for too few examples, or for the lack of an unprotected encoder": [
        {"verdict": "flagged", "flags": [FEW]},
        {"verdict": "flagged", "flags": [NO_ENCODER]},
        {"verdict": "flagged", "flags": [FEW, NO_ENCODER]},
    ],
    "is *flagged* for another reason, or is not of the full panel": [
        {"verdict": "flagged", "flags": [COLLAPSED]},
        {"verdict": "flagged", "flags": [FEW, COLLAPSED]},
        {"origin": {"panel": "quick"}},
    ],
    "says *unprotected*": [{"verdict": "unprotected"}],
    "says *leaks*": [{"verdict": "leaks"}],
    "says *traces*": [{"verdict": "traces"}],
    "says *protected*": [{"verdict": "protected"}],
    DAMAGED: [{"verdict": "protected"}],
}
"""The rows of the rule, each with audits of its kind."""
LIMITS: list[list[tuple[list[str], float | None]]] = [
    [([], None)],
    [(["0.8"], None), ([], 0.8), (["0.8"], 0.45)],
    [(["0.45"], None), ([], 0.45), (["0.45"], 0.8)],
]
"""For each column of the rule (no limit, within it, above it): `--max-leak` and the limit of the search."""


def stated_rule() -> dict[str, list[str]]:
    """The table of the docs: what happens without a limit, within it and above it."""
    text = (ROOT / "docs" / "how-to" / "export-with-a-limit.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows[2:]}


def test_every_row_of_the_rule_has_a_test() -> None:
    assert list(stated_rule()) == list(RULE)


@pytest.mark.parametrize("certificate", [True, False], ids=["certificate", "interval"])
@pytest.mark.parametrize(
    ("row", "audit"),
    [(row, audit) for row, audits in RULE.items() for audit in audits],
    ids=lambda value: str(value)[:40],
)
def test_a_row_of_the_rule(
    row: str, audit: dict[str, Any] | str, certificate: bool, coded: Path, tmp_path: Path
) -> None:
    file = coded / "audit.json"
    if not certificate:
        best = {"value": 0.5, "ci": [0.4, 0.6], "upper": 0.62}
        change(file, certificate=None, attacks=[], strongest=best, balanced={"value": 0.5, "ci": [0.4, 0.6]})
    if isinstance(audit, str):
        file.unlink()
    else:
        change(file, **audit)
    cases = [
        (outcome, words, of_search)
        for outcome, column in zip(stated_rule()[row], LIMITS, strict=True)
        for words, of_search in column
        if row != DAMAGED or of_search is None
    ]
    for number, (outcome, words, of_search) in enumerate(cases):
        out, search = tmp_path / f"release-{number}", coded / "limits.json"
        search.unlink(missing_ok=True)
        if row == DAMAGED:
            search.write_text("damaged")
        elif of_search is not None:
            RunFolder(coded).write_limits(LimitsRecord({"tribe": of_search}, None))
        if outcome == "exported":
            assert release(coded, out, max_leak=limits(*words)).objections == ()
        else:
            assert outcome == "refused"
            with pytest.raises(GraphveilError, match="was not exported: "):
                release(coded, out, max_leak=limits(*words))
            made = release(coded, out, max_leak=limits(*words), force=True)
            assert all(objection in (out / "CARD.md").read_text() for objection in made.objections)
            assert len(made.objections) > 0


def test_the_limit_is_compared_with_the_certificate_and_not_with_attacks(coded: Path, tmp_path: Path) -> None:
    high = {"value": 0.9, "ci": [0.85, 0.95]}
    change(coded / "audit.json", **LEAKS | {"strongest": high, "balanced": high})
    exact = best_accuracy(CODES, tribes())
    balanced = json.loads((coded / "audit.json").read_text())["certificate"]["balanced_accuracy"]
    assert 0.5 < exact < balanced < 0.7, "otherwise the test could not fail"
    made = release(coded, tmp_path / "out", max_leak=limits(f"tribe={balanced}"))
    assert made.objections == ()
    text = (made.folder / "CARD.md").read_text()
    assert "for the accuracy and the balanced accuracy that the certificate allows for this release.\n" in text
    for limit, bounds in ((balanced - 1e-4, ["balanced accuracy"]), (exact - 1e-4, ["accuracy", "balanced accuracy"])):
        with pytest.raises(GraphveilError) as refused:
            release(coded, tmp_path / "other", max_leak=limits(str(limit)))
        assert re.findall(r"the certificate of 'tribe' allows an? ([a-z ]+) of 0\.", str(refused.value)) == bounds
        assert "the verdict" not in str(refused.value)


def test_without_a_limit_the_verdict_decides(coded: Path, tmp_path: Path) -> None:
    change(coded / "audit.json", **LEAKS)
    with pytest.raises(GraphveilError, match="the verdict of the audit of 'tribe' is leaks"):
        release(coded, tmp_path / "out")


def test_without_a_certificate_the_intervals_decide(coded: Path, tmp_path: Path) -> None:
    best = {"value": 0.5, "ci": [0.4, 0.6], "upper": 0.6}
    change(coded / "audit.json", certificate=None, attacks=[], strongest=best)
    with pytest.raises(GraphveilError, match=r"up to 0\.600 .97\.5 % upper bound over all attacks on z alone"):
        release(coded, tmp_path / "out", max_leak=limits("0.59"))


def test_too_few_examples_are_no_objection_to_an_interval_within_the_limit(coded: Path, tmp_path: Path) -> None:
    few = {"name": "too few examples", "sentence": "one class has 12 test examples"}
    best, wide = {"value": 0.5, "ci": [0.4, 0.6], "upper": 0.62}, {"value": 0.5, "ci": [0.4, 0.6]}
    change(
        coded / "audit.json",
        certificate=None,
        attacks=[],
        strongest=best,
        balanced=wide,
        verdict="flagged",
        flags=[few],
    )
    assert release(coded, tmp_path / "out", max_leak=limits("0.63")).objections == ()
    with pytest.raises(GraphveilError, match="is flagged: too few examples"):
        release(coded, tmp_path / "other", max_leak=limits("0.61"))


def test_too_few_examples_are_no_objection_to_a_certificate_within_the_limit(coded: Path, tmp_path: Path) -> None:
    few = {"name": "too few examples", "sentence": "the interval of the headline is ±10.7 points"}
    change(coded / "audit.json", verdict="flagged", flags=[few])
    made = release(coded, tmp_path / "out", max_leak=limits("0.8"))
    assert made.objections == ()
    assert "- Flag: too few examples" in (made.folder / "CARD.md").read_text(), "it stays on the card"
    for words in ([], ["0.5"]):
        with pytest.raises(GraphveilError, match="is flagged: too few examples"):
            release(coded, tmp_path / "other", max_leak=limits(*words))
    change(coded / "audit.json", flags=[few, {"name": "utility at chance", "sentence": "nothing is kept"}])
    with pytest.raises(GraphveilError, match=r"is flagged: utility at chance \(nothing is kept\)"):
        release(coded, tmp_path / "other", max_leak=limits("0.8"))


@pytest.mark.parametrize(
    "spoilt",
    [{"accuracy": None}, {"accuracy": 2}, {"secret": "links"}, {"sentence": ""}, {"worst": None}, {"codes": []}],
)
def test_an_invalid_certificate_is_an_objection(spoilt: dict[str, Any], coded: Path, tmp_path: Path) -> None:
    change(coded / "audit.json", certificate=spoilt)
    with pytest.raises(GraphveilError, match=r"the audit of 'tribe' cannot be read \(certificate"):
        release(coded, tmp_path / "out", max_leak=limits("0.9"))


def test_the_limit_of_the_search_is_on_the_card(coded: Path, tmp_path: Path) -> None:
    RunFolder(coded).write_limits(LimitsRecord({"tribe": 0.8}, None))
    text = (release(coded, tmp_path / "one").folder / "CARD.md").read_text()
    assert "\nLimit of the search that chose the run: 0.8, for the accuracy and the balanced accuracy that" in text
    text = (release(coded, tmp_path / "two", max_leak=limits("0.9")).folder / "CARD.md").read_text()
    assert "\nLimit set with `--max-leak`, in place of the search's limit of 0.8: 0.9, for the accuracy and" in text
    RunFolder(coded).write_limits(LimitsRecord({"tribe": 0.5}, 0.99))
    with pytest.raises(GraphveilError, match=r"allows an accuracy of 0\.\d+, above the search's limit of 0\.5;"):
        release(coded, tmp_path / "three")


def test_limits_that_cannot_be_read_are_an_objection_on_the_card(coded: Path, tmp_path: Path) -> None:
    RunFolder(coded).write_limits(LimitsRecord({"tribe": 0.2}, None))
    file = coded / "limits.json"
    file.write_text(file.read_text().replace("0.2", "0.9"))
    with pytest.raises(GraphveilError, match=r"limits of the search cannot be read .limits\.json: it was changed"):
        release(coded, tmp_path / "out", max_leak=limits("0.9"))
    text = (release(coded, tmp_path / "out", force=True).folder / "CARD.md").read_text()
    assert "- Objection: the limits of the search cannot be read (limits.json: it was changed after it was" in text
