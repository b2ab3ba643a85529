"""Score many pairs in blocks.

A head stores dozens of numbers of each pair for the gradient; for twenty million pairs that is more memory than a
machine has. Here the numbers of a block are not stored, but computed again for the gradient.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from graphveil.models.heads import FermiDirac, PairMLP

PAIRS_AT_ONCE = {"cpu": 2**17, "cuda": 2**22}


def in_blocks(head: nn.Module, pairs: Tensor) -> bool:
    """Return whether the pairs (2, ..., n) fill more than one block, and the head scores each pair independently."""
    return type(head) in (FermiDirac, PairMLP) and pairs[0].numel() > PAIRS_AT_ONCE[pairs.device.type]


def score_in_blocks(head: nn.Module, z: Tensor, pairs: Tensor) -> Tensor:
    """Return the logits of a link head at pairs, (..., n), differentiable in z and in the parameters of the head.

    Args:
        head: The head.
        z: (..., nodes, channels).
        pairs: (2, ..., n), rows of z, which are numbered through all runs.
    """
    logits: Tensor = _ScoreInBlocks.apply(head, pairs, z, *head.parameters())  # type: ignore[no-untyped-call]
    return logits


def ends(z: Tensor, pairs: Tensor) -> tuple[Tensor, ...]:
    """Return the rows of z of both ends of the pairs, (..., n, channels) each."""
    return tuple(rows_of(z, end) for end in pairs)


def rows_of(x: Tensor, index: Tensor) -> Tensor:
    """Return rows of x (..., n, channels), (..., count, channels); `index` counts the rows of all runs."""
    return x.flatten(0, -2).index_select(0, index.flatten()).view(*index.shape, x.size(-1))


class _ScoreInBlocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, head: nn.Module, pairs: Tensor, z: Tensor, *parameters: Tensor) -> Tensor:
        ctx.head, ctx.pairs = head, pairs
        ctx.save_for_backward(z, *parameters)
        return torch.cat([head(*ends(z, pairs[..., block])) for block in _blocks(pairs)], dim=-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        z, *parameters = ctx.saved_tensors
        needed = ctx.needs_input_grad[2:]
        sums = [torch.zeros_like(tensor) for tensor in (z, *parameters)]
        d_nodes = sums[0].view(-1, z.size(-1))
        learned = [p for p, is_needed in zip(parameters, needed[1:], strict=True) if is_needed]
        d_learned = [s for s, is_needed in zip(sums[1:], needed[1:], strict=True) if is_needed]
        for block in _blocks(ctx.pairs):
            with torch.enable_grad():
                rows = [end.requires_grad_(needed[0]) for end in ends(z.detach(), ctx.pairs[..., block])]
                logits = ctx.head(*rows)
            gradients = torch.autograd.grad(logits, (rows if needed[0] else []) + learned, gradient[..., block])
            for total, more in zip(reversed(d_learned), reversed(gradients), strict=False):
                total.add_(more)
            if needed[0]:
                for end, d_row in zip(ctx.pairs[..., block], gradients, strict=False):
                    d_nodes.index_add_(0, end.flatten(), d_row.flatten(0, -2))
        return None, None, *(total if is_needed else None for total, is_needed in zip(sums, needed, strict=True))


def _blocks(pairs: Tensor) -> Iterator[slice]:
    runs = pairs[0, ..., 0].numel()
    width = max(PAIRS_AT_ONCE[pairs.device.type] // runs, 1)
    return (slice(start, start + width) for start in range(0, pairs.size(-1), width))
