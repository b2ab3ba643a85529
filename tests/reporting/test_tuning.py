"""The page of a search: whether the limit is met, the front, the chosen run, and all candidates."""

import json
from pathlib import Path

import pytest

from graphveil.errors import GraphveilError
from graphveil.reporting import report
from tests.reporting import made
from tests.reporting.conftest import Element, parse, table


def shown(folder: Path) -> Element:
    report(folder, folder / "report.html")
    return parse(folder / "report.html")


def test_the_first_screen_states_the_choice_and_its_audit(tmp_path: Path) -> None:
    answer = shown(made.search(tmp_path)).all("section")[0]
    assert answer.all("h2")[0].text == "✓ limit met"
    assert (
        "Of 4 candidates, gcn at λ 0.5 (gain 1 %, seed 0) has the highest utility within the limit: utility 80.0 %,"
        " attacks at most 31.0 % for labels (measured without the test part)." in answer.text
    )
    assert "Attackers learn part of labels" in answer.text
    assert table(answer, "Leak and utility, in percent").cells()[0][2] == "33.1 [30.3, 36.1]"


def test_the_slider_goes_along_the_front_and_starts_at_the_choice(tmp_path: Path) -> None:
    page = shown(made.search(tmp_path))
    names = [one.text for one in page.all("h3")]
    assert names == [
        "gcn at λ 0.3 (gain 1 %, seed 0)",
        "★ gcn at λ 0.5 (gain 1 %, seed 0)",
        "gcn at λ 0.9 (gain 1 %, seed 0)",
    ]
    assert page.all("input")[0].attributes["value"] == "2"
    assert len(page.all("script")) == 1
    chosen = next(one for one in page.all("article") if "★" in (one.attributes.get("aria-label") or ""))
    assert "It is the chosen candidate. It is within the limit." in chosen.text
    drawn = [one.all("title")[0].text for one in chosen.all("svg") if one.attributes.get("role") == "img"]
    assert drawn == ["before: unprotected", "after: this candidate"]
    assert table(chosen, "Attacks on labels, test part").cells()[0][0] == "ensemble"
    candidates = next(one for one in page.all("section") if one.all("h2") and one.all("h2")[0].text == "All candidates")
    assert len(table(candidates, "Candidates").cells()) == 4


def test_a_limit_that_is_not_met_and_a_smallest_utility(tmp_path: Path) -> None:
    page = shown(made.search(tmp_path / "a", limit=0.3, met=False))
    assert page.all("h2")[0].text == "✗ limit not met"
    assert "is nearest to the limit, but above it" in page.text
    said = "Audit of labels: leaks, above the limit of 30.0 %. Attacks on the embeddings alone reach at most 60.0 %."
    assert said in page.text
    assert "Attackers learn part of labels" in page.text, "the leak is stated too"
    assert "leaks, above the limit of 30.0 %: A limit was stated for the search that chose this run." in page.text
    page = shown(made.search(tmp_path / "b", limit=1.0, min_utility=0.75))
    assert page.all("h2")[0].text == "✓ utility reached"
    assert "has the least leak of those with a utility of at least 75.0 %" in page.text
    assert "within the limit." not in page.text
    page = shown(made.search(tmp_path / "c", limit=1.0, min_utility=0.9, met=False))
    assert page.all("h2")[0].text == "✗ utility not reached"
    assert "has the highest utility, but it is below 90.0 %: utility 80.0 %" in page.text


def test_without_a_limit_the_chart_shows_the_secret_with_the_largest_gain_over_chance(tmp_path: Path) -> None:
    folder = made.search(tmp_path, limit=1.0, min_utility=0.75)
    record = json.loads((folder / "tune.json").read_text())
    record["secrets"].append({"secret": "town", "chance": 0.9, "limit": 1.0})
    for point in record["points"]:
        point["leaks"].append(0.9)
        point["codes"].append(None)
    (folder / "tune.json").write_text(json.dumps(record))
    page = shown(folder)
    assert "certificate of labels" in page.text
    assert "certificate of town" not in page.text


def test_a_search_without_its_chosen_run_is_one_sentence(tmp_path: Path) -> None:
    folder = made.search(tmp_path)
    (folder / "chosen" / "run.json").unlink()
    with pytest.raises(GraphveilError, match=r"chosen/run\.json cannot be shown"):
        report(folder, folder / "report.html")
