"""Splits: parts that share nothing, links that are held back, and what cannot be split."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import graphveil as gv
from graphveil.data import check_split
from graphveil.data.graph import undirected_pairs
from tests.data.splits.made import codes, toy


@pytest.mark.parametrize("seed", range(5))
def test_the_papers_counts_and_disjoint_roles(graph: Data, seed: int) -> None:
    split = gv.Split.paper(graph, seed)
    assert torch.bincount(graph.y[split.train_nodes]).tolist() == [20] * 4
    assert (split.val_nodes.numel(), split.test_nodes.numel()) == (500, 1000)
    parts = [split.train_nodes, split.val_nodes, split.test_nodes, split.spare_nodes]
    assert torch.cat(parts).unique().numel() == sum(map(len, parts)) == 1800

    links = codes(undirected_pairs(graph.edge_index))
    train, val, test = (codes(p) for p in (split.train_links, split.val_links, split.test_links))
    assert (len(train), len(val), len(test)) == (4250, 250, 500)
    assert train | val | test == links
    nonlinks = [codes(split.val_nonlinks), codes(split.test_nonlinks)]
    assert [len(part) for part in nonlinks] == [250, 500]
    assert not (nonlinks[0] & nonlinks[1])
    assert not ((nonlinks[0] | nonlinks[1]) & links)


def test_message_edges_hold_back_what_links_are_scored_on(graph: Data) -> None:
    held, everything = gv.Split.paper(graph, 0), gv.Split.paper(graph, 0, message_edges="all")
    assert codes(held.message_pairs) == codes(held.train_links)
    assert codes(everything.message_pairs) == codes(undirected_pairs(graph.edge_index))
    assert torch.equal(held.test_links, everything.test_links), "the setting changes nothing else"
    assert held.message_edge_index.size(1) == 2 * 4250


def test_who_knows_which_secrets(split: gv.Split) -> None:
    few, known = set(split.train_nodes.tolist()), set(split.attacker_nodes("all").tolist())
    assert set(split.defender_nodes("few").tolist()) == set(split.attacker_nodes("few").tolist()) == few
    assert not set(split.defender_nodes("all").tolist()) & set(torch.cat([split.val_nodes, split.test_nodes]).tolist())
    assert known == set(range(1800)) - set(split.test_nodes.tolist())
    with pytest.raises(gv.GraphveilError, match="unknown knowledge 'most'"):
        split.attacker_nodes("most")  # type: ignore[arg-type]


def test_same_seed_same_split_other_seed_another(graph: Data) -> None:
    digests = {gv.Split.paper(graph, seed).digest() for seed in (0, 0, 1)}
    assert len(digests) == 2
    assert gv.Split.paper(graph, 0, message_edges="all").digest() not in digests


def swapped(split: gv.Split, into: str, source: str) -> gv.Split:
    """A split in which one example of `source` stands in `into` as well."""
    part, other = getattr(split, into), getattr(split, source)
    change: dict[str, Any] = {into: torch.cat([part, other[..., :1]], dim=-1)}
    return replace(split, **change)


@pytest.mark.parametrize(
    ("into", "source"),
    [
        ("train_nodes", "test_nodes"),
        ("spare_nodes", "test_nodes"),
        ("val_nodes", "test_nodes"),
        ("train_nodes", "train_nodes"),
        ("train_links", "test_links"),
        ("train_links", "val_links"),
        ("val_links", "test_links"),
        ("val_nonlinks", "test_nonlinks"),
        ("test_nonlinks", "train_links"),
        ("test_nonlinks", "test_links"),
        ("test_links", "test_links"),
    ],
)
def test_a_split_that_leaks_cannot_be_made(split: gv.Split, into: str, source: str) -> None:
    with pytest.raises(gv.LeakError, match="shares a"):
        swapped(split, into, source)


def test_other_ways_to_break_a_split(split: gv.Split) -> None:
    with pytest.raises(gv.LeakError, match="u < v"):
        replace(split, test_links=split.test_links.flip(0))
    with pytest.raises(gv.LeakError, match="outside 0 to 1799"):
        replace(split, test_nodes=torch.tensor([1800]))
    with pytest.raises(gv.LeakError, match="outside 0 to 1799"):
        replace(split, val_nonlinks=torch.tensor([[0], [1800]]))
    with pytest.raises(gv.LeakError, match="shape"):
        replace(split, val_nonlinks=torch.tensor([0, 1]))
    with pytest.raises(gv.GraphveilError, match="unknown message_edges"):
        replace(split, message_edges="test")  # type: ignore[arg-type]


def test_a_split_of_another_graph_is_refused(graph: Data, split: gv.Split) -> None:
    """A pair that is a link in the graph but a non-link in the split would be scored upside down."""
    check_split(split, graph)
    other = graph.clone()
    other.edge_index = torch.cat([graph.edge_index, split.test_nonlinks[:, :1]], dim=1)
    with pytest.raises(gv.LeakError, match="5000 links of the split are not the 5001 links of the graph"):
        check_split(split, other)
    with pytest.raises(gv.LeakError, match="build the split from this graph"):
        gv.Veil(device="cpu").fit(other, split)


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        (toy([0] * 30), "has 1 class"),
        (toy([0, 2] * 15), "no node has class 1"),
        (toy([0, 1] * 15, num_links=19), "19 distinct links, but at least 20"),
        (toy([0, 1] * 15, num_links=435), "too dense"),
        (toy([0, -2] * 15), "-1 for unknown"),
        (toy([0] + [-1] * 28 + [1]), "too few to train, validate and test"),
    ],
)
def test_what_cannot_be_split_is_refused_with_a_sentence(graph: Data, says: str) -> None:
    with pytest.raises(gv.GraphveilError, match=says):
        gv.Split.proportional(graph)


def test_unknown_labels_have_no_role_and_odd_edges_do_no_harm() -> None:
    """Isolated nodes, self-loops, duplicates and both directions: the links are the same simple graph."""
    n = 60
    links = torch.stack([torch.arange(40), torch.arange(40) + 1])
    odd = torch.cat([links, links.flip(0), links, torch.arange(n).expand(2, -1)], dim=1)
    y = torch.arange(n) % 3
    y[::7] = -1
    plain, messy = (gv.Split.proportional(Data(x=torch.ones(n, 1), edge_index=e, y=y)) for e in (links, odd))
    assert plain.digest() == messy.digest()
    roles = torch.cat([plain.train_nodes, plain.val_nodes, plain.test_nodes, plain.spare_nodes])
    assert not (y[roles] == -1).any()
    assert roles.numel() == (y != -1).sum()


@settings(max_examples=60, deadline=None)
@given(n=st.integers(12, 60), classes=st.integers(2, 5), links=st.integers(20, 60), seed=st.integers(0, 2**31))
def test_every_graph_is_split_without_a_leak_or_refused(n: int, classes: int, links: int, seed: int) -> None:
    """The constructor checks for leaks, so a split that comes out has none."""
    random = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(n, (2, links * 2), generator=random)
    y = torch.randint(-1, classes, (n,), generator=random)
    try:
        split = gv.Split.proportional(Data(x=torch.ones(n, 1), edge_index=edge_index, y=y), seed)
    except gv.GraphveilError:
        return
    assert split.test_links.size(1) > 0
    assert split.val_links.size(1) > 0


@pytest.mark.parametrize("draw", [gv.Split.paper, gv.Split.proportional])
def test_without_a_word_nodes_are_split_by_labels_or_else_by_the_first_classes(draw: Any, graph: Data) -> None:
    assert draw(graph).targets == ("labels",)
    assert draw(graph).digest() == draw(graph, targets=("labels",)).digest()
    own = Data(
        x=graph.x,
        edge_index=graph.edge_index,
        weight=torch.rand(graph.num_nodes),
        alike=torch.zeros(graph.num_nodes).long(),
        tribe=graph.y,
    )
    split = draw(own)
    assert split.targets == ("tribe",), "a weight is no class, and one class tells nobody apart"
    assert split.digest() == draw(graph).digest()
    bare = draw(Data(x=graph.x, edge_index=graph.edge_index))
    assert bare.targets == ("links",)
    assert not bare.train_nodes.numel()
