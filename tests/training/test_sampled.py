"""Mini-batches: samples that stand for the whole graph, exact embeddings, and batches by the number of a round."""

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import graphveil as gv
from graphveil.models import ENCODERS
from graphveil.models.codes import CodeEncoder, CodeShape
from graphveil.models.layered import Layered
from graphveil.training import sampled
from graphveil.training.graphs import WholeGraph, graph_of
from graphveil.training.sampled import Batches, SampledGraph, Shuffled, link_coins
from graphveil.training.targets import Examples, ListedExamples
from tests.models.test_layered import LAYERED

CPU = torch.device("cpu")


def sampled_graph(graph: Data, split: gv.Split, fanout: int, scaling: str = "sum") -> SampledGraph:
    recipe = gv.Recipe(batch_size=20, fanout=fanout)
    made = graph_of(graph, [split], scaling, recipe, CPU)
    assert isinstance(made, SampledGraph)
    return made


def whole_graph(graph: Data, split: gv.Split, scaling: str = "sum") -> WholeGraph:
    made = graph_of(graph, [split], scaling, gv.Recipe(), CPU)
    assert isinstance(made, WholeGraph)
    return made


def encoder_of(name: str, **options: object) -> nn.Module:
    torch.manual_seed(3)
    encoder = ENCODERS[name](40, 8, 6, dropout=0.0, **options)
    for parameter in encoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    return encoder


def drawing(*parts: Sequence[int]) -> Callable[[int], list[Examples]]:
    return lambda _: [ListedExamples(torch.tensor(part), torch.tensor(part)) for part in parts]


def coded(encoder: nn.Module) -> CodeEncoder:
    torch.manual_seed(4)
    return CodeEncoder(encoder, 6, CodeShape(2, 4), by_degree=True)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("by_codes", [False, True])
