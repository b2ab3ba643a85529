"""Functions of the rows of a matrix x and a vector: what most of a hyperbolic layer consists of.

Whatever such a layer does to a row, except for the product with the neighbours, depends on two numbers of the row and
gives a combination of the row and the bias, so that x is read twice instead of once for every step of a formula.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphveil import kernels


def row_products(x: Tensor, vector: Tensor) -> Tensor:
    """Return <x_i, x_i> and <x_i, vector>, (..., n, 2).

    Args:
        x: (..., n, channels).
        vector: (..., 1, channels).
    """
    if kernels.usable(x, vector):
        products: Tensor = _Products.apply(x, vector)  # type: ignore[no-untyped-call]
        return products
    return torch.stack([x.square().sum(dim=-1), (x * vector).sum(dim=-1)], dim=-1)


def row_combinations(x: Tensor, vector: Tensor, factors: Tensor) -> Tensor:
    """Return a_i x_i + b_i vector, (..., n, channels).

    Args:
        x: (..., n, channels).
        vector: (..., 1, channels).
        factors: (a_i, b_i), (..., n, 2).
    """
    if kernels.usable(x, vector, factors):
        combinations: Tensor = _Combinations.apply(x, vector, factors)  # type: ignore[no-untyped-call]
        return combinations
    return factors[..., :1] * x + factors[..., 1:] * vector


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, vector: Tensor) -> Tensor:
        x, vector = x.contiguous(), vector.contiguous()
        out = x.new_empty(*x.shape[:-1], 2)
        for rows, one, of_run in _runs(x, vector, out):
            kernels.compiling.over(len(rows), rows.size, kernels.rows.products, rows, one[0], of_run)
        ctx.save_for_backward(x, vector)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, vector = ctx.saved_tensors
        d_x, sums = torch.empty_like(x), _blocks(x)
        for rows, one, g, d_rows, of_blocks in _runs(x, vector, gradient.contiguous(), d_x, sums):
            arguments = rows, one[0], g, d_rows, of_blocks
            kernels.compiling.over(len(of_blocks), rows.size, kernels.rows.products_backward, *arguments)
        return d_x, sums.sum(dim=-2, keepdim=True)


class _Combinations(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, vector: Tensor, factors: Tensor) -> Tensor:
        x, vector, factors = x.contiguous(), vector.contiguous(), factors.contiguous()
        out = torch.empty_like(x)
        for rows, one, pair, of_run in _runs(x, vector, factors, out):
            kernels.compiling.over(len(rows), rows.size, kernels.rows.combinations, rows, one[0], pair, of_run)
        ctx.save_for_backward(x, vector, factors)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, vector, factors = ctx.saved_tensors
        d_x, d_factors, sums = torch.empty_like(x), torch.empty_like(factors), _blocks(x)
        for rows, one, pair, *made in _runs(x, vector, factors, gradient.contiguous(), d_x, d_factors, sums):
            arguments = rows, one[0], pair, *made
            kernels.compiling.over(len(made[-1]), rows.size, kernels.rows.combinations_backward, *arguments)
        return d_x, sums.sum(dim=-2, keepdim=True), d_factors


def _blocks(x: Tensor) -> Tensor:
    """Room for a row of sums for each block of rows."""
    return x.new_empty(*x.shape[:-2], -(-x.size(-2) // kernels.elements.ROWS), x.size(-1))


def _runs(*tensors: Tensor) -> Iterator[tuple[np.ndarray, ...]]:
    """The matrices of each run as arrays."""
    return zip(*(x.numpy().reshape(-1, *x.shape[-2:]) for x in tensors), strict=True)
