"""Attack results by group: values by hand, the correction for many groups, and leaks that a headline hides."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil import cli
from graphveil.auditing import (
    Audit,
    Context,
    LinkSecret,
    Queries,
    Utility,
    groups,
    links,
)
from graphveil.auditing.groups import (
    MIN_EXAMPLES,
    Group,
    Partition,
    by_degree,
    by_value,
    judged,
    link_groups,
    node_groups,
    partitions,
    worst,
)
from graphveil.auditing.metrics import auc, clopper_pearson, share_difference
from graphveil.auditing.secret import node_secret
from graphveil.data import UNKNOWN
from graphveil.errors import GraphveilError
from graphveil.formats import Interval
from tests.auditing.made import USEFUL, answers, leak_in_one_group, secret_of, sentences

ARTS = ["art", "law"]
ALLOWED = 400 * 0.025 + 2 * np.sqrt(400 * 0.025 * 0.975)
"""Alarms in 400 simulations at most: the expectation and two standard deviations."""


# ----- intervals ------------------------------------------------------------------------------------------------------


def test_the_exact_interval_by_hand() -> None:
    """No hit in 20 has probability (1 - p)^20, which is the error at the upper bound."""
    for error in (0.025, 0.001):
        assert clopper_pearson(0, 20, error).high == pytest.approx(1 - error ** (1 / 20), abs=1e-12)
        assert clopper_pearson(20, 20, error).low == pytest.approx(error ** (1 / 20), abs=1e-12)
    assert (clopper_pearson(0, 20).low, clopper_pearson(20, 20).high) == (0.0, 1.0)
    one = clopper_pearson(7, 20)  # a table of Clopper and Pearson has .154 and .592
    assert one.low == pytest.approx(0.1539, abs=1e-4)
    assert one.high == pytest.approx(0.5922, abs=1e-4)


def test_a_difference_of_shares_combines_both_intervals() -> None:
    one, other = clopper_pearson(12, 20), clopper_pearson(8, 40)
    result = share_difference((12, 8), (20, 40))
    assert result.value == pytest.approx(0.4)
    assert result.low == pytest.approx(0.4 - np.hypot(0.6 - one.low, other.high - 0.2))
    assert result.high == pytest.approx(0.4 + np.hypot(one.high - 0.6, 0.2 - other.low))


# ----- partitions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("degree", "names", "group"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8, 9], ["1 to 3", "4 to 6", "7 to 9"], [0, 0, 0, 1, 1, 1, 2, 2, 2]),
        ([2, 0, 1, 0, 2, 1], ["0", "1", "2"], [2, 0, 1, 0, 2, 1]),
        ([1, 1, 1, 5], ["1", "5"], [0, 0, 0, 1]),
        ([1, 5, 5, 5], ["1", "5"], [0, 1, 1, 1]),
        ([4, 4, 4], ["any"], [0, 0, 0]),
    ],
)
def test_degree_terciles_keep_equal_degrees_together(degree: list[int], names: list[str], group: list[int]) -> None:
    result = by_degree(np.array(degree))
    assert result.names == names
    assert result.group.tolist() == group


def test_of_many_values_the_most_frequent_have_groups() -> None:
    """Value v of 15 has v + 1 nodes, so 3 to 14 are the twelve most frequent; one node is unknown."""
    y = np.append(np.repeat(np.arange(15), np.arange(1, 16)), UNKNOWN)
    result = by_value("column", "city", y, [f"c{value}" for value in range(15)])
    assert result.names == [*(f"c{value}" for value in range(3, 15)), "others"]
    assert result.group[-1] == UNKNOWN
    assert (result.group == 12).sum() == 1 + 2 + 3
    assert (result.group == 0).sum() == 4


def test_values_without_nodes_have_no_group() -> None:
    result = by_value("column", "city", np.array([0, 2, 2, UNKNOWN]), ["a", "b", "c"])
    assert result.names == ["a", "c"]
    assert result.group.tolist() == [0, 1, 1, UNKNOWN]


def test_partitions_of_an_audit(town: Data, town_split: gv.Split) -> None:
    graph = town.clone()
    graph.same, graph.half = torch.zeros(1500, dtype=torch.long), torch.arange(1500) % 2
    secret = node_secret(graph, town_split, "coin", 0)
    result = partitions(graph, secret, "coin", ["half", "same", "coin", "half"])
    assert [(part.kind, part.by) for part in result] == [("class", "coin"), ("degree", "degree"), ("column", "half")]
    assert [part.of_class is not None for part in result] == [True, False, False]
    degree = np.bincount(town.edge_index[0].numpy(), minlength=1500)
    low = result[1].group == 0
    assert degree[low].max() < degree[~low].min()
    assert 0.2 < low.mean() < 0.45


# ----- node secrets ---------------------------------------------------------------------------------------------------


def test_accuracy_and_the_share_of_the_largest_class_in_a_group() -> None:
    """Group 0 has 40 nodes, 30 of them of class 0; of its 20 test nodes only 12 are, and the attack has 15 right."""
    y = np.concatenate([np.repeat([0, 1], [12, 8]), np.repeat([0, 1], [18, 2]), np.repeat([0, 1], [5, 35])])
    group = np.repeat([0, 1], [40, 40])
    test = np.concatenate([np.arange(20), np.arange(40, 70)])
    predicted = y[test].copy()
    predicted[:5] = 1 - predicted[:5]
    part = Partition("column", "school", ARTS, group)
    first, second = node_groups(answers(predicted, 2), secret_of(y, test), [part])
    assert (first.name, first.measure, first.examples) == ("art", "accuracy", 20)
    assert first.estimate == clopper_pearson(15, 20, 0.025 / 2)
    assert first.reference == pytest.approx(30 / 40)
    assert second.examples == 30
    assert second.reference == pytest.approx(35 / 40)
    assert second.estimate is not None
    assert second.estimate.value == 1.0


def test_the_value_of_a_class_is_tpr_minus_fpr() -> None:
    """12 of 20 nodes of class 0 are assigned to it, and 8 of the 40 others: 0.6 - 0.2. Always predicting it has 0."""
    y = np.concatenate([np.repeat([0, 1, 2], [20, 22, 18]), [0, 1, 2]])
    test = np.arange(60)
    predicted = np.concatenate([np.repeat([0, 1], [12, 8]), np.repeat([0, 1], [8, 32])])
    part = by_value("class", "s", y, ["a", "b", "c"])
    first, second, third = node_groups(answers(predicted, 3), secret_of(y, test), [part])
    assert (first.measure, first.examples, first.reference) == ("tpr_minus_fpr", 20, 0.0)
    assert first.estimate == share_difference((12, 8), (20, 40), 0.025 / 2)
    assert (second.examples, third.examples, third.estimate) == (22, 18, None), "18 are fewer than 20"
    always = node_groups(answers(np.zeros(60, np.int64), 3), secret_of(y, test), [part])
    assert [one.estimate.value for one in always if one.estimate] == [0.0, 0.0]


def test_small_groups_are_listed_but_neither_judged_nor_counted_for_the_correction() -> None:
    y = np.arange(100) % 2
    part = Partition("column", "school", [*ARTS, "few"], np.repeat([0, 1, 2, UNKNOWN], [30, 51, 19, 2]))
    result = node_groups(answers(y, 2), secret_of(np.append(y, [0, 1]), np.arange(100)), [part])
    assert [one.examples for one in result] == [30, 51, 19]
    few = result[2]
    assert (few.estimate, few.reference, few.margin) == (None, None, None)
    assert few.record().value is None
    assert judged(result) == 2
    assert result[0].estimate == clopper_pearson(30, 30, 0.025 / 2)
    assert MIN_EXAMPLES == 20


def test_the_worst_group_has_the_highest_lower_bound_above_its_reference() -> None:
    def group(name: str, value: float, half: float, reference: float) -> Group:
        estimate = Interval(value, (value - half, value + half))
        return Group("column", "school", name, "accuracy", 50, estimate, reference)

    wide, high, most = group("wide", 0.95, 0.4, 0.5), group("high", 0.9, 0.05, 0.9), group("most", 0.7, 0.1, 0.5)
    few = Group("column", "school", "few", "accuracy", 5)
    assert worst([few, wide, high, most]) is most
    assert worst([few]) is None
    assert worst([]) is None


def test_the_worst_group_shows_a_leak_that_the_headline_hides() -> None:
    audit = leak_in_one_group(0)
    assert audit.strongest.headline.low < audit.secret.chance, "the headline is at chance"
    assert Audit(audit.secret, audit.findings, {}, context=USEFUL).reasons == ()
    assert audit.worst_group is not None
    assert (audit.worst_group.label, audit.worst_group.examples) == ("school = xyz", 40)
    assert audit.worst_group.estimate == clopper_pearson(40, 40, 0.025 / 2)
    assert audit.verdict == "leaks"
    (sentence,) = sentences(audit)
    assert sentence.startswith("a: accuracy 100.0 [89.6, 100.0] in the worst of 2 groups (by a column) is above")
    assert "xyz" not in sentence, "the card of a release quotes it"
    assert "school" not in sentence


def test_more_groups_widen_every_interval() -> None:
    few, many = leak_in_one_group(0).groups[0], leak_in_one_group(8).groups[0]
    assert few.estimate is not None
    assert many.estimate is not None
    assert few.estimate.low == pytest.approx((0.025 / 2) ** (1 / 40))
    assert many.estimate.low == pytest.approx((0.025 / 10) ** (1 / 40))


def test_an_audit_without_partitions_has_no_groups() -> None:
    audit = leak_in_one_group(0)
    bare = Audit(audit.secret, audit.findings, {}, context=USEFUL)
    assert (list(bare.groups), bare.worst_group) == ([], None)
    assert "by group" not in str(bare)


def alarms_in_noise(shares: tuple[float, ...]) -> int:
    """The number of 400 attacks with a leaking group; they know the class shares and nothing else."""
    random, alarms = np.random.default_rng(0), 0
    for _ in range(400):
        y, column = random.choice(4, 900, p=shares), random.integers(0, 8, 900)
        secret = secret_of(y, random.permutation(900)[:600])
        parts = [by_value("class", "s", y, list("abcd")), by_degree(random.poisson(5, 900))]
        parts.append(Partition("column", "c", list("abcdefgh"), column))
        result = node_groups(answers(random.choice(4, 600, p=shares), 4), secret, parts)
        assert judged(result) >= 12
        most = worst(result)
        alarms += most is not None and most.margin is not None and most.margin > 0
    return alarms


@pytest.mark.parametrize("shares", [(0.25, 0.25, 0.25, 0.25), (0.85, 0.05, 0.05, 0.05)])
def test_noise_rarely_has_any_group_above_its_reference(
    shares: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 2.5 % of 400, and two standard deviations; with 2.5 % for each of the 15 groups there are far more."""
    assert alarms_in_noise(shares) <= ALLOWED
    monkeypatch.setattr(groups, "FALSE_ALARMS", 15 * 0.025)
    assert alarms_in_noise(shares) > ALLOWED


