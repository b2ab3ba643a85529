"""Rows of a table: intervals over seeds, and verdicts from intervals."""

from dataclasses import replace

import pytest

from graphveil.experiments.spec import load_experiment
from graphveil.experiments.tables import over_seeds
from graphveil.formats import Interval
from tests.experiments.made import a_row, estimate


@pytest.mark.parametrize(
    ("variant", "utility", "protocol", "verdict"),
    [
        ("unprotected", 0.90, 0.73, "better"),
        ("unprotected", 0.885, 0.73, "reproduced"),
        ("unprotected", 0.87, 0.73, "not reproduced"),
        ("unprotected", 0.90, 0.68, "not reproduced"),  # a lower value means a weaker attack
        ("club", 0.78, 0.27, "reproduced"),
        ("club", 0.85, 0.20, "better"),
        ("club", 0.85, 0.33, "not reproduced"),
        ("club", 0.75, 0.20, "not reproduced"),
    ],
)
def test_the_verdict_of_a_cell(variant: str, utility: float, protocol: float, verdict: str) -> None:
    experiment = load_experiment("table2")
    row = a_row(variant, estimate(utility), estimate(protocol), experiment.paper(variant, "cora", "gcn"))
    assert row.verdict == verdict
    assert replace(row, flagged=0.2).verdict == ("reproduced" if verdict == "better" else verdict)
    assert replace(row, utility=Interval(utility), protocol=Interval(protocol)).verdict == "", (
        "one seed has no interval"
    )
    assert replace(row, paper=None).verdict == ""


@pytest.mark.parametrize(
    ("utility", "protocol", "verdict"),
    [
        (estimate(0.95, 0.08), estimate(0.10, 0.10), "better"),  # wide, but better throughout
        (estimate(0.95, 0.08), estimate(0.60, 0.20), "not reproduced"),  # wide, but worse throughout
        (estimate(0.95, 0.08), estimate(0.30, 0.20), ""),  # anything from better to much worse
        (estimate(0.60, 0.08), estimate(0.30, 0.20), "not reproduced"),  # the utility alone decides
        (estimate(0.86, 0.08), estimate(0.10, 0.10), "reproduced"),  # at worst at the margin
        (estimate(0.76, 0.045), estimate(0.10, 0.10), ""),  # beyond the margin, but contains the value of the paper
    ],
)
def test_a_wide_interval_may_still_decide(utility: Interval, protocol: Interval, verdict: str) -> None:
    """The paper prints 79.4 and 28.5."""
    row = a_row("club", utility, protocol, load_experiment("table2").paper("club", "cora", "gcn"))
    assert row.verdict == verdict


def test_intervals_over_seeds_by_hand() -> None:
    """1, 2 and 3 have mean 2 and standard deviation 1; Student's t is 4.303 with two degrees of freedom."""
    found = over_seeds([1.0, 2.0, 3.0])
    assert found.value == 2
    assert found.half == pytest.approx(4.3027 / 3**0.5, abs=1e-3)
    assert over_seeds([0.7]) == Interval(0.7)
