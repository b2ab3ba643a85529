"""Layers: values that are dropped and their gradients, and a batch that computes what its runs compute."""

import pytest
import torch
from torch import Tensor

from graphveil.models.layers import Affine, Dropout
from graphveil.models.stack import stack
from graphveil.randomness import Noise


@pytest.fixture
def dropout() -> Dropout:
    layer = Dropout(0.25)
    layer.noise = Noise([0], "dropout", 2, torch.tensor([0]))
    return layer


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_a_quarter_is_dropped_and_the_rest_is_scaled_as_is_its_gradient(dropout: Dropout) -> None:
    x = normal(200, 50).requires_grad_()
    out = dropout(x)
    kept = out != 0
    assert float(kept.double().mean()) == pytest.approx(0.75, abs=4 * (0.75 * 0.25 / x.numel()) ** 0.5)
    assert torch.allclose(out[kept], x[kept] / 0.75)
    out.sum().backward()
    assert x.grad is not None
    assert torch.allclose(x.grad, kept / 0.75)
    assert dropout(x).equal(out), "two calls in a step drop the same values"
    assert dropout.eval()(x) is x


def test_dropout_of_a_relu_in_one_step_is_that_in_two(dropout: Dropout) -> None:
    x, twin = (normal(40, 30).requires_grad_() for _ in range(2))
    one, two = dropout.relu(x), dropout(twin.relu())
    assert torch.allclose(one, two)
    for out in (one, two):
        (out**2).sum().backward()
    assert x.grad is not None
    assert twin.grad is not None
    assert torch.allclose(x.grad, twin.grad)


def test_a_batch_of_affine_layers_is_its_layers_one_by_one() -> None:
    layers, x = [Affine(5, 3) for _ in range(2)], normal(2, 7, 5)
    together = stack(layers)(x)
    for run, layer in enumerate(layers):
        assert torch.allclose(together[run], x[run] @ layer.weight + layer.bias, atol=1e-6)
