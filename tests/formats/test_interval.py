"""A value with its 95 % interval."""

import numpy as np
import pytest

from graphveil.formats import Interval
from graphveil.formats.interval import ShareInterval


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


def test_numpy_scalars_are_written_as_numbers() -> None:
    one = ShareInterval(np.float64(0.5), (np.float64(0.25), np.float64(0.75)))
    assert one.to_dict() == {"value": 0.5, "ci": [0.25, 0.75]}
    assert {type(value) for value in (one.to_dict()["value"], *one.to_dict()["ci"])} == {float}


def test_what_is_not_json_is_refused_when_it_is_written() -> None:
    with pytest.raises(NotImplementedError, match="a complex cannot be written as JSON"):
        Interval(1j).to_dict()  # type: ignore[arg-type]
