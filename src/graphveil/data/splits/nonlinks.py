"""Draw pairs of nodes that are *not* linked, in time and memory linear in the number of links.

All pairs are numbered without gaps (`encode_pairs`), so a set of pairs is an ascending vector of codes. The r-th free
code is r plus the number of taken codes before it, which one `searchsorted` finds. A uniform r gives a uniform free
pair, without rejection, however dense the graph is, and without an N x N table. `TakenPairs` does the same block by
block, with no copy of the links.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphveil.data.graph import BLOCK, decode_pairs, encode_pairs
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
    rank = _distinct_ranks(count, count_free(count, taken.numel(), num_nodes), generator)
    return nth_free(rank, free_before(taken))


@dataclass(frozen=True, eq=False)
class TakenPairs:
    """The links of a graph and a few other pairs, none of which may be drawn. The links are read in blocks, in place.

    Args:
        links: (2, links) in ascending order of `encode_pairs`.
        others: ascending codes of the other pairs, (others,).
    """

    links: Tensor
    others: Tensor

    def __len__(self) -> int:
        return self.links.size(1) + self.others.numel()

    def including(self, pairs: Tensor) -> "TakenPairs":
        """These pairs and further ones, (2, n)."""
        return replace(self, others=torch.cat([self.others, encode_pairs(pairs)]).sort(stable=True).values)

    def contain(self, codes: Tensor) -> Tensor:
        """Return for each code, (n,), whether its pair is one of these."""
        found = torch.isin(codes, self.others)
        for pairs in self.links.split(BLOCK, dim=1):
            block = encode_pairs(pairs)
            found |= block[torch.searchsorted(block, codes).clamp(max=block.numel() - 1)] == codes
        return found

    def draw_nonlinks(self, count: int, num_nodes: int, generator: torch.Generator) -> Tensor:
        """Draw the pairs that `distinct_nonlinks` draws with these taken, (2, count)."""
        rank = _distinct_ranks(count, count_free(count, len(self), num_nodes), generator)
        codes, seen = rank.clone(), 0
        for block in self._blocks():
            before = free_before(block) - seen
            codes += torch.searchsorted(before, rank, right=True)
            seen += block.numel()
        return decode_pairs(codes)

    def _blocks(self) -> Iterator[Tensor]:
        """The codes of all pairs in ascending order, block by block."""
        start = 0
        for pairs in self.links.split(BLOCK, dim=1):
            block = encode_pairs(pairs)
            end = int(torch.searchsorted(self.others, block[-1:]).sum())
            yield torch.cat([block, self.others[start:end]]).sort(stable=True).values
            start = end
        yield self.others[start:]


def _distinct_ranks(count: int, free: int, generator: torch.Generator) -> Tensor:
    """Draw `count` distinct numbers below `free`, uniformly and in random order."""
    if free <= 4 * count:
        return torch.randperm(free, generator=generator)[:count]
    rank = torch.empty(0, dtype=torch.long)
    while rank.numel() < count:
        more = torch.randint(free, (count - rank.numel(),), generator=generator)
        rank = torch.unique(torch.cat([rank, more]))
    return rank[torch.randperm(count, generator=generator)]