@pytest.mark.parametrize("name", LAYERED)
def test_with_all_neighbours_a_batch_is_the_whole_graph(
    small: Data, small_split: gv.Split, name: str, by_codes: bool, dense: bool
) -> None:
    graph = small.clone()
    graph.x = small.x.to_dense() if dense else small.x
    encoder: nn.Module = coded(encoder_of(name)) if by_codes else encoder_of(name)
    encoder.eval()
    batches = sampled_graph(graph, small_split, 150).batches(encoder, drawing([5, 140], [7, 5, 9]), 0, 3)
    batch = batches.at(0)
    z = batch.encode(encoder)
    expected = whole_graph(graph, small_split).embed(encoder)
    for part, nodes in zip(batch.examples, ([5, 140], [7, 5, 9]), strict=True):
        assert part.y.tolist() == nodes
        assert torch.allclose(z[part.index], expected[nodes], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gcn", "sage"])
def test_a_sampled_sum_is_right_on_average(small: Data, small_split: gv.Split, name: str) -> None:
    graph, nodes = sampled_graph(small, small_split, 2), list(range(0, 150, 3))
    encoder = encoder_of(name)
    assert isinstance(encoder, Layered)
    times = 400
    batches = Batches(graph, drawing(nodes), 1, 0, times)
    totals, exact = (
        [],
        encoder.aggregate(1, h := torch.randn(150, 6 if name == "gcn" else 12), graph.block(slice(0, 150))),
    )
    for number in range(times):
        batch = batches.at(number)
        (block,) = batch.blocks
        # the senders of a batch by their features, which tell the nodes apart
        totals.append(encoder.aggregate(1, h[_nodes_of(graph, batch.x)], block)[: len(nodes)])
    mean = torch.stack(totals).mean(dim=0)
    spread = torch.stack(totals).std(dim=0).detach() / math.sqrt(times)
    assert ((mean - exact[nodes]).abs() <= 5 * spread + 1e-4).all()
    assert float(spread.max()) > 0.01, "something is sampled"


def _nodes_of(graph: SampledGraph, x: object) -> Tensor:
    rows, every = x.to_dense(), graph.features[slice(0, 150)].to_dense()  # type: ignore[attr-defined]
    return torch.cdist(rows, every).argmin(dim=1)


@pytest.mark.parametrize("name", LAYERED)
def test_exact_embeddings_are_those_of_the_whole_graph_block_by_block(
    small: Data, small_split: gv.Split, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = coded(encoder_of(name, smoothing=3, restart=0.2))
    expected = whole_graph(small, small_split).embed(encoder)
    monkeypatch.setattr(sampled, "ROWS_AT_ONCE", 32)
    monkeypatch.setattr(sampled, "ENTRIES_AT_ONCE", 60)
    graph = sampled_graph(small, small_split, 2)
    ranges = list(graph._ranges())
    assert len(ranges) > 10
    assert [rows.start for rows in ranges[1:]] == [rows.stop for rows in ranges[:-1]]
    assert torch.allclose(graph.embed(encoder), expected, rtol=1e-4, atol=1e-5)
    assert encoder.training, "embedding leaves the encoder in training"


def test_a_node_with_more_links_than_a_block_is_a_block(small: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    split = gv.Split.proportional(small, 2)
    monkeypatch.setattr(sampled, "ENTRIES_AT_ONCE", 1)
    graph = sampled_graph(small, split, 2)
    assert len(list(graph._ranges())) == 150
    encoder = encoder_of("gcn")
    assert torch.allclose(graph.embed(encoder), whole_graph(small, split).embed(encoder), rtol=1e-4, atol=1e-5)


def test_a_dropped_link_is_dropped_in_both_directions_and_counts_in_the_degrees(
    small: Data, small_split: gv.Split
) -> None:
    graph = sampled_graph(small, small_split, 150)
    every = list(range(150))
    batches = graph.batches(encoder_of("gcn"), drawing(every), 0, 2, edge_dropout=0.4)
    first, second = batches.at(0), batches.at(1)
    dense = first.blocks[1].normalized.to_dense()
    assert torch.allclose(dense, dense.T), "GCN's weights are symmetric"
    links = (dense != 0).sum(dim=1)
    assert links.equal(first.degree.long())
    assert torch.allclose(dense.diagonal(), 1 / first.degree)
    assert float((links - 1).sum() / (graph.degree - 1).sum()) == pytest.approx(0.6, abs=0.06)
    assert not dense.equal(second.blocks[1].normalized.to_dense()), "each round has its own"


def test_coins_are_uniform_and_differ_from_round_to_round() -> None:
    codes = torch.arange(100_000)
    coins = torch.stack([link_coins(codes, 0.3, seed, number) for seed, number in ((0, 0), (0, 1), (1, 0))])
    assert coins.float().mean(dim=1).tolist() == pytest.approx([0.3] * 3, abs=0.006)
    assert float((coins[0] & coins[1]).float().mean()) == pytest.approx(0.09, abs=0.005)
    assert float((coins[0, 1:] & coins[0, :-1]).float().mean()) == pytest.approx(0.09, abs=0.005)


def test_a_batch_is_a_function_of_the_round(small: Data, small_split: gv.Split) -> None:
    graph, encoder = sampled_graph(small, small_split, 2), encoder_of("gcn")

    def batches() -> Batches:
        return graph.batches(encoder, drawing([1, 2, 3, 4]), 5, 9, edge_dropout=0.3)

    one, other = batches(), batches()
    from_start = [one.at(number) for number in range(9)]
    for number in (4, 5, 2):
        z = other.at(number).encode(encoder)
        assert z.equal(from_start[number].encode(encoder))
    assert not from_start[0].encode(encoder).equal(from_start[1].encode(encoder))


def test_an_error_while_a_batch_is_made_reaches_the_trainer(small: Data, small_split: gv.Split) -> None:
    def draw(number: int) -> list[Examples]:
        if number == 1:
            raise ValueError("no such examples")
        return [ListedExamples(torch.tensor([1]), torch.tensor([1]))]

    batches = sampled_graph(small, small_split, 2).batches(encoder_of("gcn"), draw, 0, 3)
    batches.at(0)
    with pytest.raises(ValueError, match="no such examples"):
        batches.at(1)


def test_every_epoch_has_every_example_once_in_another_order() -> None:
    order = Shuffled(100, 25, 0, "x")
    epochs = [[order.at(4 * epoch + number) for number in range(4)] for epoch in range(2)]
    for epoch in epochs:
        assert torch.cat(epoch).sort().values.equal(torch.arange(100))
        assert all((batch.diff() > 0).all() for batch in epoch)
    assert not epochs[0][0].equal(epochs[1][0])
    assert order.at(2).equal(epochs[0][2]), "whatever was drawn before"
    assert not Shuffled(100, 25, 1, "x").at(0).equal(epochs[0][0])
    assert Shuffled(10, 25, 0, "x").at(7).equal(torch.arange(10)), "no more than one batch: all examples"
