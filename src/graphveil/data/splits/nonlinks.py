"""Pairs of nodes that are *not* linked, drawn in time and memory linear in the links.

All pairs are counted without a gap (`encode_pairs`), so a set of pairs is an ascending vector of codes and what is not
in it can be counted too: the r-th free code is r plus the number of taken codes before it, which one `searchsorted`
finds. A uniform r then gives a uniform free pair: nothing is thrown back, however dense the graph, and nothing is
N x N.
"""

import torch
from torch import Tensor

from graphveil.data.graph import decode_pairs
from graphveil.errors import GraphveilError


def free_before(taken: Tensor) -> Tensor:
    """How many free codes lie before each of the ascending `taken`, (..., taken)."""
    return taken - torch.arange(taken.size(-1), device=taken.device)


def nth_free(rank: Tensor, before: Tensor) -> Tensor:
    """The pairs with the free codes of rank 0, 1, ..., (2, ..., n).

    Args:
        rank: (..., n). before: what `free_before` gave, (..., taken).
    """
    return decode_pairs(rank + torch.searchsorted(before, rank, right=True))


def count_free(needed: int, taken: int, num_nodes: int) -> int:
    """How many pairs are not taken; refused when fewer than `needed`."""
    free = num_nodes * (num_nodes - 1) // 2 - taken
    if free < needed:
        raise GraphveilError(
            f"the graph is too dense: {needed} pairs of nodes without a link are needed and {free} are left"
            f" among {num_nodes} nodes. Links cannot be told from non-links here; use a sparser graph."
        )
    return free


def distinct_nonlinks(count: int, taken: Tensor, num_nodes: int, generator: torch.Generator) -> Tensor:
    """A uniformly drawn set of `count` pairs u < v that are not in `taken`, in random order: (2, count)."""
    free = count_free(count, taken.numel(), num_nodes)
    if free <= 4 * count:
        rank = torch.randperm(free, generator=generator)[:count]
    else:
        rank = torch.empty(0, dtype=torch.long)
        while rank.numel() < count:
            more = torch.randint(free, (count - rank.numel(),), generator=generator)
            rank = torch.unique(torch.cat([rank, more]))
        rank = rank[torch.randperm(count, generator=generator)]
    return nth_free(rank, free_before(taken))
