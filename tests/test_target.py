"""Links and classes differ in the fields of a target and in nothing else."""

import pytest

from graphveil.target import Target, gain_over_chance, without_links


def test_links_are_one_target_and_any_other_name_is_a_class() -> None:
    links, labels, own = (Target.of(name) for name in ("links", "labels", "town"))
    assert [one.is_links for one in (links, labels, own)] == [True, False, False]
    assert [one.metric_name for one in (links, own)] == ["AUC", "accuracy"]
    assert [labels.key, own.key] == ["y", "town"]
    assert [links.matched_by, own.matched_by] == ["labels", "town"]
    assert (links.message_edges, own.message_edges) == ("train", "all"), "held-out links must not pass messages"


def test_the_classes_among_targets_keep_their_order() -> None:
    assert without_links(["town", "links", "labels"]) == ["town", "labels"]


def test_a_gain_is_0_at_the_chance_level_and_1_for_perfect_predictions() -> None:
    assert [gain_over_chance(value, 0.6) for value in (0.6, 0.8, 1.0)] == pytest.approx([0, 0.5, 1])
    assert gain_over_chance(1.0, 1.0) == 0, "a class that all nodes have"
