"""Pairs scored block by block give what they give all at once, and so do their gradients."""

import pytest
import torch
from torch import Tensor, nn

from graphveil.models import blocks
from graphveil.models.blocks import ends, in_blocks, score_in_blocks
from graphveil.models.heads import Bilinear, FermiDirac, PairMLP
from graphveil.models.stack import stack

NODES, CHANNELS, PAIRS = 9, 4, 23


@pytest.fixture(params=[FermiDirac, PairMLP])
def kind(request: pytest.FixtureRequest) -> type[nn.Module]:
    chosen: type[nn.Module] = request.param
    return chosen


def problem(kind: type[nn.Module], runs: int) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    head = stack([kind(CHANNELS) for _ in range(runs)]).double()
    lead = () if runs == 1 else (runs,)
    z = torch.randn(*lead, NODES, CHANNELS, dtype=torch.double, requires_grad=True)
    first_row = torch.arange(runs).view(*lead, 1) * NODES
    return head, z, torch.randint(NODES, (2, *lead, PAIRS)) + first_row


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("width", [1, 7, 23, 100])
def test_blocks_change_nothing(kind: type[nn.Module], runs: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(blocks.PAIRS_AT_ONCE, "cpu", width * runs)
    head, z, pairs = problem(kind, runs)
    weights = torch.randn(*pairs.shape[1:], dtype=torch.double)
    wanted = [z, *head.parameters()]
    whole = head(*ends(z, pairs))
    in_parts = score_in_blocks(head, z, pairs)
    torch.testing.assert_close(in_parts, whole)
    expected = torch.autograd.grad((whole * weights).sum(), wanted)
    found = torch.autograd.grad((in_parts * weights).sum(), wanted)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_only_needed_gradients_are_computed(kind: type[nn.Module], monkeypatch: pytest.MonkeyPatch) -> None:
    """The adversary learns from a detached z; the encoder's gradient leaves the adversary alone."""
    monkeypatch.setitem(blocks.PAIRS_AT_ONCE, "cpu", 5)
    head, z, pairs = problem(kind, 1)
    expected = torch.autograd.grad(head(*ends(z, pairs)).sum(), [z, *head.parameters()])
    score_in_blocks(head, z.detach(), pairs).sum().backward()
    for parameter, gradient in zip(head.parameters(), expected[1:], strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    (alone,) = torch.autograd.grad(score_in_blocks(head, z, pairs).sum(), z)
    torch.testing.assert_close(alone, expected[0])


def test_blocks_are_for_many_pairs_and_heads_that_look_at_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = torch.zeros(2, 3, 4, dtype=torch.long)
    monkeypatch.setitem(blocks.PAIRS_AT_ONCE, "cpu", 11)
    assert in_blocks(FermiDirac(2), pairs)
    assert not in_blocks(Bilinear(2), pairs), "it has a way of its own"
    monkeypatch.setitem(blocks.PAIRS_AT_ONCE, "cpu", 12)
    assert not in_blocks(FermiDirac(2), pairs)
