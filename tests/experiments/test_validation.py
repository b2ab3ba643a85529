"""The graph and the split of a selection have nothing of the test part."""

import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.data import UNKNOWN, check_split
from graphveil.data.graph import encode_pairs, undirected_pairs
from graphveil.experiments.validation import without_test_part


def test_nothing_of_the_test_part_is_left(planted: Data) -> None:
    split = gv.Split.proportional(planted, 3)
    seen, inner = without_test_part(planted, split)
    assert (seen.y[split.test_nodes] == UNKNOWN).all()
    others = torch.cat([split.train_nodes, split.val_nodes, split.spare_nodes])
    assert seen.y[others].equal(planted.y[others])
    assert not torch.isin(encode_pairs(split.test_links), encode_pairs(undirected_pairs(seen.edge_index))).any()
    held = torch.cat([inner.train_nodes, inner.val_nodes, inner.test_nodes, inner.spare_nodes])
    assert not torch.isin(split.test_nodes, held).any()
    pairs = torch.cat([inner.train_links, inner.val_links, inner.test_links], dim=1)
    assert not torch.isin(encode_pairs(split.test_links), encode_pairs(pairs)).any()
    check_split(inner, seen)


def test_validation_takes_the_place_of_the_test_part(planted: Data) -> None:
    split = gv.Split.proportional(planted, 3)
    graph, inner = planted.clone(), without_test_part(planted, split)[1]
    assert inner.test_nodes.equal(split.val_nodes)
    assert inner.test_links.equal(split.val_links)
    assert inner.test_nonlinks.equal(split.val_nonlinks)
    assert graph.y.equal(planted.y), "the graph itself is unchanged"


def test_scores_and_certificates_do_not_depend_on_the_test_part(planted: Data, quick: gv.Recipe) -> None:
    """Other classes of the test nodes change nothing that a selection sees."""
    split = gv.Split.proportional(planted, 3)
    veil = gv.Veil(objective="codes", recipe=quick, seed=1, device="cpu").fit(planted, split)
    z, found = torch.arange(600)[:, None] % 7 / 8, []
    for shift in (0, 1):
        graph = planted.clone()
        graph.y[split.test_nodes] = (graph.y[split.test_nodes] + shift) % 3
        seen, inner = without_test_part(graph, split)
        found.append((veil.score(seen, inner), gv.certify(z, seen, inner, "labels")))
    assert found[0] == found[1]
