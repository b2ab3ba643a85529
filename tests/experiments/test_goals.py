"""The tables of the main results and of the second operating point, from rows with given numbers."""

from dataclasses import replace

import pytest
from msgspec import structs
from tools.readme import compact, table_under

from graphveil.experiments.goals import PROBLEMS, SECOND_POINT, main_results, second_point
from graphveil.experiments.spec import load_experiment
from graphveil.experiments.tables import Row
from graphveil.formats import Interval
from graphveil.formats.experiment import Certified, WithFeatures
from tests.experiments.made import PLAIN

TABLE2, TABLE3 = (load_experiment(name) for name in ("table2", "table3"))
FEATURES = WithFeatures(Interval(0.74), Interval(0.75), Interval(-0.01, (-0.02, 0.0)))
LABELS = replace(
    PLAIN,
    variant="codes",
    tradeoff=0.5,
    utility=Interval(0.78, (0.77, 0.79)),
    fresh=Interval(0.325),
    chance=0.302,
    certified=Certified(Interval(0.31), Interval(0.008), Interval(0.36)),
    with_features=FEATURES,
)
LINKS = replace(
    LABELS,
    secret="links",
    utility=Interval(0.80),
    fresh=Interval(0.76),
    chance=0.5,
    floor=0.846,
    equal_classes=0.805,
    certified=Certified(Interval(0.77), Interval(0.27), Interval(0.79), Interval(0.56)),
    with_features=structs.replace(FEATURES, true_classes=Interval(0.735), over_true_classes=Interval(0.004)),
)


def line(rows: list[Row], name: str, place: int = 0) -> dict[str, str]:
    """One row of the table; row 0 is cora gcn."""
    experiment = {"table2": TABLE2, "table3": TABLE3}[name]
    lines = table_under(main_results({name: (experiment, rows)}), PROBLEMS[name])
    assert len(lines) == 9
    return dict(lines[place])


def test_a_row_of_p1() -> None:
    assert line([PLAIN, LABELS], "table2") == {
        "graph": "cora",
        "encoder": "gcn",
        "seeds": "5",
        "unprotected": "92.0 ± 1.0",
        "paper": "79.4",
        "required": "79.0",
        "protected": "78.0 ± 1.0",
        "below paper": "1.4",
        "below required": "1.0",
        "strongest attack": "32.5",
        "largest class": "30.2",
        "limit": "32.2",
        "attack within limit": "no, 0.3 above",
        "certificate": "31.0",
        "certificate minus largest class": "+0.8",
        "certificate: other nodes": "36.0",
        "z and features": "74.0",
        "features alone": "75.0",
        "z adds": "-1.0 ± 1.0",
    }


def test_a_row_of_p2() -> None:
    found = line([LINKS], "table3")
    assert found["unprotected"] == "not run"
    assert (found["paper"], found["required"], found["protected"]) == ("79.7", "79.0", "80.0")
    assert found["below paper"] == found["below required"] == "", "both were reached"
    assert (found["limit: comparing true labels"], found["attack within limit"], found["floor"]) == (
        "80.5",
        "yes",
        "84.6",
    )
    assert (found["certificate"], found["certificate: class-matched"]) == ("77.0", "56.0")
    assert (found["true labels and features"], found["z and features within limit"]) == ("73.5", "yes")
    assert LINKS.with_features is not None
    features = structs.replace(LINKS.with_features, over_true_classes=Interval(0.012))
    above = replace(LINKS, with_features=features)
    assert line([above], "table3")["z and features within limit"] == "no, 0.7 above"


@pytest.mark.parametrize(
    ("fresh", "says"),
    [(0.322, "yes"), (0.3221, "no, less than 0.1 above"), (0.3231, "no, 0.1 above"), (0.25, "yes")],
)
def test_the_limit_of_p1_is_two_points_above_the_largest_class(fresh: float, says: str) -> None:
    assert line([replace(LABELS, fresh=Interval(fresh))], "table2")["attack within limit"] == says


def test_the_required_utility_may_be_above_the_paper() -> None:
    """Pubmed: the paper prints 81.2 and 92 is required."""
    found = line([replace(LABELS, dataset="pubmed", utility=Interval(0.915))], "table2", 6)
    assert (found["graph"], found["encoder"]) == ("pubmed", "gcn")
    assert (found["below paper"], found["below required"]) == ("", "0.5")


def test_missing_results_are_marked_not_run_or_left_empty() -> None:
    other = line([LABELS, replace(LABELS, variant="club", encoder="gat")], "table2", 1)
    assert (other["encoder"], other["protected"], other["unprotected"]) == ("gat", "not run", "not run")
    assert (other["paper"], other["required"]) == ("84.1", "79.0")
    kept = ("graph", "encoder", "unprotected", "paper", "required", "protected")
    assert all(value == "" for column, value in other.items() if column not in kept)
    bare = line([replace(LABELS, certified=None, with_features=None)], "table2")
    assert {bare[name] for name in ("certificate", "certificate minus largest class", "z adds")} == {""}
    assert main_results({}) == ""


def test_the_readme_has_both_tables() -> None:
    text = compact(main_results({"table2": (TABLE2, [PLAIN, LABELS]), "table3": (TABLE3, [LINKS])}))
    assert text.count("| cora |") == text.count("| pubmed |") == 6
    assert "| cora | gcn | 92.0 ± 1.0 → 78.0 ± 1.0 | 32.5 | 30.2 |" in text
    assert "| cora | gcn | not run → 80.0 | 76.0 | 80.5 |" in text
    assert text.count("not run") == 17, "each table has nine rows, one of them with protected results"


def second_lines(rows: list[Row]) -> list[dict[str, str]]:
    return [dict(found) for found in table_under(second_point(TABLE3, rows), SECOND_POINT)]


def test_the_second_point_is_compared_with_its_limit() -> None:
    certified = Certified(Interval(0.70), Interval(0.2), None, Interval(0.56))
    held = replace(LINKS, variant="matched", utility=Interval(0.77), fresh=Interval(0.69), certified=certified)
    held = replace(held, finer=Interval(0.55))
    first, *others = second_lines([LINKS, held])
    assert first == {
        "graph": "cora",
        "encoder": "gcn",
        "seeds": "5",
        "accuracy": "77.0",
        "class-matched AUC: strongest attack": "55.0",
        "within limit": "yes",
        "class-matched AUC: certificate": "56.0",
        "link AUC: strongest attack": "69.0",
        "link AUC: certificate": "70.0",
    }
    assert len(others) == 8
    assert {found["accuracy"] for found in others} == {"not run"}
    assert second_lines([replace(held, finer=Interval(0.562))])[0]["within limit"] == "no, 1.2 above"
    assert second_lines([replace(held, certified=None)])[0]["class-matched AUC: certificate"] == ""
    assert "link_weight=1.0" in second_point(TABLE3, [])
    assert second_point(replace(TABLE3, variants={}), []) == ""
