"""The first screen of an audit: one sentence for each verdict, the bars, and the terms."""

import pytest

from graphveil.formats.audit import AuditRecord
from graphveil.formats.store import parse
from graphveil.reporting.headline import MEANING, VERDICTS, sentence
from graphveil.reporting.parts import MISSING
from tests.reporting import made
from tests.reporting.conftest import Show, table


@pytest.mark.parametrize(
    ("verdict", "begins"),
    [
        ("protected", "No attack predicts labels significantly better than without the embeddings: the strongest"),
        ("traces", "Attackers learn a trace of labels: the strongest"),
        ("leaks", "Attackers learn part of labels: the strongest"),
        ("unprotected", "Attackers learn most of labels: the strongest"),
        ("flagged", "The audit has flags, so it cannot show that labels is protected: the strongest"),
    ],
)
def test_one_sentence_states_the_verdict_and_its_size(verdict: str, begins: str) -> None:
    audit = parse(made.audit() | {"verdict": verdict}, AuditRecord)
    assert sentence(audit).startswith(begins)
    assert sentence(audit).endswith(
        "attack has an accuracy of 33.1 [30.3, 36.1] %, 5.2 % of the way from the chance level (30.2 %) to the"
        " unprotected encoder (86.0 %)."
    )


def test_every_verdict_has_a_mark_and_a_meaning() -> None:
    assert set(VERDICTS) == set(MEANING) == {"protected", "traces", "leaks", "unprotected", "flagged"}


def test_without_an_unprotected_encoder_the_scale_ends_at_a_perfect_attack() -> None:
    scale = {"reference": 0.6, "compared_with": "floor", "unprotected": None, "size": -0.01, "ci": [-0.1, 0.1]}
    audit = parse(made.audit() | {"scale": scale | {"certified": None}}, AuditRecord)
    assert sentence(audit).endswith("0.0 % of the way from the floor (60.0 %) to a perfect attack.")


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
    assert table(answer, "Reasons for the verdict").cells()[0][1] == "12.0 %"
    assert {"chance level", "certificate", "strongest attack"} <= {row[0] for row in table(answer, "Terms").cells()}
