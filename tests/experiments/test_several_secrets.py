"""A sweep that hides two secrets: one training, one audit for each secret, and separate tables."""

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphveil import cli, pool
from graphveil.auditing import classifiers
from graphveil.experiments.render import brief, comma_separated, latex, markdown
from tests.cheap import InThisProcess, untuned_regression
from tests.experiments.made import PLAIN, TINY
from tests.reporting.conftest import parse

TRADEOFFS = ("0", "0.5", "1")
Sweep = Callable[[], str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables: the gender is in a column and in the links; the city is unrelated to both."""
    random = np.random.default_rng(0)
    gender, city = random.integers(0, 2, 200), random.integers(0, 3, 200)
    score, noise = gender + random.normal(0, 0.1, 200), random.normal(size=200)
    people = [
        f"p{i},{score[i]:.3f},{noise[i]:.3f},{'fm'[gender[i]]},{('Bern', 'Chur', 'Genf')[city[i]]}" for i in range(200)
    ]
    links = [f"p{a},p{b}" for a, b in random.integers(0, 200, (2000, 2)) if a < b and gender[a] == gender[b]]
    folder = tmp_path_factory.mktemp("several")
    (folder / "people").mkdir()
    (folder / "people" / "nodes.csv").write_text("\n".join(["id,score,noise,gender,city", *people]))
    (folder / "people" / "edges.csv").write_text("\n".join(["source,target", *links]))
    return folder


@pytest.fixture(scope="module")
def sweep(folder: Path) -> Sweep:
    """Runs the command, and returns its output."""
    given = ["sweep", folder / "people", "--objective", "club", "--secret", "gender", "--secret", "city"]
    given += ["--tradeoff", ",".join(TRADEOFFS)]
    few = ["--seeds", "1", "--rounds", "25", "--jobs", "1", "--out", folder / "out"]

    def call() -> str:
        with pytest.MonkeyPatch.context() as patch, (folder / "output").open("w") as output:
            patch.setenv("COLUMNS", "80")
            patch.setattr(sys, "argv", ["graphveil", *map(str, [*given, *few])])
            patch.setattr(sys, "stdout", output)
            patch.setattr(classifiers, "logistic_regression", untuned_regression)
            patch.setattr(pool, "ProcessPoolExecutor", lambda **_: InThisProcess())
            with pytest.raises(SystemExit) as left:
                cli.run()
            assert not left.value.code
        return (folder / "output").read_text()

    return call


@pytest.fixture(scope="module")
def output(sweep: Sweep) -> str:
    return sweep()


@pytest.fixture
def results(output: str, folder: Path) -> dict[float, dict[str, Any]]:
    """The results of the cells, by trade-off."""
    read = [json.loads(file.read_text()) for file in sorted((folder / "out" / "cells").glob("[!.]*.json"))]
    return {result["cell"]["tradeoff"]: result for result in read}


def test_one_training_and_an_audit_of_each_secret(results: dict[float, dict[str, Any]]) -> None:
    """At trade-off 1, attacks predict the gender, and are at chance level for the city."""
    assert sorted(results) == [0, 0.5, 1]
    for result in results.values():
        assert result["cell"]["secrets"] == ["gender", "city"]
        assert list(result["secrets"]) == ["gender", "city"]
        rounds = len(result["history"]["round"])
        assert rounds == len(result["history"]["utility"]) > 3
        assert all(len(found["history"]["adversary"]) == rounds for found in result["secrets"].values())
    gender, city = results[1]["secrets"].values()
    assert city["chance"] < 0.45 < gender["chance"] < 0.6
    for attack in ("joint", "fresh"):
        assert gender[attack] > 0.9
        assert city[attack] < city["chance"] + 0.12
    assert gender["history"]["adversary"][-1] > 0.9
    assert city["history"]["adversary"][-1] < 0.6
    assert gender["map"]["names"] == ["f", "m"]
    assert city["map"]["names"] == ["Bern", "Chur", "Genf"]


def test_every_format_separates_the_secrets(output: str, results: dict[float, dict[str, Any]], folder: Path) -> None:
    out = folder / "out"
    rows = list(csv.DictReader((out / "sweep.csv").read_text().splitlines()))
    assert [(row["lambda"], row["secret"]) for row in rows] == [
        (tradeoff, secret) for tradeoff in ("0.0", "0.5", "1.0") for secret in ("gender", "city")
    ]
    for row in rows:
        result = results[float(row["lambda"])]
        assert float(row["utility"]) == result["utility"]
        assert float(row["fresh"]) == result["secrets"][row["secret"]]["fresh"]
    record = json.loads((out / "sweep.json").read_text())
    assert [row["secret"] for row in record["rows"]] == [row["secret"] for row in rows]
    assert [(one["secret"], one["papers_attacker"]) for one in record["secrets"]] == [
        ("gender", "logistic regression, few"),
        ("city", "logistic regression, few"),
    ]
    _, *tables = (out / "sweep.md").read_text().split("### ")
    assert [table.split("\n")[0] for table in tables] == ["gender", "city"]
    assert [table.count("\n| club | people | gcn |") for table in tables] == [3, 3]
    assert (out / "sweep.tex").read_text().count(r"\begin{table}") == 2
    for tradeoff in TRADEOFFS:
        result = results[float(tradeoff)]
        for secret, one in result["secrets"].items():
            kept = f"{100 * result['utility']:.1f} ({100 * result['utility_chance']:.1f})"
            words = [tradeoff, kept, secret, f"{100 * one['joint_rounded']:.1f}"]
            assert [*words, f"{100 * one['fresh']:.1f}", f"{100 * one['chance']:.1f}"] in _cells(output)


def test_the_report_has_the_curves_of_each_secret(output: str, folder: Path) -> None:
    page = parse(folder / "out" / "report.html")
    assert page.all("h1")[0].text == "people, gcn, club: links kept, gender and city hidden"
    assert [one.text for one in page.all("h2")] == ["Summary", "Secret: gender", "Secret: city"]
    also = {"gender": "city", "city": "gender"}
    for section, secret, classes in zip(page.all("section")[1:], also, (2, 3), strict=True):
        assert f"Secret: {secret} (accuracy). Also hidden: {also[secret]}." in section.text
        titles = [one.text for one in section.all("figcaption")]
        assert sum("Trade-off curves: club" in title for title in titles) == 1
        places, *_ = (one for one in section.all("figure") if "Embeddings by secret class" in one.text)
        (legend,) = (one for one in places.all("ul") if one.attributes.get("class") == "legend")
        assert len(legend.all("li")) == classes


def without_progress(output: str) -> list[str]:
    return [line for line in output.splitlines() if not line.startswith("sweep: ")]


def test_a_second_run_trains_only_missing_cells(output: str, folder: Path, sweep: Sweep) -> None:
    files = {file: file.read_bytes() for file in (folder / "out" / "cells").glob("[!.]*.json")}
    table = (folder / "out" / "sweep.json").read_bytes()
    torn, *kept = files
    torn.write_bytes(files[torn][:200])
    when = {file: file.stat().st_mtime_ns for file in kept}
    again = sweep()
    assert f"sweep: {len(files)} cells, {len(kept)} of them finished before\n" in again
    assert without_progress(again) == without_progress(output)
    assert {file: file.stat().st_mtime_ns for file in kept} == when
    assert {file: file.read_bytes() for file in (folder / "out" / "cells").glob("[!.]*.json")} == files
    assert (folder / "out" / "sweep.json").read_bytes() == table


def test_other_secrets_are_another_cell() -> None:
    pair = replace(TINY, secrets=("gender", "city"))
    keys = {pair.key, replace(pair, secrets=("city", "gender")).key, replace(pair, secrets=("gender",)).key}
    assert len(keys) == 3


@pytest.mark.parametrize("name", ["a/../../../x", "/etc/x", "..", "x" * 5000, "\n\0"])
def test_no_name_escapes_from_the_folder(name: str, tmp_path: Path) -> None:
    file = replace(TINY, dataset=name, utility=name, secrets=(name,)).file(tmp_path)
    assert file.parent == tmp_path
    assert file.name.isascii()
    assert len(file.name) < 250
    assert not set(file.name) & set("/\0\n")


def test_markup_in_names_is_escaped() -> None:
    strange = "a|b\n<b>_{x}$\\input"
    rows = [replace(PLAIN, secret=secret, paper=None) for secret in ("links", strange)]
    assert r"### a\|b \<b\>\_{x}$\\input" in markdown(rows).splitlines()
    assert r"attacks on a|b <b>\_\{x\}\$\textbackslash{}input}" in latex(rows, "T")
    assert [row["secret"] for row in csv.DictReader(comma_separated(rows).splitlines(keepends=True))] == [
        "links",
        strange,
    ]
    columns, words = brief(rows)
    assert [dict(zip(columns, line, strict=True))["secret"] for line in words] == ["links", strange]


def _cells(output: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("│\n").split("│")] for line in output.splitlines() if "│" in line]
