"""The layers that encoders and heads are made of.

Each works on (..., n, channels) with weights (..., in_channels, out_channels): without leading dimensions for one run,
with one of runs for a batch.
"""

from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil.models.sparse import SparseMatrix
from graphveil.randomness import Noise

Features = Tensor | SparseMatrix
AnyFeatures = TypeVar("AnyFeatures", Tensor, SparseMatrix)


class Linear(nn.Module):
    """x W for dense or sparse x, with Glorot's initialisation; the bias is the caller's to place."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Features) -> Tensor:
        return times(x, self.weight)

    def shift(self, h: Tensor) -> Tensor:
        """h + b."""
        return h + self.bias[..., None, :]


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
    """Dropout of dense values or of a sparse matrix's entries.

    Attributes:
        noise: where a training draws from, once a step: called twice in a step, it drops the same twice. Without it,
            torch's global generator.
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
        return x.with_values(self._drop(x.values)) if isinstance(x, SparseMatrix) else self._drop(x)

    def relu(self, x: Tensor) -> Tensor:
        """Dropout of relu(x)."""
        if not self.training or self.p == 0 or self.noise is None:
            dropped: Tensor = self(F.relu(x))
        else:
            dropped = _DroppedRelu.apply(x, self._coins(x, self.noise), 1 / (1 - self.p))  # type: ignore[no-untyped-call]
        return dropped

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
    """scale * relu(x) * coins, whose own sign says what was kept: nothing else is needed for the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, coins: Tensor, scale: float) -> Tensor:
        out = x.clamp(min=0).mul_(coins).mul_(scale)
        ctx.save_for_backward(out)
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (out,) = ctx.saved_tensors
        kept = torch.gt(out, 0, out=torch.empty_like(out))  # into floats: comparing into bool is far slower
        return kept.mul_(gradient).mul_(ctx.scale), None, None


def times(x: Features, weight: Tensor) -> Tensor:
    """x W for few channels and many rows, (..., n, in) @ (..., in, out)."""
    if isinstance(x, SparseMatrix) or weight.dim() == 2 or not x.is_cuda or x.size(1) < _TALL:
        return x @ weight
    product: Tensor = _TallProduct.apply(x, weight)  # type: ignore[no-untyped-call]
    return product


_TALL = 4096  # rows from which on a product of its own for each run is faster than one for all of them


class _TallProduct(torch.autograd.Function):
    """A batch of products whose weight gradients x' g are taken one by one.

    cuBLAS gives each small (in, out) result of a batch to one block of threads, which then walks down all the rows
    alone: on ten runs of Pubmed that was three fifths of a round. A product on its own it splits along the rows.
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
