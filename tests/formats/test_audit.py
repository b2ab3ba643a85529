"""What is derived from an audit's record."""

import pytest

from graphveil.formats.audit import FURTHER, AuditRecord
from graphveil.formats.interval import Interval
from graphveil.formats.store import parse
from tests.formats import made


def test_further_results_are_those_that_the_audit_has() -> None:
    record = parse(made.audit(), AuditRecord)
    assert list(record.further) == ["balanced", "with_public_graph", "with_features"]
    assert record.further["balanced"].metric == "balanced_accuracy"
    assert set(record.further) < set(FURTHER)


def test_an_attack_has_one_finer_metric() -> None:
    (attack,) = parse(made.audit(), AuditRecord).attacks
    assert attack.finer == Interval(0.4, (0.3, 0.5))
    content = made.audit()
    content["attacks"][0]["metrics"] = {}
    assert parse(content, AuditRecord).attacks[0].finer is None


def test_counts_of_other_classes_are_refused() -> None:
    content = made.audit()
    content["map"]["codes"]["counts"] = [[1, 2, 3]]
    with pytest.raises(ValueError, match=r"^map\.codes: not every row has 2 counts, one for each class$"):
        parse(content, AuditRecord)


def test_a_group_has_a_label_and_perhaps_an_interval() -> None:
    group, few = parse(made.audit(), AuditRecord).groups
    assert (group.label, group.interval) == ("town = Bath", Interval(0.4, (0.3, 0.5)))
    assert few.interval is None
    content = made.audit()
    content["groups"][0] |= {"kind": "degree", "by": "degree", "group": "0 to 2"}
    assert parse(content, AuditRecord).groups[0].label == "degree 0 to 2"