# ----- links ----------------------------------------------------------------------------------------------------------


def pairs_of(random: np.random.Generator, nodes: int, count: int) -> Queries:
    index = np.stack([random.integers(0, nodes, 2 * count), random.integers(0, nodes, 2 * count)])
    return Queries(index, np.repeat([1, 0], count))


def test_a_pair_is_in_the_groups_of_both_ends_and_in_the_degree_tercile_of_the_smaller() -> None:
    random = np.random.default_rng(0)
    test, score = pairs_of(random, 200, 300), random.normal(size=600)
    group = random.integers(0, 2, 200)
    parts = [Partition("degree", "degree", ["0 to 1", "2 to 9"], group), Partition("column", "school", ARTS, group)]
    result = link_groups(score, test, parts)
    ends = group[test.index]
    low, high, art, law = (ends == 0).any(0), (ends == 1).all(0), (ends == 0).any(0), (ends == 1).any(0)
    assert [one.examples for one in result] == [mask.sum() for mask in (low, high, art, law)]
    for one, mask in zip(result, (low, high, art, law), strict=True):
        expected = auc(score[mask], test.y[mask], test.index[:, mask])
        assert one.estimate is not None
        assert one.estimate.value == expected.value
        assert one.estimate.low < expected.low, "four groups"
        assert (one.measure, one.reference, one.compared_with) == ("auc", 0.5, "chance level")


