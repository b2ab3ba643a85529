"""The table of linked codes equals its definition, a sum over links, and so do its gradients."""

import pytest
import torch
from torch import Tensor

from graphveil.models.codes import CodeShape, soft_codes
from graphveil.randomness import Noise
from graphveil.training import linked_codes
from graphveil.training.information import link_table
from graphveil.training.linked_codes import LinkedCodes
from graphveil.training.players import Streams

NODES, SHAPE = 40, CodeShape(groups=2, size=3)


def draws(runs: int = 1) -> Noise:
    return Streams(list(range(runs)), 10, torch.device("cpu"))("links")


def random_links(seed: int, count: int = 60) -> Tensor:
    """Links of a graph whose hubs are the first nodes, with the hub at either end."""
    generator = torch.Generator().manual_seed(seed)
    hub = torch.randint(3 + seed, (count,), generator=generator)
    other = torch.randint(3 + seed, NODES, (count,), generator=generator)
    swapped = torch.rand(count, generator=generator) < 0.5
    return torch.stack([hub.where(swapped, other), other.where(swapped, hub)])


def by_definition(logits: Tensor, links: Tensor) -> Tensor:
    source, other = (soft_codes(logits[end], SHAPE) for end in links)
    return link_table(source, other)


def gradient(table: Tensor, logits: Tensor) -> Tensor:
    """The gradient of a sum in which every cell has another weight."""
    weights = torch.arange(table.numel(), dtype=table.dtype).view_as(table)
    (result,) = torch.autograd.grad((weights * table).sum(), logits)
    return result


@pytest.mark.parametrize("known", [True, False], ids=["q of all nodes", "q of the ends"])
def test_the_table_of_one_run(known: bool) -> None:
    links = random_links(0)
    logits = torch.randn(NODES, SHAPE.channels, requires_grad=True)
    q = soft_codes(logits, SHAPE) if known else None
    table, expected = LinkedCodes(links, NODES, SHAPE, draws()).table(logits, q), by_definition(logits, links)
    assert torch.allclose(table, expected, atol=1e-7)
    assert torch.allclose(gradient(table, logits), gradient(expected, logits), atol=1e-5)


@pytest.mark.parametrize("known", [True, False], ids=["q of all nodes", "q of the ends"])
def test_the_tables_of_a_batch_whose_runs_have_different_hubs(known: bool) -> None:
    of_runs = [random_links(seed) for seed in (0, 5)]
    links = torch.stack([pairs + run * NODES for run, pairs in enumerate(of_runs)], dim=1)
    logits = torch.randn(2, NODES, SHAPE.channels, requires_grad=True)
    q = soft_codes(logits, SHAPE) if known else None
    tables = LinkedCodes(links, NODES, SHAPE, draws(2)).table(logits, q)
    expected = torch.stack([by_definition(logits[run], pairs) for run, pairs in enumerate(of_runs)])
    assert torch.allclose(tables, expected, atol=1e-7)
    assert torch.allclose(gradient(tables, logits), gradient(expected, logits), atol=1e-5)


@pytest.mark.parametrize("known", [True, False], ids=["q of all nodes", "q of the ends"])
def test_the_mean_over_samples_is_the_table_of_all_links(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked_codes, "LINKS_AT_ONCE", 20)
    links, logits = random_links(0), torch.randn(NODES, SHAPE.channels)
    q = soft_codes(logits, SHAPE) if known else None
    streams = Streams([0], 400, torch.device("cpu"))
    linked = LinkedCodes(links, NODES, SHAPE, streams("links"))
    samples = []
    for number in range(400):
        streams.clock.fill_(number)
        samples.append(linked.table(logits, q))
    assert not samples[0].equal(samples[1])
    assert torch.allclose(samples[0].sum(), torch.tensor(1.0))
    assert torch.allclose(torch.stack(samples).mean(dim=0), by_definition(logits, links), atol=0.01)
