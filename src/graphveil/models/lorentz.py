"""Hyperbolic space of curvature -c in the Lorentz model, as pure functions.

A point is stored by its spatial coordinates x; its time coordinate is sqrt(1/c + |x|^2). A tangent vector at the
origin is a plain vector; parameters and embeddings are such vectors. c is a scalar, or (runs, 1, 1) for a batch. The
formulas avoid cancellation, so that float32 is enough, except for the centroid, which is a difference of squares and is
computed in float64. Tests compare with geoopt in float64; it is not used at run time because its learnable curvature
became NaN within five steps.
"""

import math
from typing import Any

import torch
from torch import Tensor

from graphveil import kernels
from graphveil.models.rows import row_combinations, row_products
from graphveil.models.sparse import SparseMatrix

MAX_RADIUS = 12.0
"""The largest distance from the origin, in units of 1/sqrt(c); cosh(12)^2 is 7e9. At 6, HGCN lost 5 points of AUC."""

TINY = 1e-7


def time(x: Tensor, c: Tensor) -> Tensor:
    """Return the time coordinate of points x, (..., 1)."""
    return (1 / c + x.square().sum(dim=-1, keepdim=True)).sqrt()


def exp0(v: Tensor, c: Tensor) -> Tensor:
    """Map tangent vectors at the origin to points: sinh(sqrt(c)|v|) / (sqrt(c)|v|) * v."""
    return _stretch(norm(v), c) * v


def log0(x: Tensor, c: Tensor) -> Tensor:
    """Map points to tangent vectors at the origin, the inverse of `exp0`."""
    nothing = x.new_zeros(*x.shape[:-2], 1, x.size(-1))
    length = c.sqrt() * _length(row_products(x, nothing)[..., :1])
    factor = torch.asinh(length) / length
    return row_combinations(x, nothing, torch.cat([factor, torch.zeros_like(factor)], dim=-1))


