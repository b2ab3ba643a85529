"""The first screen of an audit: one sentence for each verdict, the bars, and the terms."""

import pytest

from graphveil.formats.audit import AuditRecord
from graphveil.formats.store import parse
from graphveil.reporting.headline import MEANING, VERDICTS, sentence
from graphveil.reporting.parts import MISSING
from tests.reporting import made
from tests.reporting.conftest import Show, table


@pytest.mark.parametrize(
    ("verdict", "size"), [("traces", "a trace of"), ("leaks", "part of"), ("unprotected", "most of")]
)
def test_one_sentence_states_the_size_of_the_largest_reason(verdict: str, size: str) -> None:
    audit = made.audit() | {"verdict": verdict}
    group = {"sentence": "ensemble: accuracy 50.0 [40.0, 60.0] in the worst of 3 groups", "size": 0.3}
    assert sentence(parse(audit, AuditRecord)) == (
        f"Attackers learn {size} labels, 12.0 % of what the unprotected encoder reveals (ensemble: accuracy 33.1 [30.3,"
        " 36.1] is above its reference, 30.2)."
    )
    audit["reasons"].append(group)
    assert f"30.0 % of what the unprotected encoder reveals ({group['sentence']})." in sentence(
        parse(audit, AuditRecord)
    )


@pytest.mark.parametrize(
    ("verdict", "begins"),
    [
        ("protected", "No attack predicts labels significantly better than without the embeddings: "),
        ("flagged", "The audit has flags, so it cannot show that the release hides labels: "),
    ],
)
def test_without_a_leak_the_sentence_states_the_strongest_attack(verdict: str, begins: str) -> None:
    audit = parse(made.audit() | {"verdict": verdict, "reasons": []}, AuditRecord)
    assert sentence(audit) == (
        f"{begins}the strongest attack has an accuracy of 33.1 [30.3, 36.1] %, and the chance level is 30.2 %."
    )


def test_every_verdict_has_a_mark_and_a_meaning() -> None:
    assert set(VERDICTS) == set(MEANING) == {"protected", "traces", "leaks", "unprotected", "flagged"}


def test_without_an_unprotected_encoder_the_scale_ends_at_a_perfect_attack() -> None:
    scale = made.audit()["scale"] | {"unprotected": None}
    audit = parse(made.audit() | {"scale": scale}, AuditRecord)
    assert "12.0 % of what a perfect attack reveals" in sentence(audit)


def test_the_first_screen_has_the_bars_the_certificate_and_the_terms(show: Show) -> None:
    answer = show(made.audit()).all("section")[0]
    leads = [one for one in answer.all("p") if one.attributes.get("class") == "lead"]
    assert len(leads) == 1
    assert table(answer, "Leak and utility, in percent").cells() == [
        ["Leak of labels", "30.2", "33.1 [30.3, 36.1]", "≤ 60.0 %", MISSING, "86.0"],
        ["Utility kept: links", "50.0", "82.4", MISSING, MISSING, "92.9"],
    ]
    legend = next(one for one in answer.all("ul") if one.attributes.get("class") == "legend")
    assert [one.text for one in legend.all("strong")] == ["30.2 %", "33.1 [30.3, 36.1] %", "≤ 60.0 %", "86.0 %"]
    assert f"Certificate: {made.certificate().sentence}" in answer.text
    assert MEANING["leaks"] in answer.text
    assert f"Highest value: {made.audit()['higher']}." in answer.text
    assert "Highest value" not in show(made.audit() | {"higher": None}).text
    assert table(answer, "Reasons for the verdict").cells()[0][1] == "12.0 %"
    assert {"chance level", "certificate", "strongest attack"} <= {row[0] for row in table(answer, "Terms").cells()}
