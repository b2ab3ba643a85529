"""Predicted classes: the temperature that makes them probabilities, and the fifth that it is chosen on."""

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.randomness import Noise
from graphveil.training.prediction import HeldOutFifth, calibration
from graphveil.training.targets import class_secret


def test_the_temperature_undoes_how_confident_the_predictions_are() -> None:
    """Classes drawn from softmax(logits), whose logits are doubled in one run and halved in the other."""
    random = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(20_000, 3, generator=random)
    y = logits.softmax(dim=-1).multinomial(1, generator=random).squeeze(1)
    found = calibration(torch.stack([2 * logits, logits / 2]).log_softmax(dim=-1), y.expand(2, -1))
    assert found.tolist() == pytest.approx([2, 0.5], rel=0.08)


def test_a_fifth_of_the_known_nodes_is_held_out(small: Data, small_split: gv.Split) -> None:
    known = class_secret("labels", small, [small_split], "all", torch.device("cpu"))
    held = HeldOutFifth(known, [0])
    train = held.train(Noise([0], "train", 1, torch.tensor([0])))
    every = known.train_examples.index
    assert held.val.index.numel() == every.numel() // 5
    assert torch.cat([train.index, held.val.index]).sort().values.equal(every.sort().values)
    assert train.y.equal(small.y[train.index])