def test_groups_of_pairs_need_links_non_links_and_nodes() -> None:
    random = np.random.default_rng(0)
    test, score = pairs_of(random, 400, 300), random.normal(size=600)
    hub = replace(test, index=test.index.copy())
    hub.index[0] = 0
    only_links = replace(test, y=np.ones_like(test.y))
    part = Partition("column", "school", ARTS, (np.arange(400) > 0).astype(np.int64))
    one_node, rest = link_groups(score, hub, [part])
    assert (one_node.examples, one_node.estimate, one_node.reference) == (600, None, None), (
        "all pairs have the same end"
    )
    assert rest.estimate is not None
    assert link_groups(score, only_links, [part])[1].estimate is None


def test_with_kept_classes_pairs_are_compared_with_the_true_classes() -> None:
    """The attack knows only the classes: it is above one half, but not above the classes."""
    random = np.random.default_rng(0)
    y, group = random.integers(0, 3, 300), random.integers(0, 2, 300)
    test = pairs_of(random, 300, 400)
    same = np.flatnonzero(random.random(400) < 0.7)
    by_class = [np.flatnonzero(y == value) for value in range(3)]
    test.index[1, same] = [random.choice(by_class[value]) for value in y[test.index[0, same]]]
    score = (y[test.index[0]] == y[test.index[1]]).astype(float)
    part = Partition("column", "school", ARTS, group)
    at_chance = worst(link_groups(score, test, [part]))
    assert at_chance is not None
    assert at_chance.margin is not None
    assert at_chance.margin > 0.1
    partly = np.where(random.random(800) < 0.1, np.nan, score)
    for one in link_groups(score, test, [part], partly):
        assert one.compared_with == "true classes"
        assert one.estimate is not None
        assert one.reference == pytest.approx(one.estimate.value, abs=0.02)
        assert one.margin is not None
        assert one.margin < 0
    backwards = link_groups(score, test, [part], -score)
    assert [(one.reference, one.compared_with) for one in backwards] == [(0.5, "chance level")] * 2


