"""Noisy aggregation: how far one link moves the sums, its delta, and features that are refused."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch_geometric.data import Data

import graphveil as gv
from graphveil.data.degree_features import degree_features, is_structural
from graphveil.data.origin import Origin, node_ids
from graphveil.errors import GraphveilError
from graphveil.experiments.gap import SENSITIVITY, Aggregation, neighbour_sums, noisy_classes


@settings(deadline=None, max_examples=50)
@given(st.integers(3, 30), st.integers(1, 8), st.integers(0, 2**31))
def test_one_link_changes_the_sums_by_at_most_sqrt_2(num_nodes: int, channels: int, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    x = F.normalize(torch.randn(num_nodes, channels, generator=draw))
    pairs = torch.triu_indices(num_nodes, num_nodes, offset=1)
    pairs = pairs[:, torch.randperm(pairs.size(1), generator=draw)]
    count = int(torch.randint(1, pairs.size(1) + 1, (), generator=draw))
    moved = neighbour_sums(x, pairs[:, :count]) - neighbour_sums(x, pairs[:, : count - 1])
    assert moved.norm() <= SENSITIVITY + 1e-4
    assert moved.norm() == pytest.approx(SENSITIVITY, abs=1e-4), "rows of unit norm reach the bound"
    assert (moved.norm(dim=1) > 0.5).nonzero().flatten().tolist() == sorted(pairs[:, count - 1].tolist())


def test_sums_over_neighbours_by_hand() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    assert neighbour_sums(x, torch.tensor([[0, 1], [2, 2]])).tolist() == [
        pytest.approx([0.6, 0.8]),
        pytest.approx([0.6, 0.8]),
        pytest.approx([1.0, 1.0]),
    ]


def test_delta_is_at_most_one_over_the_number_of_links() -> None:
    assert Aggregation().delta(5_278) == 1e-5
    assert Aggregation().delta(2_000_000) == 5e-7


def test_features_that_are_computed_from_links_are_refused(small: Data, small_split: gv.Split) -> None:
    """Features count as public, so they must not contain the links."""
    graph = small.clone()
    graph.origin = Origin(node_ids(graph), structural=True)
    graph.x = degree_features(small_split.message_pairs, small.num_nodes)
    assert is_structural(graph)
    with pytest.raises(GraphveilError, match="features are computed from links"):
        noisy_classes(graph, small_split, 1.0, 0)
