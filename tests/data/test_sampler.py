"""The sampler of neighbourhoods: without replacement, uniform, repeatable, and at home in PyG's loaders."""

from collections import Counter
from itertools import combinations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.testing.feature_store import MyFeatureStore
from torch_geometric.testing.graph_store import MyGraphStore

from graphveil.data.graph import undirected_pairs
from graphveil.data.sampler import NeighborSampler, Neighbours, draw_distinct


def neighbours_of(graph: Data) -> Neighbours:
    return Neighbours.of(undirected_pairs(graph.edge_index), graph.x.size(0))


def stores_of(graph: Data) -> tuple[MyFeatureStore, MyGraphStore]:
    features, links = MyFeatureStore(), MyGraphStore()
    features.put_tensor(graph.x, group_name=None, attr_name="x", index=None)
    links.put_edge_index(graph.edge_index, edge_type=None, layout="coo", size=(150, 150))
    return features, links


def chi_squared(counts: list[int]) -> float:
    expected = sum(counts) / len(counts)
    return sum((count - expected) ** 2 for count in counts) / expected


@pytest.mark.parametrize(("population", "count"), [(1, 1), (5, 5), (6, 2), (7, 4)])
def test_every_subset_is_drawn_equally_often_and_none_has_a_duplicate(population: int, count: int) -> None:
    times = 20_000
    drawn = draw_distinct(torch.full((times,), population), count, torch.Generator().manual_seed(1))
    subsets = Counter(tuple(sorted(row)) for row in drawn.tolist())
    possible = list(combinations(range(population), count))
    assert set(subsets) <= set(possible), "a value is out of range, or occurs twice"
    # 34 degrees of freedom at most: 99.99 % of uniform draws are below 76
    assert chi_squared([subsets[one] for one in possible]) < 76


def test_a_draw_with_replacement_would_be_noticed() -> None:
    drawn = torch.randint(7, (20_000, 4), generator=torch.Generator().manual_seed(1))
    assert any(len(set(row)) < 4 for row in drawn.tolist())


def test_neighbours_are_those_of_both_ends_in_ascending_order() -> None:
    graph = Neighbours.of(torch.tensor([[0, 1, 0], [2, 2, 3]]), 5)
    assert graph.start.tolist() == [0, 2, 3, 5, 6, 6]
    assert graph.node.tolist() == [2, 3, 2, 0, 1, 0]
    assert graph.degree.tolist() == [2, 1, 2, 1, 0]


def test_a_sample_has_different_true_neighbours_and_all_of_few(small: Data) -> None:
    graph = neighbours_of(small)
    seeds = torch.tensor([7, 3, 100])
    sampled = NeighborSampler(graph, [3, 2]).sample(seeds)
    node, count = sampled.node, sampled.num_sampled_nodes
    assert node[:3].equal(seeds), "the seeds come first"
    assert len(node.unique()) == len(node) == sum(count)
    assert (sampled.col.diff() >= 0).all(), "links are ordered by receiver"
    assert sampled.num_sampled_edges == [int((sampled.col < 3).sum()), int((sampled.col >= 3).sum())]
    for place, width in [*((place, 3) for place in range(3)), *((place, 2) for place in range(3, 3 + count[1]))]:
        own = node[place]
        true = graph.node[graph.start[own] : graph.start[own + 1]].tolist()
        drawn = node[sampled.row[sampled.col == place]].tolist()
        assert len(drawn) == len(set(drawn)) == min(width, len(true))
        assert set(drawn) <= set(true)
    assert not (sampled.col >= 3 + count[1]).any(), "the last hop has no sampled neighbours"


def test_a_call_depends_on_the_seed_and_its_number_alone(small: Data) -> None:
    graph, seeds = neighbours_of(small), torch.arange(20)

    def sample(seed: int, before: int, calls: int) -> Tensor:
        sampler = NeighborSampler(graph, [2, 2], seed, calls)
        for _ in range(before):
            sampler.sample(torch.arange(50))
        node: Tensor = sampler.sample(seeds).node
        return node

    assert sample(0, 3, 0).equal(sample(0, 0, 3))
    assert not sample(0, 3, 0).equal(sample(0, 0, 2))
    assert not sample(0, 0, 3).equal(sample(1, 0, 3))


@pytest.mark.parametrize("as_stores", [False, True])
def test_it_works_in_pygs_loaders_without_their_extensions(small: Data, as_stores: bool) -> None:
    graph = Data(x=small.x.to_dense(), edge_index=small.edge_index, y=small.y)
    neighbours = neighbours_of(small)
    data = stores_of(graph) if as_stores else graph
    nodes = NodeLoader(data, NeighborSampler(neighbours, [4, 4]), torch.arange(150), batch_size=64)
    batches = list(nodes)
    assert [batch.batch_size for batch in batches] == [64, 64, 22]
    assert torch.cat([batch.n_id[: batch.batch_size] for batch in batches]).equal(torch.arange(150))
    assert batches[0].x.equal(graph.x[batches[0].n_id])
    pairs = (None, small.edge_index) if as_stores else small.edge_index
    links = LinkLoader(data, NeighborSampler(neighbours, [4]), pairs, torch.ones(1000), batch_size=100)
    batch = next(iter(links))
    assert batch.n_id[batch.edge_label_index].equal(small.edge_index[:, :100])


@pytest.mark.parametrize("workers", [0, 2])
def test_every_epoch_and_every_worker_draws_another_sample(small: Data, workers: int) -> None:
    graph, seeds = Data(x=small.x.to_dense(), edge_index=small.edge_index), torch.arange(64).repeat(2)
    sampler = NeighborSampler(neighbours_of(small), [2])

    def two_epochs() -> list[Tensor]:
        torch.manual_seed(3)
        sampler.calls = 0
        loader = NodeLoader(graph, sampler, seeds, batch_size=64, num_workers=workers)
        return [batch.n_id for _ in range(2) for batch in loader]

    drawn = two_epochs()
    assert len(drawn) == 4
    assert not any(one.equal(other) for one, other in combinations(drawn, 2))
    assert all(one.equal(other) for one, other in zip(drawn, two_epochs(), strict=True))


def test_negative_links_are_not_drawn(small: Data) -> None:
    loader = LinkLoader(small, NeighborSampler(neighbours_of(small), [4]), small.edge_index, neg_sampling="binary")
    with pytest.raises(ValueError, match="draws no negative links"):
        next(iter(loader))
