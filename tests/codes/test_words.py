"""Percentages of a certificate: rounded to the nearest, or up where a limit is stated."""

import pytest

from graphveil.codes.words import at_most, confident, percent


@pytest.mark.parametrize(
    ("share", "nearest", "limit"),
    [(0.5, "50.0 %", "50.0 %"), (0.5001, "50.0 %", "50.1 %"), (0.3, "30.0 %", "30.0 %"), (1.0, "100.0 %", "100.0 %")],
)
def test_a_limit_is_rounded_up(share: float, nearest: str, limit: str) -> None:
    assert percent(share) == nearest
    assert at_most(share) == limit


def test_the_confidence_has_no_more_digits_than_it_needs() -> None:
    assert confident(0.95) == "For nodes like these, with 95 % confidence,"
    assert confident(0.975) == "For nodes like these, with 97.5 % confidence,"
