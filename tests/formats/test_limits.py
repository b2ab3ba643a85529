"""What an audit is called that misses a limit of the search, and the value that a limit is compared with."""

from typing import Any

import pytest

from graphveil.formats.audit import AuditRecord
from graphveil.formats.limits import LimitsRecord
from graphveil.formats.store import parse
from graphveil.formats.tune import TuneRecord
from tests.formats import made


def audit(secret: str = "labels", **fields: Any) -> AuditRecord:
    """An audit whose certificate allows an accuracy and a balanced accuracy of 5 / 8."""
    return parse(made.audit() | {"secret": secret, "verdict": "protected"} | fields, AuditRecord)


@pytest.mark.parametrize(
    ("fields", "bound"),
    [
        ({}, 0.625),
        ({"certificate": made.certificate("links")}, None),
        ({"certificate": None, "balanced": None}, 0.55),
        ({"certificate": None}, 0.55),
        ({"certificate": None, "balanced": made.audit()["balanced"] | {"ci": [0.3, 0.6]}}, 0.6),
        ({"certificate": None, "strongest": made.audit()["strongest"] | {"ci": [0.3, 0.7]}, "balanced": None}, 0.7),
    ],
)
def test_a_limit_is_compared_with_the_highest_bound(fields: dict[str, Any], bound: float | None) -> None:
    if bound is None:
        bound = max(fields["certificate"]["auc"], fields["certificate"]["class_matched_auc"])
    assert audit(**fields).bound == bound


@pytest.mark.parametrize(
    ("verdict", "title"),
    [
        ("protected", "above the limit of 60.0 %"),
        ("traces", "above the limit of 60.0 %"),
        ("leaks", "leaks, above the limit of 60.0 %"),
        ("flagged", "flagged, above the limit of 60.0 %"),
    ],
)
def test_a_missed_limit_replaces_the_verdicts_of_a_hidden_secret(verdict: str, title: str) -> None:
    limits = LimitsRecord({"labels": 0.6}, None)
    assert limits.missed([audit(verdict=verdict)]) == {"labels": title}
    assert LimitsRecord({"labels": 0.625}, None).missed([audit(verdict=verdict)]) == {}
    assert LimitsRecord({}, None).missed([audit(verdict=verdict)]) == {}


def test_if_one_secret_is_above_its_limit_none_of_the_search_is_called_protected() -> None:
    limits = LimitsRecord({"labels": 0.6, "town": 0.7}, None)
    assert limits.missed([audit(), audit("town"), audit("sport")]) == {
        "labels": "above the limit of 60.0 %",
        "town": "within the limit of 70.0 %",
    }


def test_a_utility_below_the_smallest_one_is_stated_of_every_secret() -> None:
    audits = [audit(), audit("town", verdict="leaks")]
    assert LimitsRecord({}, 0.81).missed(audits) == {
        "labels": "utility below 81.0 %",
        "town": "leaks, utility below 81.0 %",
    }
    assert LimitsRecord({}, 0.8).missed(audits) == {}
    assert LimitsRecord({}, 0.1).missed([audit(utility=None)]) == {"labels": "utility below 10.0 %"}


def test_the_limits_of_a_search_are_those_below_1() -> None:
    search = made.tune()
    secrets = [*search["secrets"], {"secret": "town", "chance": 0.99, "limit": 1.0}]
    assert parse(search | {"secrets": secrets}, TuneRecord).limits == LimitsRecord({"labels": 0.322}, None)
    assert parse(search | {"min_utility": 0.8}, TuneRecord).limits.min_utility == 0.8
