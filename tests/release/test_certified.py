"""The values of a certificate that a release states: the headline first, and which of them a limit applies to."""

import numpy as np
import pytest

from graphveil.codes import class_certificate, link_certificate
from graphveil.release.certified import certified
from tests.codes.made import CODES, Y


def test_a_limit_applies_to_the_accuracies_and_not_to_the_worst_code() -> None:
    """The best rule is right about 7 of 10 nodes, and about 3 of the 4 with code 0."""
    found = certified(class_certificate(CODES, Y, calibration=np.arange(10), secret="labels"))
    headline, balanced, worst = found.bounds
    assert (headline.name, headline.chance) == ("accuracy", 0.5)
    assert headline.value == pytest.approx(0.7)
    assert headline.beyond == pytest.approx(0.913, abs=1e-3)
    assert (worst.value, worst.limited) == (0.75, False)
    assert found.above(0.69) == [headline, balanced]
    assert found.above(0.7) == []


def test_links_are_limited_with_and_without_classes() -> None:
    links = np.array([[0, 0, 1, 2, 4, 5], [1, 2, 2, 3, 5, 6]])
    codes = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    with_classes, without = (certified(link_certificate(codes, links, y)) for y in (np.arange(8) % 2, None))
    assert [bound.name for bound in with_classes.bounds if bound.limited] == ["AUC", "class-matched AUC"]
    assert [bound.name for bound in without.bounds] == ["AUC"]
    assert {bound.chance for bound in with_classes.bounds} == {0.5}
