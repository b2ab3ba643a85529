"""What attackers know, and what is asked of them."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing.secret import NodeSecret, class_matched, link_secret, node_secret
from graphveil.data.graph import encode_pairs
from graphveil.errors import GraphveilError


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
    y, taken = town.y.numpy(), town_split.taken_pairs
    matched = class_matched(town_split.test_links.numpy(), y, taken, seed=0)
    assert matched is not None
    kinds = np.sort(y[matched.index], axis=0)
    assert (matched.y[: len(matched.y) // 2] == 1).all()
    of_links, of_nonlinks = np.split(kinds, 2, axis=1)
    np.testing.assert_array_equal(of_links, of_nonlinks)
    codes = encode_pairs(torch.from_numpy(matched.index[:, matched.y == 0])).numpy()
    assert not np.isin(codes, taken.numpy()).any()
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
