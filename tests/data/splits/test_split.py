from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import graphveil as gv
from graphveil.data.graph import encode_pairs, undirected_pairs
from graphveil.data.origin import Encoding, Origin, node_ids
from graphveil.data.splits.split import draw_split
from graphveil.randomness import Noise


def codes(pairs: torch.Tensor) -> set[int]:
    return set(encode_pairs(pairs).tolist())


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


def test_training_nonlinks_hit_nothing_that_is_linked_or_held_out(split: gv.Split) -> None:
    from graphveil.training.targets import Links

    target = Links([split], torch.device("cpu"))
    clock = torch.zeros(1, dtype=torch.long)
    noise = Noise([0], "nonlinks", 5, clock)
    seen = []
    for number in range(5):
        clock.fill_(number)
        examples = target.train(noise)
        nonlinks = codes(examples.index[:, examples.y == 0])
        assert not nonlinks & set(split.taken_pairs.tolist())
        assert examples.y.sum() * 2 == examples.y.numel()
        seen.append(nonlinks)
    assert all(a != b for a, b in pairwise(seen)), "they are drawn anew each round"


def test_a_split_of_another_graph_is_refused(graph: Data, split: gv.Split) -> None:
    """A pair that is a link in the graph but a non-link in the split would be scored upside down."""
    split.check_links(graph)
    other = graph.clone()
    other.edge_index = torch.cat([graph.edge_index, split.test_nonlinks[:, :1]], dim=1)
    with pytest.raises(gv.LeakError, match="5000 links of the split are not the 5001 links of the graph"):
        split.check_links(other)
    with pytest.raises(gv.LeakError, match="build the split from this graph"):
        gv.Veil(device="cpu").fit(other, split)


def test_small_graphs_are_refused_by_the_papers_split_and_taken_by_the_proportional_one() -> None:
    karate = gv.load("karate")
    with pytest.raises(gv.GraphveilError, match=r"class 0 of labels has 13.*Split\.proportional"):
        gv.Split.paper(karate)
    split = gv.Split.proportional(karate)
    assert set(karate.y[split.train_nodes].tolist()) == {0, 1, 2, 3}
    assert split.val_nodes.numel() + split.test_nodes.numel() + split.train_nodes.numel() == 34


def toy(labels: list[int], num_links: int = 40) -> Data:
    n = len(labels)
    pairs = torch.triu_indices(n, n, 1)[:, :num_links]
    return Data(x=torch.ones(n, 1), edge_index=pairs, y=torch.tensor(labels))


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
