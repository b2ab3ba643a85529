"""The figures: each has a description and its numbers as a table, and bands only where there are intervals."""

from pathlib import Path

from graphveil.reporting import report
from tests.reporting import made
from tests.reporting.conftest import Show, parse


def test_every_figure_has_a_description_and_a_table(tmp_path: Path) -> None:
    made.write(tmp_path / "audit.json", made.audit())
    report(tmp_path / "audit.json", tmp_path / "a.html")
    report(made.experiments(tmp_path / "all"), tmp_path / "b.html")
    for name, expected in (("a.html", 4), ("b.html", 3 + 3 + 1 + 6)):
        figures = parse(tmp_path / name).all("figure")
        assert len(figures) == expected
        for figure in figures:
            data = figure.children[-1]
            assert data.tag == "details"
            assert data.all("summary")[0].text.startswith("Data as a table")
            assert len(data.all("tbody")[0].all("tr")) >= 1
            drawn = [one for one in figure.all("svg") if one.attributes.get("role") == "img"]
            assert all(one.all("title")[0].text and one.all("desc")[0].text for one in drawn)
            in_rows = [one for one in figure.all("div") if one.attributes.get("role") == "group"]
            assert all(one.attributes["aria-label"] for one in in_rows)
            assert drawn or in_rows


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


def test_a_class_without_a_name(show: Show) -> None:
    content = made.audit()
    content["map"] |= {"names": ["only one"], "class": [0, 5, *content["map"]["class"][2:]]}
    assert "class 5" in show(content).text
