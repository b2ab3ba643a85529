"""The solved reader: what it must see, what it must not, and what cannot deceive it."""

import pytest
import torch
from torch import Tensor

from graphveil.data import Split, generate
from graphveil.data.datasets.synthetic import GraphSpec
from graphveil.randomness import Noise
from graphveil.training.probe import MAX_EXAMPLES, Draws, probe
from graphveil.training.targets import Examples, LearnedTarget, Links, NodeClasses, auc, secret_target

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def labels() -> NodeClasses:
    """Three classes on 1,500 nodes, most of which are for training."""
    graph = generate(GraphSpec(num_nodes=1500, num_edges=4000, num_features=20, num_classes=3), seed=1)
    split = Split.proportional(graph, 0)
    return NodeClasses("labels", graph, [split], lambda split: split.defender_nodes("all"), CPU)


def draws(seed: int = 0, step: int = 0) -> Draws:
    clock = torch.tensor([step])
    return Draws(Noise([seed], "examples", 9, clock), Noise([seed], "projections", 9, clock))


def train(target: LearnedTarget) -> Examples:
    return target.train(Noise([0], "train", 1, torch.tensor([0])))


def embedding(target: LearnedTarget, secret: bool, channels: int = 6, seed: int = 0) -> Tensor:
    """Noise, with the class in a corner of it on request."""
    z = torch.randn(1500, channels, generator=torch.Generator().manual_seed(seed))
    if secret:
        for examples in (train(target), target.val, target.test):
            z[examples.index, 0] = 3 * examples.y.float() + 0.3 * z[examples.index, 0]
    return z


def read(target: LearnedTarget, z: Tensor) -> float:
    return float(probe(target, z, train(target), target.val, draws()))


def test_a_planted_secret_is_found_and_noise_is_not(labels: NodeClasses) -> None:
    assert read(labels, embedding(labels, secret=True)) > 0.98
    assert read(labels, embedding(labels, secret=False)) < float(labels.prior.max()) + 0.06


def test_a_secret_that_no_line_can_tell_is_found(labels: NodeClasses) -> None:
    """Class 0 against the others in the sign of a product of two coordinates."""
    z = torch.randn(1500, 3, generator=torch.Generator().manual_seed(3))
    for examples in (train(labels), labels.val):
        wanted = torch.where(examples.y == 0, 1.0, -1.0)
        z[examples.index, 1] = z[examples.index, 1].abs() * wanted * z[examples.index, 0].sign()
    assert read(labels, z) > float(labels.prior.max()) + 0.1


def test_neither_scale_nor_place_of_the_embeddings_hides_anything(labels: NodeClasses) -> None:
    z = embedding(labels, secret=True)
    moved = z * torch.tensor([1e-2, 1.0, 7.0, 1.0, 1.0, 30.0]) + 5
    assert read(labels, moved) == pytest.approx(read(labels, z), abs=0.005)


def test_a_node_that_is_sent_far_away_hides_nothing(labels: NodeClasses) -> None:
    for distance in (1e2, 1e3, 1e4):
        far = embedding(labels, secret=True)
        far[train(labels).index[0]] *= distance
        assert read(labels, far) > 0.97


def test_pairs_are_read_by_how_they_lie_and_from_a_sample() -> None:
    """Linked nodes share a class in this graph, and z has the class."""
    graph = generate(GraphSpec(num_nodes=1500, num_edges=9000, num_features=20, num_classes=3), seed=1)
    links = Links([Split.proportional(graph, 0)], CPU)
    assert train(links).y.numel() > MAX_EXAMPLES
    z = torch.randn(1500, 4, generator=torch.Generator().manual_seed(0))
    near = 0.5 * z
    near[:, 0] += 3 * graph.y
    same_class = (graph.y[links.val.index[0]] == graph.y[links.val.index[1]]).double()
    best = float(auc(same_class, links.val.y))
    assert read(links, near) > best - 0.02 > 0.6
    assert 0.42 < read(links, z) < 0.58


@pytest.mark.parametrize("secret", ["labels", "links"])
def test_a_batch_gives_the_values_of_its_runs(secret: str) -> None:
    graph = generate(GraphSpec(num_nodes=300, num_edges=4000, num_features=20, num_classes=3), seed=1)
    splits = [Split.proportional(graph, seed) for seed in (0, 1)]
    z = torch.randn(2, 300, 5, generator=torch.Generator().manual_seed(0))
    clock = torch.tensor([0])

    def values(z: Tensor, runs: list[int]) -> Tensor:
        target = secret_target(secret, graph, [splits[run] for run in runs], "all", CPU)
        examples, projections, known = (Noise(runs, name, 1, clock) for name in ("e", "p", "t"))
        return probe(target, z, target.train(known), target.val, Draws(examples, projections))

    together = values(z, [0, 1])
    for run in (0, 1):
        assert float(values(z[run], [run])) == pytest.approx(float(together[run]), abs=0.02)
