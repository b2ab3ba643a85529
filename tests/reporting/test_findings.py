"""The page of an audit or a run: its verdict, its numbers, its groups and its certificate."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphveil.codes import NOT_COVERED, link_certificate
from graphveil.formats.certificate import ClassCalibration
from graphveil.reporting import report
from graphveil.reporting.parts import MISSING
from tests.formats.made import run
from tests.reporting import made
from tests.reporting.conftest import MINUS, Show, parse, table


def test_the_summary_of_an_audit_comes_first(show: Show) -> None:
    answer = show(made.audit()).all("section")[0]
    calibration = made.certificate().calibration
    assert isinstance(calibration, ClassCalibration)
    limit = f"≤ {math.ceil(1000 * calibration.accuracy_limit) / 10:.1f} %"
    assert answer.all("h2")[0].text == "✗ leaks"
    facts = {one.all("dt")[0].text: one.all("dd")[0].text for one in answer.all("div") if one.all("dt")}
    assert facts == {
        "strongest attack": "33.1 [30.3, 36.1] % accuracy; ensemble",
        "worst group": f"11.2 [2.1, 20.3] % TPR {MINUS} FPR of labels = Theory; 130 test examples; chance level 0.0 %",
        "certificate · this release": "≤ 60.0 % accuracy of the best possible attack on the codes alone, computed"
        " exactly",
        "certificate · other nodes": f"{limit} accuracy of the best possible attack on other nodes, with 95 %"
        " confidence",
        "certificate · balanced accuracy": "≤ 57.6 % of the best possible attack on the codes alone",
        "certificate · worst code": "≤ 60.0 % largest share of a class among nodes with the same code (100 nodes)",
        "codes": "4 the code of a node reveals at most 2.00 bits about any secret",
        "chance level": "30.2 % 1000 test examples",
        "public graph without z": "85.6 [83.3, 87.6] % accuracy of attacks on the public graph alone; the strongest"
        " attack is 52.5 points below it",
        "joint adversary": "28.4 % the strongest attack is 4.7 points above it",
        "balanced accuracy": "24.0 [21.1, 26.8] % MLP, all; chance level 14.3 %",
        "with the public graph": f"85.2 [82.9, 87.3] % GNN; chance level 30.2 %; z adds {MINUS}0.4 points",
        "with the features": "75.1 [72.3, 77.7] % MLP, all, with features; chance level 30.2 %; z adds +1.1 points",
    }
    assert "too few examples: one class has 12 test examples" in answer.text


def test_every_group_is_in_a_table(show: Show) -> None:
    page = show(made.audit())
    found = table(page, "The strongest attack by group")
    assert found.cells() == [
        ["labels = Theory", "130", f"TPR {MINUS} FPR", "11.2 [2.1, 20.3]", "0.0", "chance level"],
        ["degree 0 to 2", "333", "accuracy", "31.0 [24.1, 38.0]", "32.2", "chance level"],
        ["town = Bath", "12", "accuracy", "too few", MISSING, MISSING],
    ]
    assert "for the strongest attack, ensemble. The intervals hold for all 2 groups at once" in page.text
    without = show(made.audit() | {"groups": [], "worst_group": None})
    assert "Groups" not in [one.text for one in without.all("h2")]
    assert "worst group" not in without.all("section")[0].text


def test_the_attack_with_the_known_links_has_a_line_and_comes_after_those_on_z(show: Show) -> None:
    held = {"attack": "trees, with known links", "metric": "auc", "value": 0.991, "ci": [0.986, 0.994], "chance": 0.5}
    audit = made.audit() | {"secret": "links", "with_links": held | {"excess": {"value": 0.012, "ci": [0.004, 0.02]}}}
    more = {"needs": ["z", "secrets", "known links"], "metrics": {}, "validation": 0.99, "seconds": 1.0}
    audit["attacks"] = [held | more, *audit["attacks"]]
    page = show(audit)
    facts = {one.all("dt")[0].text: one.all("dd")[0].text for one in page.all("div") if one.all("dt")}
    line = "99.1 [98.6, 99.4] % trees, with known links; chance level 50.0 %; z adds +1.2 points"
    assert facts["with the known links"] == line
    names = [row[0] for row in table(page, "Every attack, in percent").cells()]
    on_z = [name for name in names if "with known links" not in name and not name.startswith("control")]
    assert names.index("trees, with known links") == len(on_z)


def test_the_certificate_has_a_section_of_its_own(show: Show) -> None:
    page, found = show(made.audit()), made.certificate()
    assert "Certificate" in [one.text for one in page.all("h2")]
    assert found.sentence in page.text
    assert table(page, "Certificate").cells() == [list(row) for row in found.rows]
    assert table(page, "What the certificate does not cover").cells() == [list(row) for row in NOT_COVERED]
    without = show(made.audit() | {"certificate": None})
    assert "Certificate" not in [one.text for one in without.all("h2")]
    facts = [one.text for one in without.all("dt")]
    assert not [name for name in facts if "certificate" in name]


def test_the_certificate_of_links(show: Show) -> None:
    links = np.array([[0, 0, 1, 2, 4, 5], [1, 2, 2, 3, 5, 6]])
    found = link_certificate(np.array([0, 0, 0, 1, 1, 1, 1, 1]), links, np.arange(8) % 2)
    page = show(made.audit() | {"secret": "links", "certificate": found.to_dict()})
    assert "AUC of the best possible attack on the codes alone, computed exactly" in page.all("section")[0].text
    assert table(page, "Certificate").cells() == [list(row) for row in found.rows]


def test_a_run_that_was_not_audited_shows_its_certificate(tmp_path: Path) -> None:
    found = made.certificate()
    made.write(tmp_path / "run.json", run() | {"certificates": {"labels": found.to_dict(), "town": None}})
    report(tmp_path, tmp_path / "report.html")
    answer = parse(tmp_path / "report.html").all("section")[0].text
    assert found.sentence in answer
    assert "majority class per code" in answer
    assert "adversary" not in answer
    assert "≤ 60.0 %" in answer


def test_all_results_of_an_audit_are_shown(show: Show) -> None:
    page = show(made.audit())
    assert table(page, "Every attack").cells()[0][0] == "★ ensemble"
    attacks = table(page, "Attacks on the embeddings").cells()
    assert [line[0] for line in attacks][:2] == ["ensemble", "k nearest neighbours, few"]
    assert attacks[0][2] == "33.1 [30.3, 36.1]"
    assert table(page, "Controls").cells() == [
        ["public graph", "label propagation", "85.6 [82.8, 88.6]", "85.6 [82.8, 88.6]"],
        ["unprotected encoder", "k nearest neighbours, few", "72.0 [69.2, 75.0]", "72.0 [69.2, 75.0]"],
        ["chance level", MISSING, "30.2", MISSING],
    ]
    nats = table(page, "Mutual information of embeddings and secret").cells()
    assert nats[0] == ["lower bound", "0.041 [0.011, 0.071]", MISSING]
    assert nats[1][2] == "too few examples"
    assert "labels of 15 nodes are unknown" in page.text
    assert {"before: unprotected", "after: these embeddings"} <= {one.text for one in page.all("title")}


@pytest.mark.parametrize(("verdict", "word"), [("protected", "✓ protected"), ("flagged", "⚠ flagged")])
def test_verdicts_are_words(show: Show, verdict: str, word: str) -> None:
    assert show(made.audit() | {"verdict": verdict}).all("h2")[0].text == word


def test_a_run_with_two_secrets_shows_both_and_says_which_was_not_audited(tmp_path: Path) -> None:
    record = run() | {"graph": "/home/me/people", "audited_as": "abc"}
    record["config"]["secrets"] = ["labels", "city"]
    made.write(tmp_path / "run.json", record)
    audit = made.audit()
    assert audit["origin"]["embeddings"] == "abc"
    made.write(tmp_path / "audit.json", audit)
    columns = {"round": [5], "utility": [0.75], "adversary": [0.5], "adversary-2": [0.6]}
    pq.write_table(pa.table(columns), tmp_path / "history.parquet")
    report(tmp_path, tmp_path / "report.html")
    page = parse(tmp_path / "report.html")
    assert "people: keep links, hide labels and city" in page.text
    assert "/home/me" not in page.text
    assert "no audit of city" in page.text
    assert [row[-3:-1] for row in table(page, "Training curves, in percent").cells()] == [
        ["75.0", "50.0"],
        ["75.0", "60.0"],
    ]
    city = audit | {"secret": "city", "verdict": "leaks"}
    made.write(tmp_path / "audit.city.json", city | {"origin": audit["origin"] | {"embeddings": "other"}})
    report(tmp_path, tmp_path / "report.html")
    text = parse(tmp_path / "report.html").text
    assert "not shown, because they are audits of other embeddings: audit.city.json" in text
    assert "no audit of city" in text
    made.write(tmp_path / "audit.city.json", city)
    report(tmp_path, tmp_path / "report.html")
    text = parse(tmp_path / "report.html").text
    assert "no audit of" not in text
    assert "strongest attack · city" in text
    assert "city: Attackers learn part of city" in text
