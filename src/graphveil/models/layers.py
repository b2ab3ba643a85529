"""The layers of encoders and heads.

Each works on (..., n, channels) with weights (..., in_channels, out_channels): without leading dimensions for one run,
with a leading dimension of runs for a batch.
"""

from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil import kernels
from graphveil.models.sparse import SparseMatrix
from graphveil.randomness import Noise, ones_of

Features = Tensor | SparseMatrix
AnyFeatures = TypeVar("AnyFeatures", Tensor, SparseMatrix)


class Linear(nn.Module):
    """x W for dense or sparse x, with Glorot's initialisation; the caller adds the bias with `shift`."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Features) -> Tensor:
        return times(x, self.weight)

    def shift_(self, h: Tensor) -> Tensor:
        """Add b to h in place."""
        return h.add_(self.bias[..., None, :])


class Affine(nn.Module):
    """x W + b, with the uniform initialisation of `nn.Linear`."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        bound = in_channels**-0.5
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(out_channels).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        if self.weight.dim() == 2:
            return torch.addmm(self.bias, x, self.weight)
        return times(x, self.weight) + self.bias[:, None, :]


class Dropout(nn.Module):
    """Dropout of dense values or of the entries of a sparse matrix.

    Args:
        p: The probability to drop a value, below 1.

    Attributes:
        noise: The random numbers of a training; two calls in a step drop the same values. None uses torch's global
            generator.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout of {p}: expected at least 0 and below 1")
        self.p = p
        self.noise: Noise | None = None

    def forward(self, x: AnyFeatures) -> AnyFeatures:
        if not self.training or self.p == 0:
            return x
        if not isinstance(x, SparseMatrix):
            return self._drop(x)
        return x.with_values(F.dropout(x.values, self.p)) if self.noise is None else x.dropped(self.noise, self.p)

    def relu(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return dropout of relu(x + bias).

        Args:
            x: (..., n, channels).
            bias: (..., channels).
        """
        noise = self.noise if self.training and self.p > 0 else None
        if noise is not None and kernels.usable(x):
            zeros = x.new_zeros(*x.shape[:-2], x.size(-1))
            return _activated(x, zeros if bias is None else bias, "relu", noise, self.p)
        shifted = x if bias is None else x + bias[..., None, :]
        if noise is None:
            relu: Tensor = self(F.relu(shifted))
            return relu
        dropped: Tensor = _DroppedRelu.apply(shifted, self._coins(x, noise), 1 / (1 - self.p))  # type: ignore[no-untyped-call]
        return dropped

    def elu(self, x: Tensor, bias: Tensor) -> Tensor:
        """Return dropout of elu(x + bias).

        Args:
            x: (..., n, channels).
            bias: (..., channels).
        """
        noise = self.noise if self.training and self.p > 0 else None
        if noise is not None and kernels.usable(x, bias):
            return _activated(x, bias, "elu", noise, self.p)
        elu: Tensor = self(F.elu(x + bias[..., None, :]))
        return elu

    def _drop(self, x: Tensor) -> Tensor:
        if self.noise is None:
            return F.dropout(x, self.p)
        dropped: Tensor = _Dropped.apply(x, self._coins(x, self.noise), 1 / (1 - self.p))  # type: ignore[no-untyped-call]
        return dropped

    def _coins(self, x: Tensor, noise: Noise) -> Tensor:
        return noise.coins(1 - self.p, x.numel() // noise.runs).view(x.shape)


class _Dropped(torch.autograd.Function):
    """scale * x * coins, with coins of 0 and 1 in two bytes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, coins: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(coins)
        ctx.scale = scale
        return (x * coins).mul_(scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (coins,) = ctx.saved_tensors
        return (gradient * coins).mul_(ctx.scale), None, None


class _DroppedRelu(torch.autograd.Function):
    """scale * relu(x) * coins. Backward needs only the output: where it is positive, the value was kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, coins: Tensor, scale: float) -> Tensor:
        out = x.clamp(min=0).mul_(coins).mul_(scale)
        ctx.save_for_backward(out)
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (out,) = ctx.saved_tensors
        kept = torch.gt(out, 0, out=torch.empty_like(out))  # into floats, since comparing into bool is much slower
        return kept.mul_(gradient).mul_(ctx.scale), None, None


def _activated(x: Tensor, bias: Tensor, activation: str, noise: Noise, p: float) -> Tensor:
    out: Tensor = _Activated.apply(x, bias, activation, noise, p)  # type: ignore[no-untyped-call]
    return out


class _Activated(torch.autograd.Function):
    """scale * activation(x + bias) * coins, in one pass forward and one backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, activation: str, noise: Noise, p: float) -> Tensor:
        x, bias = x.contiguous(), bias.contiguous()
        out = torch.empty_like(x)
        ones, scale = np.uint32(ones_of(1 - p)), np.float32(1 / (1 - p))
        ctx.coins = [(first, second, ones, scale) for first, second in noise.keys()]  # noqa: SIM118 - an array
        ctx.is_relu = activation == "relu"
        loop = kernels.elements.relu_and_drop if ctx.is_relu else kernels.elements.elu_and_drop
        of_runs = zip(_of_runs(x), bias.numpy().reshape(noise.runs, -1), ctx.coins, _of_runs(out), strict=True)
        for values, shift, coins, kept in of_runs:
            kernels.compiling.over(len(values), values.size, loop, values, shift, *coins, kept)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (out,) = ctx.saved_tensors
        d_x = torch.empty_like(out)
        blocks = -(-out.size(-2) // kernels.elements.ROWS)
        sums = out.new_empty(*out.shape[:-2], blocks, out.size(-1))
        loop = kernels.elements.relu_and_drop_backward if ctx.is_relu else kernels.elements.elu_and_drop_backward
        of_runs = zip(*(_of_runs(part) for part in (gradient.contiguous(), out, d_x, sums)), ctx.coins, strict=True)
        for g, values, d_values, of_blocks, coins in of_runs:
            settings = coins[3:] if ctx.is_relu else coins
            kernels.compiling.over(blocks, g.size, loop, g, values, *settings, d_values, of_blocks)
        return d_x, sums.sum(dim=-2), None, None, None


def _of_runs(x: Tensor) -> np.ndarray:
    """A contiguous tensor (..., n, channels) as an array (runs, n, channels)."""
    return x.numpy().reshape(-1, *x.shape[-2:])


def times(x: Features, weight: Tensor) -> Tensor:
    """Return x W, (..., n, in) @ (..., in, out), which is fast for few channels and many rows."""
    if isinstance(x, SparseMatrix) or weight.dim() == 2 or not x.is_cuda or x.size(1) < _TALL:
        return x @ weight
    product: Tensor = _TallProduct.apply(x, weight)  # type: ignore[no-untyped-call]
    return product


_TALL = 4096  # with at least so many rows, one product per run is faster than a batched product


class _TallProduct(torch.autograd.Function):
    """A batch of products whose weight gradients x' g are computed one by one.

    In a batch, cuBLAS computes each small (in, out) result with one block of threads, which goes through all rows: on
    ten runs of Pubmed that was three fifths of a round. A single product is split along the rows.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor]:
        x, weight = ctx.saved_tensors
        d_weight = torch.empty_like(weight)
        for run in range(len(weight)):
            torch.mm(x[run].t(), gradient[run], out=d_weight[run])
        return gradient @ weight.mT if ctx.needs_input_grad[0] else None, d_weight
