"""A graph with a fair coin for each node, which neither links nor labels reveal; tests plant it in embeddings."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv


@pytest.fixture(scope="session")
def town() -> Data:
    """1,500 nodes of nearly equal degree, four classes, and a coin."""
    spec = gv.GraphSpec(num_nodes=1500, num_edges=6000, num_features=60, num_classes=4, skew=50.0)
    graph = gv.generate(spec, seed=11)
    graph.coin = torch.from_numpy(np.random.default_rng(5).integers(0, 2, 1500))
    return graph


@pytest.fixture(scope="session")
def town_split(town: Data) -> gv.Split:
    return gv.Split.proportional(town, seed=2, message_edges="all")
