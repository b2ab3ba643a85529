"""The record of a search: percentages are shares, and what may be missing."""

import pytest

from graphveil.formats.store import parse
from graphveil.formats.tune import TuneRecord
from tests.formats import made


@pytest.mark.parametrize(
    ("part", "key"),
    [("secrets", "chance"), ("secrets", "limit"), ("points", "utility")],
)
@pytest.mark.parametrize("value", [32.2, -0.1])
def test_a_percentage_is_refused_where_a_share_belongs(part: str, key: str, value: float) -> None:
    content = made.tune()
    content[part][0][key] = value
    with pytest.raises(ValueError, match=rf"^{part}\[0\]\.{key}: expected a number"):
        parse(content, TuneRecord)


def test_leaks_and_what_distinguishes_a_candidate_are_shares_too() -> None:
    content = made.tune()
    (point,) = content["points"]
    for change, place in [
        ({"leaks": [0.3, 31.0]}, r"leaks\[1\]"),
        ({"candidate": point["candidate"] | {"tradeoff": 1.5}}, r"candidate\.tradeoff"),
        ({"candidate": point["candidate"] | {"gain": -0.5}}, r"candidate\.gain"),
    ]:
        with pytest.raises(ValueError, match=rf"^points\[0\]\.{place}: expected a number"):
            parse(content | {"points": [point | change]}, TuneRecord)


def test_a_search_may_have_a_least_utility_and_a_candidate_no_codes() -> None:
    assert parse(made.tune() | {"min_utility": 0.75}, TuneRecord).min_utility == 0.75
    content = made.tune()
    content["points"][0]["codes"] = [None]
    assert parse(content, TuneRecord).points[0].codes == (None,)
