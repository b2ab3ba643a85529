"""Records as plain JSON values: NumPy scalars are numbers, and what is not JSON is refused."""

import numpy as np
import pytest

from graphveil.formats import Interval
from graphveil.formats.interval import ShareInterval


def test_numpy_scalars_are_written_as_numbers() -> None:
    one = ShareInterval(np.float64(0.5), (np.float64(0.25), np.float64(0.75)))
    assert one.to_dict() == {"value": 0.5, "ci": [0.25, 0.75]}
    assert {type(value) for value in (one.to_dict()["value"], *one.to_dict()["ci"])} == {float}


def test_what_is_not_json_is_refused_when_it_is_written() -> None:
    with pytest.raises(NotImplementedError, match="a complex cannot be written as JSON"):
        Interval(1j).to_dict()  # type: ignore[arg-type]