def test_noise_rarely_has_any_group_of_links_above_one_half() -> None:
    """Noise belongs to nodes, so pairs that share a node are correlated."""
    random, alarms = np.random.default_rng(0), 0
    for _ in range(400):
        test, z = pairs_of(random, 400, 300), random.normal(size=(400, 3))
        parts = [by_degree(random.poisson(5, 400)), Partition("column", "c", list("abcde"), random.integers(0, 5, 400))]
        most = worst(link_groups((z[test.index[0]] * z[test.index[1]]).sum(axis=1), test, parts))
        alarms += most is not None and most.margin is not None and most.margin > 0
    assert alarms <= ALLOWED


def test_an_audit_of_links_is_grouped_by_the_kept_classes(town: Data, town_split: gv.Split) -> None:
    z = np.random.default_rng(0).normal(size=(1500, 8)).astype(np.float32)
    context, panel = Context(utility=Utility("coin", 0.8, 0.5, 500)), [links.Distance("cosine")]
    audit = gv.audit(z, town, town_split, "links", attacks=panel, context=context, by=["labels"])
    assert isinstance(audit.secret, LinkSecret)
    assert list(dict.fromkeys((one.kind, one.by) for one in audit.groups)) == [
        ("class", "coin"),
        ("degree", "degree"),
        ("column", "labels"),
    ]
    plain = gv.audit(z, town, town_split, "links", attacks=panel)
    assert {one.compared_with for one in plain.groups} == {"chance level"}
    kept = Context(utility=Utility("labels", 0.8, 0.5, 500))
    beside = gv.audit(z, town, town_split, "links", attacks=panel, context=kept).groups
    assert {one.compared_with for one in beside} == {"true classes"}, "equal classes are linked more often"


