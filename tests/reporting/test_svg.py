"""Axes and marks, with answers computed by hand."""

import pytest

from graphveil.reporting.svg import Axis, Plot, marker, swatch, ticks


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.31, 0.87, [0.2, 0.4, 0.6, 0.8, 1]),
        (3.0, 200.0, [0, 50, 100, 150, 200]),
        (0.5, 0.5, [0.44, 0.46, 0.48, 0.5, 0.52, 0.54, 0.56]),
        (-1e15, 1e15, [-1e15, -5e14, 0, 5e14, 1e15]),
    ],
)
def test_ticks_are_round_and_hold_everything(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


def test_an_axis_of_nothing_still_has_two_ends() -> None:
    assert Axis.over("", [None]).ticks == ticks(0, 1)


def test_points_lie_where_the_axes_say() -> None:
    plot = Plot("", "", Axis("", [0, 10], percent=False), Axis("", [0, 1]))
    assert plot.at(0, 0) == (40, 204)
    assert plot.at(10, 1) == (342, 26)
    assert plot.at(5, 0.5) == (191, 115)
    assert plot.at(-5, 7) == (40, 26), "beyond the axes there is nothing"


def test_a_line_breaks_where_a_value_is_missing() -> None:
    plot = Plot("", "", Axis("", [0, 3], percent=False), Axis("", [0, 1]))
    plot.line(1, [(0, 0), (1, 1), (2, None), (3, 1)])
    assert 'd="M40.0 204.0L140.7 26.0M342.0 26.0"' in plot.marks[0]
    assert 'class="line s1"' in plot.marks[0]


def test_the_percent_on_a_tick_is_the_share_times_a_hundred() -> None:
    svg = Plot("", "", Axis("λ", [0, 0.5], percent=False), Axis("", [0, 0.3])).svg()
    assert ">30%</text>" in svg
    assert ">0.5</text>" in svg


def test_series_differ_in_shape_and_in_colour() -> None:
    assert len({marker(i, 0, 0, 1) for i in range(7)}) == 7
    assert len({swatch(i, "point") for i in range(56)}) == 56
