"""A value with its 95 % interval."""

import pytest

from graphveil.formats import Interval


def test_ends_and_width() -> None:
    one = Interval(0.5, (0.4, 0.7))
    assert (one.low, one.high) == (0.4, 0.7)
    assert one.half == pytest.approx(0.15)
    assert str(one) == "50.0 [40.0, 70.0]"
    assert one.covers(0.4)
    assert one.covers(0.7)
    assert not one.covers(0.71)


def test_without_an_interval_the_ends_are_the_value() -> None:
    one = Interval(0.5)
    assert (one.ci, one.low, one.high, one.half) == (None, 0.5, 0.5, 0.0)
    assert one.to_dict() == {"value": 0.5, "ci": None}


def test_an_interval_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Interval(0.5).value = 0.6  # type: ignore[misc]