# ----- columns --------------------------------------------------------------------------------------------------------


def test_an_audit_by_a_column(town: Data, town_split: gv.Split) -> None:
    """Only the rows of one of ten schools reveal the coin."""
    graph, random = town.clone(), np.random.default_rng(3)
    graph.school = torch.from_numpy(random.integers(0, 10, 1500))
    z = random.normal(size=(1500, 4)).astype(np.float32)
    z[:, 0] += 8 * (graph.school == 4).numpy() * (2 * graph.coin.numpy() - 1)
    audit = gv.audit(z, graph, town_split, "coin", attacks="quick", context=USEFUL, by=("school",))
    assert audit.worst_group is not None
    assert audit.worst_group.label == "school = class 4"
    assert audit.worst_group.margin is not None
    assert audit.worst_group.margin > 0.1
    assert any("in the worst of 15 groups (by a column)" in sentence for sentence in sentences(audit))


def test_an_unknown_column_raises_an_error_with_the_available_ones(town: Data, town_split: gv.Split) -> None:
    z = np.random.default_rng(0).normal(size=(1500, 4))
    sentence = r"unknown column to group by 'coins': choose one of labels, coin, secret. Did you mean 'coin'\?"
    with pytest.raises(GraphveilError, match=sentence):
        gv.audit(z, town, town_split, "coin", attacks="quick", by=("coins",))
    with pytest.raises(GraphveilError, match=r"by is 'coin': give a list of names"):
        gv.audit(z, town, town_split, "coin", attacks="quick", by="coin")
    bare = Data(x=town.x, edge_index=town.edge_index)
    with pytest.raises(GraphveilError, match="no node attributes, so it cannot be grouped by 'coin'"):
        gv.audit(z, bare, town_split, "links", attacks="quick", by=("coin",))


def test_the_command_line_takes_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also a column that is not an attribute, and a binned column of numbers; the features do not change."""
    random = np.random.default_rng(0)
    people = tmp_path / "people"
    people.mkdir()
    lines = [
        f"p{i},{random.integers(18, 70)},t{random.integers(0, 2)},{'fm'[random.integers(0, 2)]}" for i in range(300)
    ]
    (people / "nodes.csv").write_text("\n".join(["id,age,team,gender", *lines]))
    ends = [f"p{a},p{b}" for a, b in random.integers(0, 300, (1200, 2)) if a != b]
    (people / "edges.csv").write_text("\n".join(["source,target", *ends]))
    np.save(tmp_path / "z.npy", random.normal(size=(300, 4)))

    def call(*more: str) -> tuple[int, str]:
        given = ("--embeddings", tmp_path / "z.npy", "--graph", people, "--secret", "gender", "--panel", "quick")
        monkeypatch.setattr(sys, "argv", ["graphveil", "audit", *map(str, given), "--out", str(out), *more])
        with pytest.raises(SystemExit) as left:
            cli.run()
        printed = capfd.readouterr()
        return int(left.value.code or 0), printed.out + printed.err

    out = tmp_path / "audit.json"
    code, output = call("--by", "team", "--by", "age", "--bins", "age=3")
    assert code == 0, output
    written = json.loads(out.read_text())
    assert list(dict.fromkeys(one["by"] for one in written["groups"])) == ["gender", "degree", "team", "age"]
    assert [one["group"] for one in written["groups"] if one["by"] == "team"] == ["t0", "t1"]
    assert len([one for one in written["groups"] if one["by"] == "age"]) == 3
    assert "worst group" in output
    plain = tmp_path / "plain.json"
    out, before = plain, written
    assert call()[0] == 0
    assert json.loads(plain.read_text())["origin"] == before["origin"], "neither split nor embeddings depend on --by"
    code, output = call("--by", "salary")
    assert code == 2
    assert "unknown column to group by 'salary': choose one of gender, age, team" in " ".join(output.split())
