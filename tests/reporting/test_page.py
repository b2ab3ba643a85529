"""The content of the page: its numbers, missing values, refused files, and no markup from a file."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from torch_geometric.data import Data

import graphveil as gv
import graphveil.reporting
from graphveil.codes import NOT_COVERED, link_certificate
from graphveil.codes.certificate import ClassCalibration
from graphveil.errors import GraphveilError
from graphveil.reporting import report
from graphveil.reporting.parts import MISSING
from graphveil.runs.audit import audit_run
from graphveil.runs.protect import protect
from tests.formats.made import run
from tests.reporting import made
from tests.reporting.conftest import Element, Show, parse

MINUS = "\N{MINUS SIGN}"
PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</title></style></svg></desc><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
)
TAGS = re.compile(
    "html|head|meta|link|title|style|body|a|header|nav|main|section|h1|h2|p|ul|li|dl|div|dt|dd|span|strong|small|table|"
    "caption|thead|tbody|tr|th|td|figure|figcaption|details|summary|pre|svg|desc|path|text|rect"
)
SWAPPED_NEVER = {"schema", "verdict", "metric", "measure", "kind", "of", "unit"}


# ----- an audit -------------------------------------------------------------------------------------------------------


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
        "certificate": "≤ 60.0 % accuracy of the best possible attack on the codes alone, counted exactly for this"
        " release",
        "certificate · nodes like these": f"{limit} accuracy of the best possible attack on other nodes, with 95 %"
        " confidence",
        "certificate · balanced accuracy": "≤ 57.6 % of the best possible attack on the codes alone",
        "certificate · worst code": "≤ 60.0 % largest share of a class among nodes with the same code (100 nodes)",
        "codes": "4 the code of a node reveals at most 2.00 bits about any secret",
        "chance level": "30.2 % 1000 test examples",
        "floor": "85.6 [83.3, 87.6] % accuracy of attacks on the public graph without z; the strongest attack is 52.5"
        " points below the floor",
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
    assert [one.text for one in page.all("h2")][1] == "Certificate"
    assert found.sentence in page.text
    assert table(page, "Certificate").cells() == [list(row) for row in found.rows]
    assert table(page, "What the certificate does not cover").cells() == [list(row) for row in NOT_COVERED]
    without = show(made.audit() | {"certificate": None})
    assert "Certificate" not in [one.text for one in without.all("h2")]
    assert "certificate" not in without.all("section")[0].text


def test_the_certificate_of_links(show: Show) -> None:
    links = np.array([[0, 0, 1, 2, 4, 5], [1, 2, 2, 3, 5, 6]])
    found = link_certificate(np.array([0, 0, 0, 1, 1, 1, 1, 1]), links, np.arange(8) % 2)
    page = show(made.audit() | {"secret": "links", "certificate": found.to_dict()})
    assert "AUC of the best possible attack on the codes alone, counted exactly" in page.all("section")[0].text
    assert table(page, "Certificate").cells() == [list(row) for row in found.rows]


def test_a_run_that_was_not_audited_shows_its_certificate(tmp_path: Path) -> None:
    found = made.certificate()
    made.write(tmp_path / "run.json", run() | {"certificates": {"labels": found.to_dict(), "town": None}})
    report(tmp_path, tmp_path / "report.html")
    answer = parse(tmp_path / "report.html").all("section")[0].text
    assert found.sentence in answer
    assert "rule counted from the codes" in answer
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


def test_a_real_run(small: Data, quick: gv.Recipe, tmp_path: Path) -> None:
    graph = gv.load("synthetic")
    split = gv.Split.paper(graph, 3)
    veil = gv.Veil(utility="links", secret="secret", recipe=quick, seed=3, device="cpu")
    run = protect(veil, graph, split, tmp_path / "run", source={"graph": "synthetic", "split": "paper"})
    graphveil.report(tmp_path / "run", tmp_path / "before.html")
    before = parse(tmp_path / "before.html")
    assert before.all("h2")[0].text == "⚠ not audited"
    assert f"{100 * run.score.utility:.1f} %" in before.text
    assert [line[1] for line in table(before, "Training curves, in percent").cells()][:2] == ["3", "6"]
    (found,) = audit_run(tmp_path / "run", attacks="quick").values()
    report(str(tmp_path / "run"), str(tmp_path / "after.html"))
    after = parse(tmp_path / "after.html")
    best = found.strongest.headline
    assert f"{100 * best.value:.1f} [{100 * best.low:.1f}, {100 * best.high:.1f}] %" in after.text
    assert len(table(after, "Attacks on the embeddings").cells()) == len(found.findings)


# ----- experiments ----------------------------------------------------------------------------------------------------


def test_every_cell_of_a_table(show: Show) -> None:
    content = made.experiment("table2")
    lines = table(show(table2=content), "The paper, its protocol here, and fresh attacks").cells()
    assert len(lines) == len(content["rows"]) == 45
    symbols = {"reproduced": "✓ reproduced", "better": "▲ better", "not reproduced": "✗ not reproduced"}
    for line, row in zip(lines, content["rows"], strict=True):
        kept, attack = (row[name]["value"] for name in ("utility", "protocol"))
        assert line[:5] == [f"{row['dataset']} · {row['encoder']}", row["variant"], symbols[row["verdict"]],
                            f"{row['tradeoff']:g}", "10"]  # fmt: skip
        assert line[5:8] == [percent(row["paper"][0]), f"{percent(kept)} ± 1.2", signed(kept - row["paper"][0])]
        assert line[8:11] == [percent(row["paper"][1]), f"{percent(attack)} ± 1.2", signed(attack - row["paper"][1])]
        assert line[11:13] == [f"{percent(row['fresh']['value'])} ± 2.0", signed(row["fresh"]["value"] - attack)]
        assert line[14:] == [percent(row["chance"]), "86.0", "10%"]


def test_the_summary_of_experiments_counts_verdicts(show: Show) -> None:
    content = made.experiment("table2")
    rows = content["rows"]
    rows[0]["protocol"] = made.estimate(0.1)  # of unprotected embeddings, so not of a joint adversary
    page = show(table2=content)
    counts = [sum(row["verdict"] == verdict for row in rows) for verdict in made.VERDICTS]
    sentence = f"Of 45 rows that can be compared with the paper: {counts[0]} reproduced, {counts[1]} better"
    assert sentence in page.all("section")[0].text
    protected = [row for row in rows if row["variant"] != "unprotected"]
    worst = max(protected, key=lambda row: row["fresh"]["value"] - row["protocol"]["value"])
    assert worst["variant"] == "published"
    assert f"most for published on {worst['dataset']} · {worst['encoder']} at λ 0.5" in page.text
    for line, variant in zip(table(page, "Verdicts and gaps").cells(), made.VARIANTS, strict=True):
        own = [row["verdict"] for row in rows if row["variant"] == variant]
        assert line[:6] == [f"table2 · {variant}", "9", *(str(own.count(verdict)) for verdict in made.VERDICTS)]
        assert line[6] == "9 of 9"


def test_all_files_of_a_folder(tmp_path: Path) -> None:
    report(made.experiments(tmp_path / "all"), tmp_path / "report.html")
    page = parse(tmp_path / "report.html")
    titles = [one.text for one in page.all("h2")]
    assert titles[0] == "Summary"
    assert [title.split(":")[0] for title in titles[1:]] == ["Table 1", "Table2", "Table3", "Figure2"]
    assert ["cora", "2708", "5278"] in table(page, "All rows").cells()
    assert table(page, "Failed cells").cells() == [["club · pubmed · hgcn · seed 4", "the loss is not finite"]]
    assert '"nothing": null' in page.text
    curves = table(page, "Trade-off curves, in percent").cells()
    assert len(curves) == 99
    assert sum("Trade-off curves" in one.text for one in page.all("figcaption")) == 1


def test_every_figure_has_a_description_and_a_table(tmp_path: Path) -> None:
    made.write(tmp_path / "audit.json", made.audit())
    report(tmp_path / "audit.json", tmp_path / "a.html")
    report(made.experiments(tmp_path / "all"), tmp_path / "b.html")
    for name, expected in (("a.html", 2), ("b.html", 3 + 3 + 1 + 6)):
        figures = parse(tmp_path / name).all("figure")
        assert len(figures) == expected
        for figure in figures:
            data = figure.children[-1]
            assert data.tag == "details"
            assert data.all("summary")[0].text.startswith("Data as a table")
            assert len(data.all("tbody")[0].all("tr")) >= 1
            drawn = [one for one in figure.all("svg") if one.attributes.get("role") == "img"]
            assert drawn
            assert all(one.all("title")[0].text and one.all("desc")[0].text for one in drawn)


def test_a_thousand_rows_are_one_small_page(show: Show, tmp_path: Path) -> None:
    content = made.experiment("sweep", [round(i / 26, 3) for i in range(27)])
    rng = np.random.default_rng(0)
    for row in content["rows"]:
        row["history"] = row["history"] or made.history(rng)
    assert len(content["rows"]) > 950
    page = show(sweep=content)
    assert (tmp_path / "report.html").stat().st_size < 5e6
    assert "36 of 981 trainings; all are in sweep.json." in page.text


def test_one_seed_has_no_interval(show: Show) -> None:
    content = made.experiment("table2", variants=["club"])
    for row in content["rows"]:
        row.update(dict.fromkeys(("utility", "protocol", "fresh"), made.estimate(0.75, 0)), seeds=1, verdict="")
    page = show(table2=content)
    line = table(page, "The paper, its protocol here, and fresh attacks").cells()[0]
    assert [line[6], line[9], line[11]] == ["75.0"] * 3
    assert "None of the 9 rows can be compared with the paper." in page.text
    assert table(page, "Verdicts and gaps").cells()[0][6] == MISSING


def test_curves_of_one_seed_have_no_band(show: Show) -> None:
    content = made.experiment("sweep", [0.0, 0.5, 1.0], ["codes"])
    bands = []
    for half in (0.01, None):
        for row in content["rows"]:
            for name in ("utility", "protocol", "fresh"):
                value = row[name]["value"]
                row[name] = {"value": value, "ci": half and [value - half, value + half]}
            row["seeds"] = 5 if half else 1
        page = show(sweep=content)
        bands.append(sum("band" in (one.attributes.get("class") or "") for one in page.all("path")))
        assert ("intervals over seeds" in page.text) is (half is not None)
        assert ("One seed gives no interval" in page.text) is (half is None)
    assert bands == [3 * 9, 0]


def test_a_sweep_has_no_paper(show: Show) -> None:
    content = made.experiment("sweep", [0.0, 0.5], ["codes"])
    for row in content["rows"]:
        row.update(paper=None, verdict="")
    page = show(sweep=content | {"config": {}})
    assert not re.search("paper|verdict|reproduced|protocol", page.all("body")[0].text, re.IGNORECASE)
    lines = table(page, "All trade-offs, with fresh attacks").cells()
    for line, row in zip(lines, content["rows"], strict=True):
        kept, joint, fresh = (row[name]["value"] for name in ("utility", "protocol", "fresh"))
        assert line[4:6] == [f"{percent(kept)} ± 1.2", "50.0"]
        assert line[6:9] == [f"{percent(joint)} ± 1.2", f"{percent(fresh)} ± 2.0", signed(fresh - joint)]
        assert line[10] == percent(row["chance"])
    above = sum(row["fresh"]["ci"][0] > row["chance"] for row in content["rows"])
    assert f"In {above} of 18 rows the strongest attack is significantly above chance." in page.text


def test_no_fresh_attack_is_stronger_than_the_protocol(show: Show) -> None:
    content = made.experiment("table2", variants=["club"])
    for row in content["rows"]:
        row.update(protocol=row["fresh"])
    assert "In no cell is a fresh attack stronger than the attack of the paper's protocol." in show(table2=content).text


def test_nothing_to_show_says_so(show: Show) -> None:
    page = show(table2=made.experiment("table2") | {"rows": []})
    assert "There are no finished cells to show." in page.text
    assert page.all("figure") == []


# ----- missing and wrong values ---------------------------------------------------------------------------------------


def test_what_may_be_missing_is_shown_as_missing(show: Show, tmp_path: Path) -> None:
    audit = made.audit()
    nothing = [name for name, value in audit.items() if value is None]
    nothing += ["worst_group", "certificate", "certificate_on_test", "balanced", "with_public_graph", "with_features"]
    nothing += ["floor", "joint_adversary", "map"]
    empty: dict[str, object] = {key: [] for key in ("leak_reasons", "groups", "flags", "notes", "attacks")}
    show(audit | dict.fromkeys(nothing) | empty | {"controls": {}})
    whole = made.experiment("table2", variants=["club"])
    rows = [row | dict.fromkeys(("paper", "floor", "finer", "history", "map", "tradeoff")) for row in whole["rows"]]
    line = table(show(table2=whole | {"rows": rows}), "The paper, its protocol here").cells()[0]
    assert [line[3], line[5], line[7], line[8], line[10], line[13], line[15]] == [MISSING] * 7
    assert not re.search(r"\b(nan|inf|None)\b", (tmp_path / "report.html").read_text(encoding="utf-8"))


def test_a_class_without_a_name(show: Show) -> None:
    content = made.audit()
    content["map"] |= {"names": ["only one"], "class": [0, 5, *content["map"]["class"][2:]]}
    assert "class 5" in show(content).text


def change_chance(value: str) -> Callable[[str], str]:
    return lambda text: text.replace('"chance": 0.302', f'"chance": {value}', 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text[: len(text) // 2], "cannot be shown"),
        (lambda _: "", "cannot be shown"),
        (lambda _: "[]", "expected an object, got a list"),
        (lambda _: "[" * 100_000, "it is nested too deeply"),
        (
            lambda text: text.replace("audit/5", "audit/4"),
            "its schema is 'graphveil/audit/4', expected 'graphveil/audit/5'",
        ),
        (change_chance('"much"'), "chance: expected a number, got a text"),
        (change_chance("30.2"), "chance: expected a number <= 1.000001"),
        (change_chance("true"), "chance: expected a number, got true or false"),
        (change_chance("NaN"), "it contains NaN, which is not a number in JSON"),
        (change_chance("1e400"), "chance: expected a number <= 1.000001"),
        (change_chance(f"1{'0' * 400}"), "chance: number out of range"),
        (change_chance(f"1{'0' * 5000}"), "cannot be shown"),
        (lambda text: text.replace('"leaks"', '"fine"'), "verdict has the unknown value 'fine'"),
        (
            lambda text: text.replace('"needs": ["z"', '"needs": [7', 1),
            "attacks[0].needs[0]: expected a text, got a whole number",
        ),
        (lambda text: text.replace('"x": [', '"x": [0.5, ', 1), "map: it has 401 x, 400 y and 400 classes"),
        (lambda text: text.replace('"ci": [', '"ci": [0.1, ', 1), "strongest.ci: expected a list of length 2, got 3"),
        (
            lambda text: text.replace('"rows": [["', '"rows": [["x", "', 1),
            "certificate.rows[0]: expected a list of length 2, got 3",
        ),
        (lambda text: text.replace('"test_examples"', '"tests"'), "test_examples is missing"),
    ],
)
def test_a_wrong_audit_is_one_sentence(tmp_path: Path, change: Callable[[str], str], sentence: str) -> None:
    before = json.dumps(made.audit())
    assert change(before) != before
    (tmp_path / "audit.json").write_text(change(before))
    with pytest.raises(GraphveilError, match=re.escape(sentence)) as refused:
        report(tmp_path / "audit.json", tmp_path / "report.html")
    assert str(tmp_path / "audit.json") in str(refused.value)
    assert len(str(refused.value)) < 500
    assert not (tmp_path / "report.html").exists()


def test_wrong_experiments_and_histories(tmp_path: Path, show: Show) -> None:
    whole = made.experiment("table2", variants=["club"])
    for change, sentence in (
        ({"paper": [0.5]}, "rows[0].paper: expected a list of length 2, got 1"),
        (
            {"history": {"round": [1, 2], "utility": [0.5], "adversary": [0.5, 0.5], "probe": [0.5, 0.5]}},
            "rows[0].history: its columns have different lengths",
        ),
        ({"history": [1]}, "rows[0].history: expected an object or null, got a list"),
        ({"verdict": "fine"}, "rows[0].verdict has the unknown value 'fine'"),
    ):
        with pytest.raises(GraphveilError, match=re.escape(sentence)):
            show(table2=whole | {"rows": [whole["rows"][0] | change]})
    with pytest.raises(GraphveilError, match="not every row has 3 texts"):
        show(table1=made.table1() | {"rows": [["one"]]}, table2=whole)
    made.write(tmp_path / "run" / "run.json", run())
    (tmp_path / "run" / "history.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(GraphveilError, match=r"history\.parquet cannot be shown"):
        report(tmp_path / "run", tmp_path / "report.html")
    pq.write_table(pa.table({"round": [0, 5], "utility": [float("nan"), 0.75]}), tmp_path / "run" / "history.parquet")
    report(tmp_path / "run", tmp_path / "report.html")
    assert table(parse(tmp_path / "report.html"), "Training curves, in percent").cells()[0][1:3] == ["5", "75.0"]


@pytest.mark.parametrize("name", ["nothing", "empty", "other.txt"])
def test_what_cannot_be_reported_on(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(GraphveilError, match=name):
        report(tmp_path / name, tmp_path / "report.html")


def test_a_report_overwrites_no_result(tmp_path: Path) -> None:
    file = made.write(tmp_path / "audit.json", made.audit())
    with pytest.raises(GraphveilError, match=r"give a name that ends in \.html"):
        report(file, file)
    assert json.loads(file.read_text()) == made.audit()


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
    assert "city has not been audited" in page.text
    assert [row[-3:-1] for row in table(page, "Training curves, in percent").cells()] == [
        ["75.0", "50.0"],
        ["75.0", "60.0"],
    ]
    city = audit | {"secret": "city", "verdict": "leaks"}
    made.write(tmp_path / "audit.city.json", city | {"origin": audit["origin"] | {"embeddings": "other"}})
    report(tmp_path, tmp_path / "report.html")
    text = parse(tmp_path / "report.html").text
    assert "not shown, because they are audits of other embeddings: audit.city.json" in text
    assert "city has not been audited" in text
    made.write(tmp_path / "audit.city.json", city)
    report(tmp_path, tmp_path / "report.html")
    text = parse(tmp_path / "report.html").text
    assert "not been audited" not in text
    assert "strongest attack · city" in text
    assert "city: At least one attack result" in text


# ----- markup in a file -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_becomes_markup(payload: str, show: Show, tmp_path: Path) -> None:
    eleven = [round(0.1 * i, 1) for i in range(11)]
    whole = made.experiment("figure2", eleven, ["unprotected", "club"])
    whole["failed"] = [{"cell": "a", "fault": "b"}]
    pages = [show(spoiled(made.audit(), payload)), show(table1=spoiled(made.table1(), payload), figure2=whole)]
    pages.append(show(figure2=spoiled(whole, payload)))
    record = run() | {"audited_as": "abc", "config": run()["config"] | {"recipe": {"deep": {"er": "x"}}}}
    made.write(tmp_path / "run" / "run.json", spoiled(record, payload))
    made.write(tmp_path / "run" / "audit.json", spoiled(made.audit(), payload))
    report(tmp_path / "run", tmp_path / "run.html")
    for page in [*pages, parse(tmp_path / "run.html")]:
        elements = page.all()[1:]
        assert all(TAGS.fullmatch(one.tag) for one in elements)
        assert not [name for one in elements for name in one.attributes if name.startswith("on")]
        assert not [one for one in elements if {"src", "style", "xlink:href"} & set(one.attributes)]
        assert {one.attributes["href"] or "" for one in elements if "href" in one.attributes} <= {
            "data:,",
            "#main",
            *(f"#part-{i}" for i in range(1, 10)),
        }
        assert all(re.fullmatch(r"[a-z0-9 -]*", one.attributes.get("class") or "") for one in elements)
        assert "".join(payload.split()) in "".join(page.text.split()), "the name itself is to be read"


def test_half_a_surrogate_pair_is_written(show: Show) -> None:
    assert "la?bels" in show(made.audit() | {"secret": "la\ud800bels"}).text


def test_nothing_can_leave_the_page(tmp_path: Path, show: Show) -> None:
    page = show(made.audit())
    policy = next(one for one in page.all("meta") if one.attributes.get("http-equiv") == "Content-Security-Policy")
    assert (policy.attributes["content"] or "").startswith(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    )
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|<script|@import|url\(", text)


def spoiled(value: Any, payload: str, key: str = "") -> Any:
    """Every text replaced, and every key that is a name."""
    if isinstance(value, dict):
        named = key in ("controls", "versions", "deep")
        return {
            (f"{k} {payload}" if named and isinstance(v, list) else k): spoiled(v, payload, k) for k, v in value.items()
        }
    if isinstance(value, list):
        return [spoiled(one, payload, key) for one in value]
    return f"{value} {payload}" if isinstance(value, str) and key not in SWAPPED_NEVER else value


def table(page: Element, title: str) -> Element:
    """The one whose caption begins so."""
    return next(one for one in page.all("table") if one.all("caption")[0].text.startswith(title))


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def signed(difference: float) -> str:
    return f"{100 * difference:+.1f}".replace("-", MINUS)
