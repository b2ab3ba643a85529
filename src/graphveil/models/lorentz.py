"""Hyperbolic space of curvature -c in the Lorentz model, as pure functions.

A point is stored by its spatial coordinates x; its time coordinate is sqrt(1/c + |x|^2). A tangent vector at the
origin is a plain vector; parameters and embeddings are such vectors. c is a scalar, or (runs, 1, 1) for a batch. The
formulas avoid cancellation, so that float32 is enough, except for the centroid, which is a difference of squares and is
computed in float64. Tests compare with geoopt in float64; it is not used at run time because its learnable curvature
became NaN within five steps.
"""

import math

import torch
from torch import Tensor

from graphveil.models.sparse import SparseMatrix

MAX_RADIUS = 12.0
"""The largest distance from the origin, in units of 1/sqrt(c); cosh(12)^2 is 7e9. At 6, HGCN lost 5 points of AUC."""

TINY = 1e-7


def time(x: Tensor, c: Tensor) -> Tensor:
    """Return the time coordinate of points x, (..., 1)."""
    return (1 / c + x.square().sum(dim=-1, keepdim=True)).sqrt()


def exp0(v: Tensor, c: Tensor) -> Tensor:
    """Map tangent vectors at the origin to points: sinh(sqrt(c)|v|) / (sqrt(c)|v|) * v."""
    radius = c.sqrt() * norm(v)
    inside = radius.clamp(max=MAX_RADIUS)
    return torch.sinh(inside) / radius * v


def log0(x: Tensor, c: Tensor) -> Tensor:
    """Map points to tangent vectors at the origin, the inverse of `exp0`."""
    length = c.sqrt() * norm(x)
    return torch.asinh(length) / length * x


def translate(x: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Add a bias b to points x: exp_x of b after parallel transport from the origin to x (HGCN, Eq. 8).

    This equals the Lorentz boost that maps the origin to x, applied to exp0(b).
    """
    root = c.sqrt()
    unit, shift = root * x, root * exp0(b, c)
    one = torch.ones_like(c)
    lift = (unit * shift).sum(dim=-1, keepdim=True) / (1 + time(unit, one)) + time(shift, one)
    return _inside((shift + lift * unit) / root, c)


def centroid(weights: SparseMatrix, x: Tensor, c: Tensor) -> Tensor:
    """Return the weighted Lorentz centroid of the points of each row: their weighted sum, scaled to the hyperboloid."""
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


def _inside(x: Tensor, c: Tensor) -> Tensor:
    """Move points beyond `MAX_RADIUS` back to it, along the geodesic to the origin."""
    longest = math.sinh(MAX_RADIUS) / c.sqrt()
    return x * (longest / norm(x)).clamp(max=1)


def norm(v: Tensor) -> Tensor:
    """Return the length of vectors, (..., 1), at least `TINY`."""
    return v.square().sum(dim=-1, keepdim=True).clamp(min=TINY**2).sqrt()
