"""The Lorentz model in float64 against geoopt's, and in float32 against itself in float64."""

import geoopt
import pytest
import torch
from torch import Tensor

from graphveil.models import lorentz
from graphveil.models.sparse import Adjacency

CURVATURES = [0.3, 1.0, 4.0]


def tangents(scale: float = 1.0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    u, v = scale * torch.randn(2, 20, 5, generator=random, dtype=torch.float64)
    return u, v


def with_zero_time(v: Tensor) -> Tensor:
    """geoopt writes a tangent vector at the origin with its time coordinate, which is 0."""
    return torch.cat([torch.zeros(*v.shape[:-1], 1, dtype=v.dtype), v], dim=-1)


@pytest.mark.parametrize("curvature", CURVATURES)
def test_maps_transport_and_distance_agree_with_geoopt(curvature: float) -> None:
    c = torch.tensor(curvature, dtype=torch.float64)
    oracle = geoopt.Lorentz(k=1 / c, learnable=False)
    u, v = tangents(0.35)  # inside MAX_RADIUS at every curvature
    x, y = lorentz.exp0(u, c), lorentz.exp0(v, c)

    point = oracle.expmap0(with_zero_time(u))
    assert torch.allclose(lorentz.ambient(x, c), point, rtol=0, atol=1e-9)
    assert torch.allclose(lorentz.log0(x, c), u, rtol=0, atol=1e-12)
    assert torch.allclose(oracle.logmap0(point)[..., 1:], lorentz.log0(x, c), rtol=0, atol=1e-6)

    distance = oracle.dist(lorentz.ambient(x, c), lorentz.ambient(y, c))
    assert torch.allclose(lorentz.squared_distance(u, v, c).sqrt(), distance, rtol=1e-7, atol=1e-7)

    carried = oracle.expmap(point, oracle.transp0(point, with_zero_time(v)))
    moved = lorentz.exp0_and_translate(u[:, None], v[:, None], c).squeeze(1)
    assert torch.allclose(lorentz.ambient(moved, c), carried, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("curvature", CURVATURES)
def test_the_centroid_minimises_the_weighted_squared_lorentz_distance(curvature: float) -> None:
    """Law et al. (2019): the centroid is the point of least sum of w * |x - m|_L^2; no neighbour of it does better."""
    c = torch.tensor(curvature, dtype=torch.float64)
    edge_index = torch.tensor([[0, 1, 0, 2], [1, 0, 2, 0]])
    adjacency = Adjacency.from_edge_index(edge_index, 3)
    weights = adjacency.normalized.with_values(adjacency.normalized.values.double())
    points = lorentz.exp0(tangents()[0][:3], c)
    centroids = lorentz.centroid(weights, points, c)

    def cost(m: Tensor) -> Tensor:
        difference = lorentz.ambient(points, c) - lorentz.ambient(m, c)[None]
        square = difference[:, 1:].square().sum(dim=1) - difference[:, 0].square()
        return (weights.to_dense()[0] * square).sum()

    least = cost(centroids[0])
    random = torch.Generator().manual_seed(0)
    for _ in range(50):
        near = centroids[0] + 1e-3 * torch.randn(5, generator=random, dtype=torch.float64)
        assert cost(near) > least


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 2.0])
def test_float32_keeps_the_distance_of_float64(scale: float) -> None:
    u, v = tangents(scale)
    c = torch.tensor(1.0)
    exact = lorentz.squared_distance(u, v, c.double())
    single = lorentz.squared_distance(u.float(), v.float(), c)
    assert torch.allclose(single.double(), exact, rtol=2e-5, atol=1e-12)


@pytest.mark.parametrize("radius", [0.1, 2.0, 4.0, lorentz.MAX_RADIUS])
def test_float32_keeps_the_centroid_of_float64_up_to_the_largest_radius(radius: float) -> None:
    u = torch.nn.functional.normalize(tangents()[0][:3], dim=1) * radius
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 1, 0, 2], [1, 0, 2, 0]]), 3)
    c = torch.tensor(1.0)
    single = lorentz.log0(lorentz.centroid(adjacency.normalized, lorentz.exp0(u.float(), c), c), c)
    weights = adjacency.normalized.with_values(adjacency.normalized.values.double())
    exact = lorentz.log0(lorentz.centroid(weights, lorentz.exp0(u, c.double()), c.double()), c.double())
    assert torch.allclose(single.double(), exact, rtol=0, atol=1e-5 * radius)


def test_points_are_kept_within_the_largest_radius() -> None:
    c = torch.tensor(2.0)
    far = lorentz.exp0_and_translate(100 * torch.ones(1, 3), 100 * torch.ones(1, 3), c)
    radius = (c.sqrt() * lorentz.log0(far, c).norm()).item()
    assert radius == pytest.approx(lorentz.MAX_RADIUS, rel=1e-5)


def test_nothing_is_infinite_far_out_or_at_the_origin() -> None:
    far = (1e6 * torch.randn(10, 4)).requires_grad_()
    same = torch.zeros(10, 4, requires_grad=True)
    c = torch.tensor(1.0, requires_grad=True)
    for v in (far, same):
        moved = lorentz.exp0_and_translate(v, torch.ones(1, 4), c)
        total = lorentz.log0(moved, c).sum() + lorentz.squared_distance(v, v.flip(0), c).sum()
        grads = torch.autograd.grad(total, (v, c))
        assert all(torch.isfinite(g).all() for g in (total, *grads))