def exp0_and_translate(v: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Map tangent vectors v at the origin to points x, and add a bias b to each.

    The sum is exp_x of b after parallel transport from the origin to x (HGCN, Eq. 8). This equals the Lorentz boost
    that maps the origin to x, applied to exp0(b): with X = sqrt(c) x and B = sqrt(c) exp0(b),

        (B + lift * X) / sqrt(c),     lift = <X, B> / (1 + sqrt(1 + |X|^2)) + sqrt(1 + |B|^2).

    Args:
        v: (..., n, channels).
        b: (..., 1, channels).
        c: A scalar, or (..., 1, 1).
    """
    root = c.sqrt()
    shift = root * exp0(b, c)
    of_shift = shift.square().sum(dim=-1, keepdim=True)
    square, product = row_products(v, shift).split(1, dim=-1)
    stretch = _stretch(_length(square), c)
    time = (1 + c * stretch.square() * square).sqrt()
    lift = root * stretch * product / (1 + time) + (1 + of_shift).sqrt()
    of_v = lift * stretch
    length = _length(of_shift / c + 2 / root * of_v * product + of_v.square() * square)
    inside = _inside(length, c)
    return row_combinations(v, shift, torch.cat([inside * of_v, inside / root], dim=-1))


def centroid(weights: SparseMatrix, x: Tensor, c: Tensor) -> Tensor:
    """Return the weighted Lorentz centroid of the points of each row: their weighted sum, scaled to the hyperboloid."""
    if kernels.usable(x, c, weights.values):
        centers: Tensor = _Centroid.apply(x, c, weights)  # type: ignore[no-untyped-call]
        return centers
    wide = weights.with_values(weights.values.double())
    return to_hyperboloid(wide @ ambient(x, c), c).to(x.dtype)


def ambient(x: Tensor, c: Tensor) -> Tensor:
    """Return all coordinates of points x in float64, time first: (n, 1 + d)."""
    return torch.cat([time(x.double(), c.double()), x.double()], dim=-1)


def to_hyperboloid(total: Tensor, c: Tensor) -> Tensor:
    """Scale time-like vectors (n, 1 + d), time first, to the hyperboloid; returns their spatial part (n, d)."""
    t, x = total[..., :1], total[..., 1:]
    length = t.square() - x.square().sum(dim=-1, keepdim=True)
    return x / (c * length).sqrt()


def squared_distance(u: Tensor, v: Tensor, c: Tensor) -> Tensor:
    """Return the squared distance of exp0(u) and exp0(v), (n,), from their polar coordinates.

    sinh^2(d/2) = sinh^2((r_u - r_v)/2) + sinh(r_u) sinh(r_v) |u/|u| - v/|v||^2 / 4, which avoids cancellation.
    """
    root = c.sqrt()
    norm_u, norm_v = norm(u), norm(v)
    r_u, r_v = (root * norm_u).clamp(max=MAX_RADIUS), (root * norm_v).clamp(max=MAX_RADIUS)
    chord = (u / norm_u - v / norm_v).square().sum(dim=-1, keepdim=True)
    half = torch.sinh((r_u - r_v) / 2).square() + torch.sinh(r_u) * torch.sinh(r_v) * chord / 4
    angle = torch.asinh(half.clamp(min=TINY**2).sqrt())
    return (4 * angle.square() / c).squeeze(-1)


def norm(v: Tensor) -> Tensor:
    """Return the length of vectors, (..., 1), at least `TINY`."""
    return _length(v.square().sum(dim=-1, keepdim=True))


def _length(square: Tensor) -> Tensor:
    return square.clamp(min=TINY**2).sqrt()


def _stretch(length: Tensor, c: Tensor) -> Tensor:
    """The length of exp0(v) divided by that of v, which is given."""
    radius = c.sqrt() * length
    return torch.sinh(radius.clamp(max=MAX_RADIUS)) / radius


def _inside(length: Tensor, c: Tensor) -> Tensor:
    """The factor that moves points beyond `MAX_RADIUS` back to it, along the geodesic to the origin; 1 for others."""
    return (math.sinh(MAX_RADIUS) / c.sqrt() / length).clamp(max=1)


class _Centroid(torch.autograd.Function):
    """`centroid` on a CPU, in one pass over the entries forward and one backward; see `kernels.centroids`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, c: Tensor, weights: SparseMatrix) -> Tensor:
        pattern, points, curvature = weights.pattern, x.reshape(-1, x.size(-1)), c.double().reshape(-1)
        rows, rows_per_run = pattern.shape[0], pattern.shape[0] // curvature.numel()
        times = time(x.double(), c.double()).view(-1)
        out, lengths = points.new_empty(rows, points.size(1)), times.new_empty(rows)
        crow = pattern.crow.numpy()
        given = (y.contiguous().numpy() for y in (weights.values, times, points, curvature))
        arguments = crow, pattern.col.numpy(), *given, rows_per_run, out.numpy(), lengths.numpy()
        kernels.compiling.over_rows(crow, kernels.centroids.centroids, *arguments)
        ctx.weights = weights
        ctx.save_for_backward(points, c, times, out, lengths)
        return out.view(*x.shape[:-2], -1, x.size(-1))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        points, c, times, centers, lengths = ctx.saved_tensors
        weights, (rows, channels), curvature = ctx.weights, centers.shape, c.double().reshape(-1)
        pattern, rows_per_run = weights.pattern, rows // curvature.numel()
        of_sums, d_curvature = times.new_empty(rows, 1 + channels), torch.empty_like(times)
        given = (y.contiguous().numpy() for y in (centers, lengths, gradient.reshape(rows, channels), curvature))
        arguments = *given, rows_per_run, of_sums.numpy(), d_curvature.numpy()
        kernels.compiling.over(rows, rows * channels, kernels.centroids.at_sums, *arguments)
        values = weights.values if pattern.symmetric else weights.values.index_select(0, pattern.t_order)
        crow, col, d_points = pattern.transposed.crow.numpy(), pattern.transposed.col.numpy(), torch.empty_like(points)
        given = (y.contiguous().numpy() for y in (values, of_sums, times, points, curvature))
        arguments = crow, col, *given, rows_per_run, d_points.numpy(), d_curvature.numpy()
        kernels.compiling.over_rows(crow, kernels.centroids.at_points, *arguments)
        d_c = d_curvature.view(-1, rows_per_run).sum(dim=1)
        return d_points.view_as(gradient), d_c.view_as(c).to(c.dtype), None
