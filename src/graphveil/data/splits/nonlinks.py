"""Draw pairs of nodes that are *not* linked, in time and memory linear in the number of links.

All pairs are numbered without gaps (`encode_pairs`), so a set of pairs is an ascending vector of codes. The r-th free
code is r plus the number of taken codes before it, which one `searchsorted` finds. A uniform r gives a uniform free
pair, without rejection, however dense the graph is, and without an N x N table.
"""

import torch
from torch import Tensor

from graphveil.data.graph import decode_pairs
from graphveil.errors import GraphveilError


def free_before(taken: Tensor) -> Tensor:
    """Return how many free codes come before each of the ascending codes `taken`, (..., taken)."""
    return taken - torch.arange(taken.size(-1), device=taken.device)


def nth_free(rank: Tensor, before: Tensor) -> Tensor:
    """Return the pairs whose codes are the free codes of given ranks, (2, ..., n).

    Args:
        rank: (..., n), from 0.
        before: The result of `free_before`, (..., taken).
    """
    return decode_pairs(rank + torch.searchsorted(before, rank, right=True))


def count_free(needed: int, taken: int, num_nodes: int) -> int:
    """Return how many pairs are not taken; fewer than `needed` is an error."""
    free = num_nodes * (num_nodes - 1) // 2 - taken
    if free < needed:
        raise GraphveilError(
            f"the graph is too dense: {needed} non-links are needed, but {free} are left among {num_nodes} nodes."
            " Use a sparser graph."
        )
    return free


def distinct_nonlinks(count: int, taken: Tensor, num_nodes: int, generator: torch.Generator) -> Tensor:
    """Draw `count` distinct pairs u < v that are not in `taken`, uniformly and in random order: (2, count)."""
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
