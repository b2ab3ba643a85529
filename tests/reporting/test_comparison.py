"""The page of experiments: every cell of a table, and the sentences that count them."""

import re
from pathlib import Path

from graphveil.reporting import report
from graphveil.reporting.parts import MISSING
from tests.reporting import made
from tests.reporting.conftest import Show, parse, percent, signed, table


def test_every_cell_of_a_table(show: Show) -> None:
    content = made.experiment("table2")
    lines = table(show(table2=content), "The paper, its protocol here, and the strongest attack").cells()
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


def test_the_summary_of_experiments_counts_outcomes(show: Show) -> None:
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
    for line, variant in zip(table(page, "Outcomes and gaps").cells(), made.VARIANTS, strict=True):
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


def test_one_seed_has_no_interval(show: Show) -> None:
    content = made.experiment("table2", variants=["club"])
    for row in content["rows"]:
        row.update(dict.fromkeys(("utility", "protocol", "fresh"), made.estimate(0.75, 0)), seeds=1, verdict="")
    page = show(table2=content)
    line = table(page, "The paper, its protocol here, and the strongest attack").cells()[0]
    assert [line[6], line[9], line[11]] == ["75.0"] * 3
    assert "None of the 9 rows can be compared with the paper." in page.text
    assert table(page, "Outcomes and gaps").cells()[0][6] == MISSING


def test_a_sweep_has_no_paper(show: Show) -> None:
    content = made.experiment("sweep", [0.0, 0.5], ["codes"])
    for row in content["rows"]:
        row.update(paper=None, verdict="")
    page = show(sweep=content | {"config": {}})
    assert not re.search("paper|outcome|verdict|reproduced|protocol|adversary", page.all("body")[0].text, re.IGNORECASE)
    lines = table(page, "All trade-offs, with the strongest attack").cells()
    for line, row in zip(lines, content["rows"], strict=True):
        kept, joint, fresh = (row[name]["value"] for name in ("utility", "protocol", "fresh"))
        assert line[4:6] == [f"{percent(kept)} ± 1.2", "50.0"]
        assert line[6:9] == [f"{percent(joint)} ± 1.2", f"{percent(fresh)} ± 2.0", signed(fresh - joint)]
        assert line[10] == percent(row["chance"])
    above = sum(row["fresh"]["ci"][0] > row["chance"] for row in content["rows"])
    assert f"In {above} of 18 rows the strongest attack is significantly above chance." in page.text


def test_no_attack_is_stronger_than_that_of_the_protocol(show: Show) -> None:
    content = made.experiment("table2", variants=["club"])
    for row in content["rows"]:
        row.update(protocol=row["fresh"])
    assert "No attack is stronger than that of the paper's protocol." in show(table2=content).text


def test_nothing_to_show_says_so(show: Show) -> None:
    page = show(table2=made.experiment("table2") | {"rows": []})
    assert "There are no finished cells to show." in page.text
    assert page.all("figure") == []
