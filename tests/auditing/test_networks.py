"""Networks as learners: their best epoch, and a bilinear model for which the order of two nodes does not matter."""

from dataclasses import replace

import numpy as np
import torch

from graphveil.auditing.learners import Examples
from graphveil.auditing.networks import _Bilinear, untuned_mlp
from tests.auditing.made import noise


def test_the_order_of_two_nodes_does_not_matter() -> None:
    torch.manual_seed(0)
    module = _Bilinear(4)
    torch.nn.init.normal_(module.weight)
    a, b = torch.randn(2, 9, 4)
    assert torch.allclose(module(torch.cat([a, b], dim=1)), module(torch.cat([b, a], dim=1)), atol=1e-5)


def test_training_stops_after_its_patience_and_keeps_the_best_epoch() -> None:
    """On held-out rows with the other class, every epoch is worse than the first; to stop by number keeps the last."""
    x = noise(1, columns=3, nodes=60)
    y = (x[:, 0] > 0).astype(np.int64)
    network = replace(untuned_mlp(), epochs=9, patience=2)
    one, other = (network.fit(Examples(x, y), 2, network.grid[0], 0, stop) for stop in (Examples(x, 1 - y), 1))
    assert one.rounds == other.rounds == 1
    np.testing.assert_allclose(one.log_probabilities(x), other.log_probabilities(x), atol=1e-6)
