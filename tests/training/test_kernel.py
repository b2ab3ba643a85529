"""The solved reader: what it must see, what it must not, and what cannot deceive it."""

import pytest
import torch
from torch import Tensor

from graphveil.data import Split, generate
from graphveil.data.synthetic import GraphSpec
from graphveil.randomness import Noise
from graphveil.training.kernel import AT_MOST, Draws, nats, probe
from graphveil.training.targets import Examples, Links, NodeClasses, Rows, Target, auc, secret_target

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


def train(target: Target) -> Examples:
    return target.train(Noise([0], "train", 1, torch.tensor([0])))


def embedding(target: Target, secret: bool, channels: int = 6, seed: int = 0) -> Tensor:
    """Noise, with the class in a corner of it on request."""
    z = torch.randn(1500, channels, generator=torch.Generator().manual_seed(seed))
    if secret:
        for examples in (train(target), target.val, target.test):
            z[examples.index, 0] = 3 * examples.y.float() + 0.3 * z[examples.index, 0]
    return z


def test_a_planted_secret_is_found_and_noise_is_not(labels: NodeClasses) -> None:
    told, silent = (nats(labels, Rows(embedding(labels, secret), train(labels)), draws()) for secret in (True, False))
    entropy = float(-(labels.prior * labels.prior.log()).sum())
    assert told > entropy, "a secret told nearly exactly has more Gaussian nats than its entropy"
    # 262 free features would explain 262 / n of nothing, in two directions of three classes; the ridge binds most
    chance = -torch.log(torch.tensor(1 - 262 / len(train(labels).y)))
    assert 0 < silent < 0.5 * chance < 0.2 * told
    read = [probe(labels, embedding(labels, s), train(labels), labels.val, draws()) for s in (True, False)]
    assert read[0] > 0.98
    assert read[1] < float(labels.prior.max()) + 0.06


def test_a_secret_that_no_line_can_tell_is_found(labels: NodeClasses) -> None:
    """Class 0 against the others in the sign of a product of two coordinates."""
    z = torch.randn(1500, 3, generator=torch.Generator().manual_seed(3))
    for examples in (train(labels), labels.val):
        wanted = torch.where(examples.y == 0, 1.0, -1.0)
        z[examples.index, 1] = z[examples.index, 1].abs() * wanted * z[examples.index, 0].sign()
    best = float(labels.prior.max())
    assert probe(labels, z, train(labels), labels.val, draws()) > best + 0.1
    silent = nats(labels, Rows(embedding(labels, secret=False, channels=3), train(labels)), draws())
    assert nats(labels, Rows(z, train(labels)), draws()) > silent + 0.25


def test_neither_scale_nor_place_of_the_embeddings_hides_anything(labels: NodeClasses) -> None:
    z = embedding(labels, secret=True)
    plain = nats(labels, Rows(z, train(labels)), draws())
    moved = nats(labels, Rows(z * torch.tensor([1e-2, 1.0, 7.0, 1.0, 1.0, 30.0]) + 5, train(labels)), draws())
    assert moved.item() == pytest.approx(plain.item(), rel=2e-2)


def test_a_node_that_is_sent_far_away_hides_nothing(labels: NodeClasses) -> None:
    z = embedding(labels, secret=True)
    plain = nats(labels, Rows(z, train(labels)), draws())
    for distance in (1e2, 1e3, 1e4):
        far = z.clone()
        far[train(labels).index[0]] *= distance
        assert nats(labels, Rows(far, train(labels)), draws()) > 0.7 * plain
        assert probe(labels, far, train(labels), labels.val, draws()) > 0.97


def test_few_examples_do_not_make_noise_look_like_a_secret(labels: NodeClasses) -> None:
    """With 60 examples and 262 features anything could be explained, if the ridge did not grow."""
    few = Examples(train(labels).index[::8], train(labels).y[::8])
    assert few.y.numel() < 70
    entropy = float(-(labels.prior * labels.prior.log()).sum())
    told, silent = (nats(labels, Rows(embedding(labels, secret), few), draws()) for secret in (True, False))
    assert silent < entropy
    assert told > 2 * silent


def test_following_the_gradient_takes_the_secret_away(labels: NodeClasses) -> None:
    """What is hidden from this reader is hidden from the next, which looks through other projections."""
    z = embedding(labels, secret=True).requires_grad_()
    before = nats(labels, Rows(z, train(labels)), draws(1)).item()
    optimizer = torch.optim.Adam([z], lr=0.05)
    for step in range(100):
        optimizer.zero_grad()
        nats(labels, Rows(z, train(labels)), draws(0, step % 9)).backward()
        optimizer.step()
    assert nats(labels, Rows(z, train(labels)), draws(1)).item() < 0.2 * before


def test_pairs_are_read_by_how_they_lie_and_from_a_sample() -> None:
    """Linked nodes share a class in this graph, and z has the class."""
    graph = generate(GraphSpec(num_nodes=1500, num_edges=9000, num_features=20, num_classes=3), seed=1)
    links = Links([Split.proportional(graph, 0)], CPU)
    assert train(links).y.numel() > AT_MOST
    z = torch.randn(1500, 4, generator=torch.Generator().manual_seed(0))
    near = 0.5 * z
    near[:, 0] += 3 * graph.y
    told, silent = (nats(links, Rows(one, train(links)), draws()) for one in (near, z))
    assert told > 3 * silent
    same_class = (graph.y[links.val.index[0]] == graph.y[links.val.index[1]]).double()
    best = float(auc(same_class, links.val.y))
    assert probe(links, near, train(links), links.val, draws()) > best - 0.02 > 0.6
    assert 0.42 < probe(links, z, train(links), links.val, draws()) < 0.58


@pytest.mark.parametrize("secret", ["labels", "links"])
def test_a_batch_is_told_what_its_runs_are_told(secret: str) -> None:
    """Values and gradients; whole trainings are compared with an adversary, since Adam blows rounding up."""
    graph = generate(GraphSpec(num_nodes=300, num_edges=4000, num_features=20, num_classes=3), seed=1)
    splits = [Split.proportional(graph, seed) for seed in (0, 1)]
    z = torch.randn(2, 300, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    clock = torch.tensor([0])

    def told(z: Tensor, runs: list[int]) -> tuple[Tensor, Tensor, Tensor]:
        target = secret_target(secret, graph, [splits[run] for run in runs], "all", CPU)
        examples, projections, train = (Noise(runs, name, 1, clock) for name in ("e", "p", "t"))
        rows = Rows(z, target.train(train))
        value = nats(target, rows, Draws(examples, projections))
        read = probe(target, z, rows.examples, target.val, Draws(examples, projections))
        return value, read, torch.autograd.grad(value.sum(), z)[0]

    together = told(z, [0, 1])
    for run in (0, 1):
        for one, many in zip(told(z[run], [run]), together, strict=True):
            assert (one - many[run]).abs().max() < 2e-3 * many.abs().max()


def test_normal_numbers_are_normal() -> None:
    drawn = Noise([0, 1], "normal", 2, torch.tensor([1])).normal(100_001).double()
    assert drawn.shape == (2, 100_001)
    assert drawn.mean(dim=1).abs().max() < 0.015
    assert (drawn.var(dim=1) - 1).abs().max() < 0.02
    assert ((drawn.abs() < 1.959964).double().mean(dim=1) - 0.95).abs().max() < 0.004
    assert torch.corrcoef(drawn).abs()[0, 1] < 0.015, "runs draw independently"
