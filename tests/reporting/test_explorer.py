"""The page of a sweep: the points of its front in the order of utility, one script, and a size that is bounded."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphveil.reporting.explorer import MOST_STEPS
from tests.reporting import made
from tests.reporting.conftest import Element, Show, hashed, percent, table


def sweep(tradeoffs: list[float]) -> dict[str, Any]:
    content = made.experiment("sweep", tradeoffs, ["codes"])
    content["rows"] = [row for row in content["rows"] if (row["dataset"], row["encoder"]) == ("cora", "gcn")]
    for row in content["rows"]:
        row.update(paper=None, verdict="")
    return content


def steps(page: Element) -> list[Element]:
    return page.all("article")


def test_the_steps_are_the_front_in_the_order_of_utility(show: Show) -> None:
    content = sweep([0.1, 0.3, 0.5, 0.7])
    values = [(0.7, 0.4), (0.8, 0.5), (0.75, 0.6), (0.9, 0.7)]
    for row, (utility, leak) in zip(content["rows"], values, strict=True):
        row.update(utility=made.estimate(utility), fresh=made.estimate(leak))
    page = show(sweep=content)
    assert [one.all("h3")[0].text for one in steps(page)] == [f"codes · gcn · λ {at}" for at in ("0.1", "0.3", "0.7")]
    assert steps(page)[1].attributes["data-text"] == "codes · gcn · λ 0.3: utility 80.0\N{NO-BREAK SPACE}%, leak" + (
        " 50.0\N{NO-BREAK SPACE}%"
    )
    numbers = [one.attributes["data-step"] for one in page.all("path") if "data-step" in one.attributes]
    assert sorted(numbers, key=str) == ["0", "1", "2"], "the point at 0.5 is beaten by that at 0.3"


def test_a_step_shows_its_values_its_maps_and_its_attacks(show: Show) -> None:
    content = sweep([0.1, 0.5, 0.9])
    page = show(sweep=content)
    by_name = {one.all("h3")[0].text: one for one in steps(page)}
    row = content["rows"][0]
    step = by_name["codes · gcn · λ 0.1"]
    assert f"{percent(row['fresh']['value'])} [" in step.text
    assert table(step, "Attacks at λ 0.1").cells()[0][0] == "★ ensemble"
    drawn = [one.all("title")[0].text for one in step.all("svg") if one.attributes.get("role") == "img"]
    assert drawn == ["highest leak of the sweep (λ 0.9)", "this point (λ 0.1)"]
    last = by_name["codes · gcn · λ 0.9"]
    assert len([one for one in last.all("svg") if one.attributes.get("role") == "img"]) == 1, "not the same map twice"


def test_without_scripts_every_point_is_shown_and_the_slider_is_not(show: Show) -> None:
    page = show(sweep=sweep([0.1, 0.5, 0.9]))
    assert len(steps(page)) > 1
    assert all("hidden" not in one.attributes for one in steps(page))
    (slider,) = [one for one in page.all("div") if one.attributes.get("class") == "slider"]
    assert "hidden" in slider.attributes


def test_the_policy_allows_the_one_script_and_nothing_else(show: Show, tmp_path: Path) -> None:
    page = show(sweep=sweep([0.1, 0.5, 0.9]))
    (script,), (style,) = page.all("script"), page.all("style")
    policy = next(one for one in page.all("meta") if one.attributes.get("http-equiv"))
    assert policy.attributes["content"] == (
        f"default-src 'none'; style-src {hashed(''.join(style.texts))}; script-src {hashed(''.join(script.texts))};"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|@import|url\(|\bimport\b|fetch\(|XMLHttpRequest", text)


@pytest.mark.parametrize("payload", ["</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>'])
def test_no_name_becomes_markup(payload: str, show: Show) -> None:
    content = sweep([0.1, 0.5, 0.9])
    for row in content["rows"]:
        row.update(fresh_attack=payload, attacks={payload: row["fresh"]}, dataset=payload)
        row["map"]["codes"]["names"] = [payload] * 7
    page = show(sweep=content)
    assert len(page.all("script")) == 1
    assert page.all("img") == []


def test_a_release_of_a_million_nodes_gives_a_small_page(show: Show, tmp_path: Path) -> None:
    """The largest record that a sweep can have: counts of 60 codes, each with 20 classes, at 40 trade-offs."""
    content = sweep([round(0.02 * i, 2) for i in range(40)])
    rng, names = np.random.default_rng(0), [f"class number {c}" for c in range(20)]
    for number, row in enumerate(content["rows"]):
        row.update(utility=made.estimate(0.5 + 0.01 * number), fresh=made.estimate(0.4 + 0.01 * number))
        counts = rng.multinomial(1_000_000, np.full(1200, 1 / 1200)).reshape(60, 20)
        row["map"]["codes"] = {"of": "nodes", "counts": counts.tolist(), "codes": 2000, "names": names}
    page = show(sweep=content)
    assert len(steps(page)) == MOST_STEPS
    assert steps(page)[0].all("h3")[0].text.endswith("λ 0")
    assert steps(page)[-1].all("h3")[0].text.endswith("λ 0.78")
    assert (tmp_path / "report.html").stat().st_size < 5_000_000
