"""The known secrets of attackers, and their queries."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing.secret import NodeSecret, class_matched, link_secret, node_secret
from graphveil.data.graph import both_directions, decode_pairs, encode_pairs, undirected_pairs
from graphveil.data.splits.nonlinks import TakenPairs, distinct_nonlinks
from graphveil.errors import GraphveilError
from graphveil.formats.audit import sampling
from graphveil.randomness import generator


def test_few_known_secrets_are_twenty_per_class_and_all_are_all_but_the_test(
    coin: NodeSecret, hamlet_split: gv.Split
) -> None:
    assert np.bincount(coin.known["few"].y).tolist() == [20, 20]
    everything = set(coin.known["all"].index)
    assert everything == set(hamlet_split.attacker_nodes("all").tolist())
    assert not everything & set(coin.test.index)


def test_unknown_values_are_left_out(town: Data, town_split: gv.Split) -> None:
    holes = town.clone()
    holes.coin[::3] = -1
    secret = node_secret(holes, town_split, "coin", 0)
    for part in (secret.known["few"], secret.known["all"], secret.val, secret.test):
        assert (part.index % 3 != 0).all()
        assert set(part.y) <= {0, 1}


def test_nodes_without_a_label_count_as_known_if_their_attribute_is(town: Data, town_split: gv.Split) -> None:
    graph = town.clone()
    graph.y[::2] = -1
    split = gv.Split.proportional(graph, 0)
    secret = node_secret(graph, split, "coin", 0)
    assert len(secret.known["all"].y) == 1500 - len(split.test_nodes)


def test_few_labels_are_twenty_per_class_in_every_split(town: Data, town_split: gv.Split) -> None:
    assert np.bincount(node_secret(town, town_split, "labels", 0).known["few"].y).tolist() == [20] * 4


def test_a_float_attribute_with_nan_is_read_as_unknown(town: Data, town_split: gv.Split) -> None:
    graph = town.clone()
    graph.coin = graph.coin.float()
    graph.coin[::4] = torch.nan
    secret = node_secret(graph, town_split, "coin", 0)
    assert (secret.test.index % 4 != 0).all()
    graph.coin[1] = 0.5
    with pytest.raises(GraphveilError, match="bin or encode"):
        node_secret(graph, town_split, "coin", 0)


def test_class_matched_non_links_have_the_classes_of_the_links_and_are_new(town: Data, town_split: gv.Split) -> None:
    y, taken = town.y.numpy(), TakenPairs(undirected_pairs(town.edge_index), town_split.taken_pairs[:0])
    matched = class_matched(town_split.test_links.numpy(), y, taken, seed=0)
    assert matched is not None
    kinds = np.sort(y[matched.index], axis=0)
    assert (matched.y[: len(matched.y) // 2] == 1).all()
    of_links, of_nonlinks = np.split(kinds, 2, axis=1)
    np.testing.assert_array_equal(of_links, of_nonlinks)
    codes = encode_pairs(torch.from_numpy(matched.index[:, matched.y == 0])).numpy()
    assert not taken.contain(torch.from_numpy(codes)).any()
    assert len(np.unique(codes)) == len(codes)


def test_no_pair_is_in_two_parts() -> None:
    """In a dense graph the same pair is drawn often."""
    graph = gv.generate(gv.GraphSpec(num_nodes=150, num_edges=2500, num_features=20, num_classes=3), seed=1)
    secret = link_secret(graph, gv.Split.proportional(graph, 0, message_edges="all"), 0)
    assert secret.matched is not None
    parts = (secret.known, secret.val, secret.test, secret.matched.known, secret.matched.val, secret.matched.test)
    codes = [encode_pairs(torch.from_numpy(part.index[:, part.y == 0])) for part in parts]
    every = torch.cat(codes)
    assert len(torch.unique(every)) == len(every)


def test_the_samples_of_a_link_secret(town: Data, town_split: gv.Split, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphveil.auditing.secret.MAX_KNOWN", 300)
    monkeypatch.setattr("graphveil.auditing.secret.MAX_QUERIES", 200)
    secret = link_secret(town, town_split, 0)
    of = {one.what: (one.used, one.of) for one in secret.samples}
    sizes = {name: getattr(town_split, f"{name}_links").size(1) for name in ("train", "val", "test")}
    assert of["train links"] == (300, sizes["train"])
    assert of["test links"] == (200, sizes["test"]) == of["test nonlinks"]
    assert of["known links, class-matched"] == (200, 300)
    assert secret.known.y.tolist() == [1] * 300 + [0] * 300
    assert "300 of " in sampling(secret.samples)
    assert (
        sampling([one for one in secret.samples if one.used == one.of]) == "All known and queried examples were used."
    )


@pytest.mark.parametrize("block", [1, 40, 2**20])
def test_a_link_secret_does_not_depend_on_the_blocks(
    block: int, town: Data, town_split: gv.Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its non-links are those that are drawn with all taken pairs in one list."""
    nonlinks = distinct_nonlinks(
        town_split.train_links.size(1), town_split.taken_pairs, 1500, generator(0, "audit", "non-links")
    )
    for module in ("graph", "splits.nonlinks"):
        monkeypatch.setattr(f"graphveil.data.{module}.BLOCK", block)
    secret = link_secret(town, town_split, 0)
    np.testing.assert_array_equal(secret.known.index[:, secret.known.y == 0], nonlinks.numpy())


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak memory is read from /proc")
def test_the_memory_of_a_link_secret_is_flat_in_the_number_of_links() -> None:
    """Of a graph in memory with 10,000,000 links, whose one list of links as int64 takes 160 MB."""
    num_nodes, number = 1_000_000, 10_000_000
    codes = torch.unique(torch.randint(num_nodes * (num_nodes - 1) // 2, (number,)))
    graph = Data(
        x=torch.ones(num_nodes, 1),
        y=torch.arange(num_nodes) % 5,
        edge_index=both_directions(decode_pairs(codes)),
    )
    split = gv.Split.proportional(graph, 0)

    def memory(name: str) -> int:
        return int(Path("/proc/self/status").read_text(encoding="ascii").partition(name)[2].split()[0]) // 1000

    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far does not count
    before = memory("VmRSS:")
    secret = link_secret(graph, split, 0)
    assert memory("VmHWM:") - before < 120
    assert len(secret.known.y) == 80_000
