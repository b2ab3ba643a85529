"""Drawing pairs of nodes that are *not* linked, in time and memory linear in the links.

A set of pairs is a sorted vector of codes (`encode_pairs`), so membership of many pairs is one `searchsorted`.
Nothing here is N x N: pairs are drawn and thrown back, and only a graph in which almost everything is linked is
listed out, which then costs no more than its links.
"""

import torch
from torch import Tensor

from graphveil.data.graph import decode_pairs
from graphveil.errors import GraphveilError


def contains(codes: Tensor, query: Tensor) -> Tensor:
    """Which of `query` are in the ascending vector `codes`."""
    if codes.numel() == 0:
        return torch.zeros_like(query, dtype=torch.bool)
    position = torch.searchsorted(codes, query).clamp_(max=codes.numel() - 1)
    return codes[position] == query


def draw_nonlinks(count: int, taken: Tensor, num_nodes: int, generator: torch.Generator) -> Tensor:
    """Draw `count` unordered pairs u < v uniformly, with repeats, that are not in `taken`: (2, count).

    Args:
        taken: ascending codes of the pairs that must not come out (links, held-out pairs), on the
            generator's device.
    """
    free = _free_pairs(min(count, 1), taken, num_nodes)
    if free <= taken.numel():
        everything = _all_free(taken, num_nodes)
        choice = torch.randint(free, (count,), generator=generator, device=generator.device)
        return decode_pairs(everything[choice], num_nodes)
    drawn = _draw(count, num_nodes, generator)
    clash = contains(taken, drawn)
    while bool(clash.any()):
        drawn[clash] = _draw(int(clash.sum()), num_nodes, generator)
        clash = contains(taken, drawn)
    return decode_pairs(drawn, num_nodes)


def distinct_nonlinks(count: int, taken: Tensor, num_nodes: int, generator: torch.Generator) -> Tensor:
    """As `draw_nonlinks`, without repeats: a uniformly drawn set of `count` pairs, in random order."""
    free = _free_pairs(count, taken, num_nodes)
    if free <= taken.numel() + 2 * count:
        everything = _all_free(taken, num_nodes)
        choice = torch.randperm(free, generator=generator, device=generator.device)[:count]
        return decode_pairs(everything[choice], num_nodes)
    kept = torch.empty(0, dtype=torch.long, device=generator.device)
    while kept.numel() < count:
        drawn = _draw(count - kept.numel(), num_nodes, generator)
        kept = torch.unique(torch.cat([kept, drawn[~contains(taken, drawn)]]))
    order = torch.randperm(count, generator=generator, device=generator.device)
    return decode_pairs(kept[order], num_nodes)


def _draw(count: int, num_nodes: int, generator: torch.Generator) -> Tensor:
    """Codes of `count` uniform unordered pairs of different nodes."""
    u = torch.randint(num_nodes, (count,), generator=generator, device=generator.device)
    v = torch.randint(num_nodes - 1, (count,), generator=generator, device=generator.device)
    v += v >= u  # skips u itself, so that every other node is equally likely
    return torch.minimum(u, v) * num_nodes + torch.maximum(u, v)


def _free_pairs(needed: int, taken: Tensor, num_nodes: int) -> int:
    """How many pairs are not taken; refused when fewer than `needed`."""
    free = num_nodes * (num_nodes - 1) // 2 - taken.numel()
    if free < needed:
        raise GraphveilError(
            f"the graph is too dense: {needed} pairs of nodes without a link are needed and {free} are left"
            f" among {num_nodes} nodes. Links cannot be told from non-links here; use a sparser graph."
        )
    return free


def _all_free(taken: Tensor, num_nodes: int) -> Tensor:
    """All codes outside `taken`; called only when they are not many more than the taken ones."""
    u, v = torch.triu_indices(num_nodes, num_nodes, offset=1, device=taken.device)
    codes: Tensor = u * num_nodes + v
    return codes[~contains(taken, codes)]
