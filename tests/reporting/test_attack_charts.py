"""The charts of attacks and of groups: one row each, with names that are text of the page."""

from graphveil.reporting.attack_charts import MOST_GROUPS
from tests.reporting import made
from tests.reporting.conftest import Element, Show


def rows(page: Element, title: str) -> list[str]:
    """The names of the rows of a chart."""
    chart = next(one for one in page.all("div") if one.attributes.get("aria-label") == title)
    return [one.text for one in chart.all("span") if one.attributes.get("class") == "row-name" and one.text]


def test_every_attack_and_every_control_has_a_row(show: Show) -> None:
    assert rows(show(made.audit()), "Attacks and controls") == [
        "★ ensemble",
        "k nearest neighbours, few",
        "gradient boosting, all",
        "MLP, all",
        "logistic regression, few",
        "control: public graph",
        "control: unprotected encoder",
    ]


def test_groups_have_a_chart_for_each_kind_and_metric(show: Show) -> None:
    page = show(made.audit())
    assert rows(page, "By class of labels: TPR \N{MINUS SIGN} FPR") == ["Theory"]
    assert rows(page, "By degree: accuracy") == ["degree 0 to 2"]
    assert "By town" not in page.text, "too few examples"


def test_of_many_values_of_a_column_the_worst_have_a_row(show: Show) -> None:
    town = made.groups()[2] | {"value": 0.4, "ci": [0.3, 0.5], "reference": 0.3}
    groups = [town | {"group": f"town {i}", "value": 0.3 + i / 1000} for i in range(50)]
    names = rows(show(made.audit() | {"groups": groups}), "By town: accuracy")
    assert names == [f"town = town {i}" for i in range(49, 49 - MOST_GROUPS, -1)]
