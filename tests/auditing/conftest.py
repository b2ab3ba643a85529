"""A graph with a fair coin for each node, which neither links nor labels reveal; tests plant it in embeddings."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing.secret import NodeSecret, node_secret
from tests.auditing.made import noise
from tests.cheap import weaken_networks


@pytest.fixture(scope="session")
def town() -> Data:
    """1,500 nodes of nearly equal degree, four classes, and a coin."""
    return with_coin(1500, num_features=60)


@pytest.fixture(scope="session")
def town_split(town: Data) -> gv.Split:
    return gv.Split.proportional(town, seed=2, message_edges="all")


@pytest.fixture(scope="session")
def hamlet() -> Data:
    """The same with 500 nodes and few features, for whole panels, most of which do not need more."""
    return with_coin(500, num_features=20)


@pytest.fixture(scope="session")
def hamlet_split(hamlet: Data) -> gv.Split:
    return gv.Split.proportional(hamlet, seed=2, message_edges="all")


def with_coin(num_nodes: int, num_features: int) -> Data:
    spec = gv.GraphSpec(num_nodes, 4 * num_nodes, num_features, num_classes=4, skew=50.0)
    graph = gv.generate(spec, seed=11)
    graph.coin = torch.from_numpy(np.random.default_rng(5).integers(0, 2, num_nodes))
    return graph


@pytest.fixture(autouse=True)
def no_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit draws no map, which takes as long as all of its attacks on a small graph; `test_map.py` draws maps."""
    monkeypatch.setattr("graphveil.auditing.panel.draw", lambda *_: None)


@pytest.fixture
def weak_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of which attacks run, and not of how strong they are."""
    weaken_networks(monkeypatch)


@pytest.fixture(scope="session")
def coin(hamlet: Data, hamlet_split: gv.Split) -> NodeSecret:
    return node_secret(hamlet, hamlet_split, "coin", 0)


@pytest.fixture(scope="module")
def secret(town: Data, town_split: gv.Split) -> NodeSecret:
    return node_secret(town, town_split, "coin", 0)


@pytest.fixture(scope="module")
def islands() -> tuple[Data, gv.Split]:
    """40 islands of six nodes, all linked within: the island of each node determines the links."""
    island = np.repeat(np.arange(40), 6)
    u, v = np.triu_indices(6, 1)
    pairs = np.concatenate([np.stack([u, v]) + 6 * start for start in range(40)], axis=1)
    both = torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1))
    x = torch.from_numpy(noise(1, columns=5, nodes=240))
    graph = Data(x=x, edge_index=both, y=torch.from_numpy(island % 3))
    return graph, gv.Split.proportional(graph, 0, message_edges="all")
