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
        return x @ self.weight if isinstance(x, SparseMatrix) else times(x, self.weight)

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
        noise: where a training draws from; without it, torch's global generator.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.noise: Noise | None = None

    def forward(self, x: AnyFeatures) -> AnyFeatures:
        if not self.training or self.p == 0:
            return x
        return x.with_values(self._drop(x.values)) if isinstance(x, SparseMatrix) else self._drop(x)

    def _drop(self, x: Tensor) -> Tensor:
        if self.noise is None:
            return F.dropout(x, self.p)
        keep = self.noise.coins(1 - self.p, x.numel() // self.noise.runs).view(x.shape)
        return x * keep.to(x.dtype).div_(1 - self.p)


def times(x: Tensor, weight: Tensor) -> Tensor:
    """x W for few channels and many rows, (..., n, in) @ (..., in, out)."""
    if weight.dim() == 2 or not x.is_cuda:
        return x @ weight
    product: Tensor = _TallProduct.apply(x, weight)  # type: ignore[no-untyped-call]
    return product


class _TallProduct(torch.autograd.Function):
    """A batch of products whose weight gradient x' g is summed in blocks of rows.

    cuBLAS gives each small (in, out) result of a batch to one block of threads, which then walks down all the rows
    alone: on ten runs of Pubmed that was three fifths of a round.
    """

    ROWS = 512

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor]:
        x, weight = ctx.saved_tensors
        rows, even = _TallProduct.ROWS, x.size(1) - x.size(1) % _TallProduct.ROWS
        d_weight = x[:, even:].mT @ gradient[:, even:]
        if even:
            blocks = [part[:, :even].unflatten(1, (-1, rows)) for part in (x, gradient)]
            d_weight = d_weight + (blocks[0].mT @ blocks[1]).sum(dim=1)
        return gradient @ weight.mT if ctx.needs_input_grad[0] else None, d_weight
