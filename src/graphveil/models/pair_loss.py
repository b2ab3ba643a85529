"""The cross-entropy of link predictors with its gradient, for a CPU; other code has the reference.

Slopes of the loss are computed together with the loss, so no probabilities are stored for the backward pass.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphveil import kernels
from graphveil.models import lorentz
from graphveil.models.heads import FermiDirac
from graphveil.models.sparse import Pattern


def logistic_loss(logits: Tensor, num_links: int) -> Tensor:
    """Return the mean of -log q(y) over pairs, (...), differentiable in the logits.

    Args:
        logits: (..., n), those of links first.
        num_links: The number of links of each run.
    """
    loss: Tensor = _LogisticLoss.apply(logits, num_links)  # type: ignore[no-untyped-call]
    return loss


def bilinear_loss(z: Tensor, phi: Tensor, bias: Tensor, links: Pattern, nonlinks: Pattern) -> Tensor:
    """Return the mean of -log q(y) over pairs, (...), where the logit of a pair is z_u' phi z_v + bias.

    With the slope of the loss at a pair as the entry D_uv = D_vu of a matrix, the gradient at z is (D z) phi, and that
    at phi is z' (D z) / 2. So D z is the only product with the pairs.

    Args:
        z: (..., nodes, channels).
        phi: Symmetric matrices, (..., channels, channels).
        bias: (...).
        links: The links, as pairs of rows of z, which are numbered through all runs.
        nonlinks: The non-links, likewise.
    """
    loss: Tensor = _BilinearLoss.apply(z, phi, bias, links, nonlinks)  # type: ignore[no-untyped-call]
    return loss


def distance_loss(z: Tensor, head: FermiDirac, links: Pattern, nonlinks: Pattern) -> Tensor:
    """Return the mean of -log q(y) over pairs, (...), of logits (radius - d^2) / temperature; see `bilinear_loss`."""
    c = head.curvature()
    norm = lorentz.norm(z)
    radii = (c.sqrt()[..., None, None] * norm).clamp(max=lorentz.MAX_RADIUS)
    of_run = torch.stack([head.radius, head.temperature(), c], dim=-1)
    loss: Tensor = _DistanceLoss.apply(z / norm, radii, of_run, links, nonlinks)  # type: ignore[no-untyped-call]
    return loss


class _LogisticLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, num_links: int) -> Tensor:
        loss, slopes = _loss_and_slopes(logits, num_links)
        ctx.save_for_backward(slopes)
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (slopes,) = ctx.saved_tensors
        return slopes * gradient[..., None], None


class _BilinearLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, phi: Tensor, bias: Tensor, links: Pattern, nonlinks: Pattern) -> Tensor:
        rows, runs = z[..., 0].numel(), bias.numel()
        left, right = (z @ phi).view(rows, -1), z.contiguous().view(rows, -1)
        total, sums = torch.zeros_like(right), torch.zeros(rows, 2, dtype=torch.float64)
        given = left.numpy(), right.numpy(), bias.reshape(runs).contiguous().numpy(), rows // runs
        share = _sum_over_pairs(kernels.bilinear.pair_losses, links, nonlinks, runs, given, (total, sums))
        loss, d_bias = (sums.view(*bias.shape, -1, 2).sum(dim=-2) / 2).to(z.dtype).unbind(dim=-1)
        ctx.save_for_backward(z, phi, total.view(z.shape), d_bias)
        return loss * share

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None, None]:
        z, phi, total, d_bias = ctx.saved_tensors
        scale = gradient[..., None, None]
        d_z = total @ (phi * scale) if ctx.needs_input_grad[0] else None
        return d_z, (z.mT @ total) * (scale / 2), d_bias * gradient, None, None


class _DistanceLoss(torch.autograd.Function):
    """The loss of (..., nodes, channels) unit vectors and (..., nodes, 1) radii; `of_run` is (..., 3)."""

    @staticmethod
    def forward(ctx: Any, units: Tensor, radii: Tensor, of_run: Tensor, links: Pattern, nonlinks: Pattern) -> Tensor:
        rows, runs = units[..., 0].numel(), of_run[..., 0].numel()
        exp = (radii / 2).exp()
        polar = torch.cat([radii.sinh(), radii.cosh(), exp, 1 / exp], dim=-1).view(rows, 4)
        d_units, d_radii = torch.zeros(rows, units.size(-1)), torch.zeros(rows)
        sums = torch.zeros(rows, 3, dtype=torch.float64)
        given = (
            units.reshape(rows, -1).numpy(),
            polar.numpy(),
            of_run.reshape(runs, 3).contiguous().numpy(),
            rows // runs,
        )
        made = d_units, d_radii, sums
        share = _sum_over_pairs(kernels.distances.pair_losses, links, nonlinks, runs, given, made)
        loss, slope, weighted = (sums.view(*of_run.shape[:-1], -1, 3).sum(dim=-2) / 2).to(units.dtype).unbind(dim=-1)
        radius, temperature, c = of_run.unbind(dim=-1)
        d_square = radius * slope - temperature * weighted  # the sum of slopes times squared distances
        d_of_run = torch.stack([slope / temperature, -weighted / temperature, d_square / (temperature * c)], dim=-1)
        ctx.save_for_backward(d_units.view(units.shape), d_radii.view(radii.shape), d_of_run)
        return loss * share

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        d_units, d_radii, d_of_run = ctx.saved_tensors
        of_nodes = gradient[..., None, None]
        return d_units * of_nodes, d_radii * of_nodes, d_of_run * gradient[..., None], None, None


def _sum_over_pairs(
    loop: Callable[..., None],
    links: Pattern,
    nonlinks: Pattern,
    runs: int,
    given: Sequence[Any],
    made: Sequence[Tensor],
) -> float:
    """Run a loop over all pairs from both of their ends, and return the weight of a pair.

    What the loop adds to a node, it sees in the node's row, so no two threads write to one place. Sums over pairs count
    each pair twice.
    """
    share = np.float32(runs / (links.col.numel() + nonlinks.col.numel()))
    for sign, part in ((-1, links), (1, nonlinks)):
        for one_way in (part, part.transposed):
            crow, col = one_way.crow.numpy(), one_way.col.numpy()
            arguments = crow, col, one_way.longest_row, np.float32(sign), share, *given, *(x.numpy() for x in made)
            kernels.compiling.over_rows(crow, loop, *arguments)
    return float(share)


def _loss_and_slopes(logits: Tensor, num_links: int) -> tuple[Tensor, Tensor]:
    """The mean loss, (...), and its gradient at the logits, (..., n)."""
    logits = logits.contiguous()
    slopes, count = torch.empty_like(logits), logits.size(-1)
    losses = np.zeros(logits.numel() // count)
    runs = zip(logits.numpy().reshape(-1, count), slopes.numpy().reshape(-1, count), strict=True)
    for run, (of_run, slopes_of_run) in enumerate(runs):
        for sign, part in ((-1, slice(0, num_links)), (1, slice(num_links, count))):
            losses[run] += _part(of_run[part], sign, 1 / count, slopes_of_run[part])
    return torch.from_numpy(losses / count).to(logits.dtype).view(logits.shape[:-1]), slopes


def _part(logits: np.ndarray, sign: int, share: float, slopes: np.ndarray) -> float:
    """The sum of log(1 + e^(sign * logit)); writes share times its slopes."""
    sums = np.empty(-(-len(logits) // kernels.elements.LOGITS))
    arguments = logits, np.float32(sign), np.float32(share), sums, slopes
    kernels.compiling.over(len(sums), len(logits), kernels.elements.logistic_loss, *arguments)
    return float(sums.sum())
