"""The summary of a graph, and which differences from it are reported."""

import json

import pytest
import torch
from torch_geometric.data import Data

from graphveil.data.origin import Column, Encoding
from graphveil.data.summary import differences, summary


def ring(x: torch.Tensor, degree: int = 4) -> Data:
    nodes = x.size(0)
    around = torch.arange(nodes)
    edges = [torch.stack([around, (around + step) % nodes]) for step in range(1, degree // 2 + 1)]
    return Data(x=x, edge_index=torch.cat(edges, dim=1))


def test_a_summary_is_the_same_for_dense_and_sparse_features() -> None:
    x = torch.tensor([[0.0, 1.0, 5.0], [2.0, 0.0, 5.0], [4.0, 0.0, 5.0], [0.0, 0.0, 5.0], [4.0, 0.0, 5.0]])
    found = summary(ring(x))
    assert found["nodes"] == 5
    assert found["mean_degree"] == 4
    assert found["mean"] == [2.0, 0.2, 5.0]
    assert found["deviation"] == pytest.approx([3.2**0.5, 0.4, 0.0], rel=1e-5)
    share = 0.2  # a coin's kurtosis is (1 - 3 p (1 - p)) / (p (1 - p))
    assert found["kurtosis"][1] == pytest.approx((1 - 3 * share * (1 - share)) / (share * (1 - share)), rel=1e-5)
    assert summary(ring(x.to_sparse_csr())) == found
    json.dumps(found)


@pytest.mark.parametrize("seed", range(5))
def test_random_differences_raise_no_warning(seed: int) -> None:
    """60 nodes are compared with 2,000 of the same distribution: 500 rare columns and 50 normal ones."""
    random = torch.Generator().manual_seed(seed)

    def draw(nodes: int) -> Data:
        rare = (torch.rand(nodes, 500, generator=random) < 0.01).float()
        return ring(torch.cat([rare, torch.randn(nodes, 50, generator=random)], dim=1))

    assert differences(summary(draw(2000)), draw(60), Encoding()) == []


def test_the_worst_columns_are_named() -> None:
    random = torch.Generator().manual_seed(0)
    x = torch.randn(500, 5, generator=random)
    x = (x - x.mean(dim=0)) / x.std(dim=0, correction=0)
    newer = x * torch.tensor([1, 1, 1, 1, 5.0]) + torch.tensor([0, 3, 9, 0, 0.0])
    columns = (
        Column("age", "number", 1),
        Column("town", "category", 3, categories=("a", "b", "c")),
        Column("k", "number", 1),
    )
    sentences = differences(summary(ring(x)), ring(newer, degree=10), Encoding(columns))
    assert len(sentences) == 3
    assert sentences[0] == "The mean number of links per node is 10.0; it was 4.0 in training."
    assert sentences[1].startswith("The means of 2 of 5 features differ from training by more than 0.5")
    assert sentences[1].endswith(": 'town b' (9.0), 'town a' (3.0).")
    assert sentences[2].endswith(": 'k' (5.0).")
    never = differences(summary(ring(torch.ones(50, 1))), ring(torch.full((50, 1), 1.1)), Encoding())
    assert never == [
        "The means of 1 of 1 feature differ from training by more than 0.5 standard deviations: 'feature 0' (100.0)."
    ]
