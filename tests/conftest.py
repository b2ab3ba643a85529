"""Graphs that tests share: two generated ones, of which one is small."""

import signal

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv

torch.set_num_threads(1)  # two test processes share two cores
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it, and so would children


@pytest.fixture(scope="session")
def graph() -> Data:
    """A generated graph that is large enough for the paper's split."""
    return gv.generate(gv.GraphSpec(num_nodes=1800, num_edges=5000, num_features=120, num_classes=4), seed=3)


@pytest.fixture(scope="session")
def split(graph: Data) -> gv.Split:
    return gv.Split.paper(graph, seed=1)


@pytest.fixture(scope="session")
def small() -> Data:
    """A generated graph on which a hundred rounds take a second."""
    return gv.generate(gv.GraphSpec(num_nodes=150, num_edges=500, num_features=40, num_classes=3), seed=5)


@pytest.fixture(scope="session")
def small_split(small: Data) -> gv.Split:
    return gv.Split.proportional(small, seed=2)


@pytest.fixture(scope="session")
def quick() -> gv.Recipe:
    """A recipe for a training of a second."""
    return gv.Recipe(rounds=12, hidden_channels=8, out_channels=4, evaluate_every=3, warmup=3, patience=12)
