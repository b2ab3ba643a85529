"""Charts in rows and gauges: positions by hand, every value in words, and nothing outside the track."""

import re

from graphveil.formats import Interval
from graphveil.reporting.parts import MISSING
from graphveil.reporting.rows import MARGIN, Gauge, Row, gauge_figure, row_chart
from graphveil.reporting.svg import Axis


def at(share: float) -> str:
    return f"{MARGIN + (100 - 2 * MARGIN) * share:.2f}%"


def test_a_row_has_its_name_its_interval_and_its_value() -> None:
    axis = Axis("accuracy", [0.0, 0.5, 1.0])
    drawn = row_chart("Attacks", axis, [Row("<MLP>", Interval(0.5, (0.25, 0.75)), 1, "50.0 [25.0, 75.0]", 0.1)])
    assert '<span class="row-name">&lt;MLP&gt;</span>' in drawn
    assert '<span class="row-value">50.0 [25.0, 75.0]</span>' in drawn
    assert f'<line class="span s1" x1="{at(0.25)}" x2="{at(0.75)}"' in drawn
    assert f'<svg class="at" x="{at(0.5)}"' in drawn
    assert f'<line class="rule chance" x1="{at(0.1)}"' in drawn
    assert re.findall(r'<text class="([a-z ]+)"[^>]*>([^<]*)', drawn) == [
        ("tick", "0%"),
        ("tick middle", "50%"),
        ("tick end", "100%"),
    ]


def test_a_gauge_goes_from_the_reference_to_the_unprotected_encoder() -> None:
    gauge = Gauge(
        "Leak", "accuracy", ("chance level", 0.2), ("this", Interval(0.4)), ("unprotected", 0.6), 0.5, limit=0.3
    )
    drawn = gauge.markup()
    way = f'<rect class="way" x="{MARGIN:.2f}%" y="25%" width="{100 - 2 * MARGIN:.2f}%"'
    assert way in drawn
    assert f'<rect class="bar" x="{MARGIN:.2f}%" y="25%" width="{(100 - 2 * MARGIN) / 2:.2f}%"' in drawn
    assert f'<line class="rule limit" x1="{at(0.25)}"' in drawn
    assert f'<svg class="at" x="{at(0.75)}" y="12%"' in drawn, "the certificate is above the bar"
    assert re.findall("<strong>([^<]*)</strong>", drawn) == ["20.0 %", "40.0 %", "30.0 %", "≤ 50.0 %", "60.0 %"]


def test_what_is_outside_makes_the_gauge_longer() -> None:
    """An attack below chance, and a limit above the unprotected encoder."""
    this = ("this", Interval(0.15, (0.1, 0.2)))
    drawn = Gauge("Leak", "AUC", ("chance level", 0.3), this, ("unprotected", 0.5), limit=0.9).markup()
    assert f'<rect class="bar" x="{at(0.25)}" y="25%" width="0.00%"' in drawn, "nothing is above the chance level"
    assert f'<svg class="at" x="{at(0.0625)}"' in drawn, "0.15 on an axis from 0.1 to 0.9"
    positions = [float(found) for found in re.findall(r'x[12]?="([0-9.]+)%"', drawn)]
    assert min(positions) == MARGIN
    assert max(positions) == 100 - MARGIN


def test_without_an_unprotected_encoder_the_gauge_ends_at_a_perfect_attack() -> None:
    gauge = Gauge("Leak", "AUC", ("chance level", 0.5), ("this", Interval(0.75)))
    assert f'width="{(100 - 2 * MARGIN) / 2:.2f}%"' in gauge.markup()
    assert "unprotected" not in gauge.markup()
    figure = gauge_figure("Leak and utility", [gauge])
    assert figure.data.rows == [["Leak", "50.0", "75.0", MISSING, MISSING, MISSING]]
