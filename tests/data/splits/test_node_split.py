"""Which nodes are in each part: by class, by several targets, and none without classes."""

import pytest
import torch

import graphveil as gv
from graphveil.data.origin import Encoding, Origin, node_ids
from graphveil.data.splits.split import draw_split
from tests.data.splits.made import toy


def test_small_graphs_are_refused_by_the_papers_split_and_taken_by_the_proportional_one() -> None:
    karate = gv.load("karate")
    with pytest.raises(gv.GraphveilError, match=r"class 0 of labels has 13.*Split\.proportional"):
        gv.Split.paper(karate)
    split = gv.Split.proportional(karate)
    assert set(karate.y[split.train_nodes].tolist()) == {0, 1, 2, 3}
    assert split.val_nodes.numel() + split.test_nodes.numel() + split.train_nodes.numel() == 34


def test_any_target_splits_the_nodes_of_which_something_is_known() -> None:
    """Of 60 nodes the team is known for the first 30, the city for the last 40: ten are known by city alone..."""
    graph = toy([-1] * 60)
    graph.team = torch.tensor([0, 1, 2] * 10 + [-1] * 30)
    graph.city = torch.tensor([-1] * 20 + [0, 1] * 20)
    split = gv.Split.proportional(graph, seed=0, targets=("links", "team", "city"))
    parts = [split.train_nodes, split.val_nodes, split.test_nodes, split.spare_nodes]
    assert torch.cat(parts).sort().values.tolist() == list(range(60))
    assert torch.bincount(graph.team[split.train_nodes]).tolist() == [4, 4, 4], "a third of each team, rounded up"
    only = gv.Split.proportional(graph, seed=0, targets=("city",))
    assert only.spare_nodes.numel() == 0
    assert int(torch.cat([only.train_nodes, only.val_nodes, only.test_nodes]).min()) == 20


def test_a_target_that_few_nodes_have_reaches_every_part() -> None:
    """Of 2,000 nodes 200 have a rare class: a third of these train, and the rest are spread like all others."""
    graph = toy([-1] * 2000)
    graph.rare = torch.where(torch.arange(2000) % 10 == 0, torch.arange(2000) // 10 % 2, -1)
    graph.team = torch.arange(2000) % 3
    for kind, spared in (("proportional", 600), ("paper", 0)):
        for seed in range(3):
            split = draw_split(kind, graph, seed, "train", ("links", "rare", "team"))
            parts = [split.train_nodes, split.spare_nodes, split.val_nodes, split.test_nodes]
            assert sum(map(len, parts)) == 2000
            known = [int((graph.rare[part] != -1).sum()) for part in parts]
            share = (200 - known[0]) / (2000 - known[0] - spared)
            for part, count in zip(parts[2:], known[2:], strict=True):
                assert count == pytest.approx(share * len(part), abs=3.5 * (share * len(part)) ** 0.5)
            assert spared == 0 or (len(split.spare_nodes), known[1]) == (600, 0), "a third of the others"


def test_a_class_that_only_an_earlier_graph_had_may_be_empty() -> None:
    graph = toy([0, 2] * 15)
    graph.origin = Origin(node_ids(graph), Encoding(classes={"labels": ("a", "b", "c")}))
    assert set(graph.y[gv.Split.proportional(graph).train_nodes].tolist()) == {0, 2}


def test_without_classes_no_node_has_a_part_and_links_have() -> None:
    graph = toy([-1] * 60)
    del graph.y
    split = gv.Split.paper(graph, seed=0, targets=("links",))
    assert split.train_nodes.numel() == split.val_nodes.numel() == split.test_nodes.numel() == 0
    assert split.test_links.size(1) > 0
    with pytest.raises(gv.GraphveilError, match="no 'labels'"):
        gv.Split.paper(graph, seed=0, targets=("labels",))
