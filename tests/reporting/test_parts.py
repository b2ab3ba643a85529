"""How numbers are written on a page: rounded, limits rounded up, and a mark where there is none."""

from collections.abc import Callable

import pytest

from graphveil.formats import Interval
from graphveil.reporting.parts import MISSING, at_most, compared, interval, percent, plus_minus, points, shortened
from tests.reporting.conftest import MINUS


def test_a_limit_is_rounded_up_and_is_at_most_everything() -> None:
    assert percent(0.60049) == "60.0"
    assert at_most(0.60049) == "≤ 60.1 %"
    assert at_most(0.6) == "≤ 60.0 %", "0.6 is a limit that needs no rounding, though it is not exact in binary"
    assert at_most(1.0004) == "≤ 100.0 %"


def test_differences_have_a_sign_or_a_word() -> None:
    assert [points(0.0469), points(-0.0469)] == ["+4.7", f"{MINUS}4.7"]
    assert compared(-0.0469, "it") == "4.7 points below it"


@pytest.mark.parametrize("written", [plus_minus, interval])
def test_one_seed_is_written_without_an_interval(written: Callable[[Interval | None], str]) -> None:
    assert written(Interval(0.853)) == "85.3"
    assert written(None) == MISSING


def test_a_long_text_is_cut_to_its_place() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"
