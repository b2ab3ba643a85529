"""Features from the number of links of each node."""

import math

import pytest
import torch
from torch_geometric.data import Data

from graphveil.data.degree_features import BINS, degree_features, is_structural
from graphveil.data.origin import Origin, node_ids


def test_a_path_and_a_lonely_node() -> None:
    """Degrees 1, 2, 1 and 0: powers of two of 2, 3, 2 and 1."""
    x = degree_features(torch.tensor([[0, 1], [1, 2]]), 4)
    assert x.shape == (4, 2 + BINS)
    assert x[:, 0].tolist() == [1, 1, 1, 1]
    assert x[:, 1].tolist() == pytest.approx([math.log(2), math.log(3), math.log(2), 0])
    assert x[:, 2:].argmax(dim=1).tolist() == [1, 1, 1, 0]
    assert x[:, 2:].sum(dim=1).tolist() == [1, 1, 1, 1]


def test_features_are_structural_until_the_user_sets_others() -> None:
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graph = Data(x=degree_features(torch.tensor([[0, 1], [1, 2]]), 3), edge_index=edge_index)
    assert not is_structural(graph), "it was not read without features"
    graph.origin = Origin(node_ids(graph), structural=True)
    assert is_structural(graph)
    graph.x = degree_features(torch.tensor([[0], [1]]), 3)
    assert is_structural(graph), "of other links"
    for column, value in ((0, 2.0), (1, 5.0), (3, 0.0)):
        changed = graph.clone()
        changed.x[0, column] = value
        assert not is_structural(changed)
    graph.x = graph.x[:, :-1]
    assert not is_structural(graph)
