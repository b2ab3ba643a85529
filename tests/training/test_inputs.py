"""What encoders are given: the features that a user set, and degrees that reveal no held-out link."""

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.data import find_leaky_columns
from graphveil.data.degree_features import degree_features, is_structural
from graphveil.data.graph import both_directions
from graphveil.data.origin import Origin, node_ids
from graphveil.training.inputs import features, pick_device
from tests.data.readers.made import star

CPU = torch.device("cpu")


def test_the_device_of_auto_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that makes mini-batches would otherwise use GPU 0 in every process."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    assert pick_device("auto") == torch.device("cuda", 3)


def test_features_that_a_user_sets_are_those_that_are_taken(tmp_path: Path) -> None:
    graph = star(tmp_path)
    assert is_structural(graph)
    for own in (torch.rand(6, 3), torch.rand(6, 26), torch.eye(6, 26), 2 * graph.x, graph.x.to_sparse_csr()):
        given = graph.clone()
        given.x = own
        assert not is_structural(given)
    given.x = torch.arange(12.0).reshape(6, 2)
    given.y = torch.arange(6) % 2
    assert torch.equal(features(given, [], "none", CPU), given.x)  # type: ignore[arg-type]
    assert {name for name, _ in find_leaky_columns(given, "labels")} <= {"x[0]", "x[1]"}


def test_degree_features_are_computed_again_after_links_were_removed(tmp_path: Path) -> None:
    graph = star(tmp_path)
    graph.edge_index = graph.edge_index[:, (graph.edge_index != 3).all(dim=0)]
    assert is_structural(graph)
    counted = features(graph, [], "none", CPU)
    assert isinstance(counted, torch.Tensor)
    assert counted[:, 1].expm1().round().tolist() == [2, 1, 1, 0, 1, 1]


def test_degree_features_reveal_no_held_out_links() -> None:
    """A path of 60 nodes: in the features of a split a node has the links that messages pass along, and no others."""
    pairs = torch.stack([torch.arange(59), torch.arange(1, 60)])
    x = degree_features(pairs, 60)
    graph = Data(x=x, edge_index=both_directions(pairs), y=torch.arange(60) % 2)
    graph.origin = Origin(node_ids(graph), structural=True)
    splits = [gv.Split.proportional(graph, seed) for seed in (0, 1)]
    cpu = torch.device("cpu")
    for split in splits:
        degree = torch.bincount(split.train_links.flatten(), minlength=60)
        assert torch.allclose(features(graph, [split], "sum", cpu)[:, 1].expm1(), degree.float())  # type: ignore[index]
    together = features(graph, splits, "sum", cpu)
    assert isinstance(together, torch.Tensor)
    assert together.shape == (2, 60, 26)
    assert together[1].equal(features(graph, splits[1:], "sum", cpu))  # type: ignore[arg-type]
    assert x.equal(features(graph, [], "sum", cpu))  # type: ignore[arg-type]
    recipe = gv.Recipe(rounds=6, hidden_channels=4, out_channels=2, warmup=0)
    veils = [gv.Veil(objective="club", recipe=recipe, seed=seed, device="cpu") for seed in (0, 1)]
    gv.fit_together(veils, graph, splits)
    alone = gv.Veil(objective="club", recipe=recipe, seed=1, device="cpu").fit(graph, splits[1])
    z = veils[1].transform(graph, splits[1])
    assert z.std(dim=0).min() > 1e-3, "or any two would be close"
    assert torch.allclose(alone.transform(graph, splits[1]), z, atol=1e-5)
