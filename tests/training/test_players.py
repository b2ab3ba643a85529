"""A step of a player: the gradient of each run is clipped by its own norm."""

import pytest
import torch

from graphveil.models.layers import Affine
from graphveil.models.stack import stack
from graphveil.training.players import Player, Streams


def test_each_run_is_clipped_by_itself() -> None:
    streams = Streams([0, 1], 1, torch.device("cpu"))
    player = Player("head", stack([Affine(2, 1), Affine(2, 1)]), streams, lr=1.0, clip=5.0)
    player.optimizer = torch.optim.SGD(player.parameters, lr=1.0)
    before = [parameter.detach().clone() for parameter in player.parameters]
    for parameter in player.parameters:
        parameter.grad = torch.zeros_like(parameter)
    weight = player.parameters[0]
    assert weight.grad is not None
    weight.grad[0, :, 0], weight.grad[1, :, 0] = torch.tensor([6.0, 8.0]), torch.tensor([0.3, 0.4])
    assert player.step().tolist() == pytest.approx([10, 0.5])
    moved = before[0] - weight.detach()
    assert torch.allclose(moved[0, :, 0], torch.tensor([3.0, 4.0]), atol=1e-5), "10 is shortened to 5"
    assert torch.allclose(moved[1, :, 0], torch.tensor([0.3, 0.4]), atol=1e-5), "0.5 stays"
    assert all(parameter.grad is None for parameter in player.parameters)
