"""Convert rows of two nodes each to simple, undirected links, with notes about what was dropped."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphveil.data.graph import decode_pairs, encode_pairs
from graphveil.data.origin import ReadOptions
from graphveil.data.sentences import plural
from graphveil.errors import GraphveilError


@dataclass(frozen=True)
class Links:
    """Rows of links as the source has them.

    Args:
        ends: Numbers of nodes, (2, rows).
        place: Where a row is in its source, for messages.
        weights: (rows,), if the links have weights.
        directed: Whether a row is a link in one direction; else in both.
    """

    ends: Tensor
    place: Callable[[int], str]
    weights: NDArray[np.float64] | None = None
    directed: bool = True


def simple_links(links: Links, reading: ReadOptions, notes: list[str]) -> Tensor:
    """Return each link once, (2, links) with u < v in ascending order; what is dropped is added to `notes`."""
    rows = links.ends.size(1)
    links = _heavy(links, reading, notes)
    ends = links.ends
    loop = ends[0] == ends[1]
    if count := int(loop.sum()):
        if reading.loops == "refuse":
            raise GraphveilError(f"{_first(links, loop)}, links a node to itself {_among(count)}, or use --loops drop.")
        notes.append(f"{plural(count, 'self-loop')} dropped.")
        links = _chosen(links, np.flatnonzero(~loop.numpy()))
        ends = links.ends
    codes = encode_pairs(torch.stack([torch.minimum(*ends), torch.maximum(*ends)]))
    codes = (2 * codes + (ends[0] > ends[1])).sort(stable=True).values
    codes = _distinct(codes)
    if count := ends.size(1) - codes.numel():
        if reading.duplicates == "refuse":
            raise GraphveilError(
                f"{links.place(_first_repeated(ends))}, repeats a link {_among(count)}, or use --duplicates drop."
            )
        notes.append(f"{plural(count, 'duplicate link')} dropped.")
    pairs = codes // 2
    both = torch.zeros_like(pairs, dtype=torch.bool)
    both[1:] = pairs[1:] == pairs[:-1]
    pairs = _directions(pairs, both, links, reading, notes)
    notes.append(f"{plural(pairs.numel(), 'link')} from {plural(rows, 'row')}.")
    return decode_pairs(pairs)


def _heavy(links: Links, reading: ReadOptions, notes: list[str]) -> Links:
    """The links with at least the minimum weight."""
    if reading.min_weight is None:
        if links.weights is not None and (links.weights != 1).any():
            notes.append("Link weights are used only with --min-weight.")
        return links
    if links.weights is None:
        raise GraphveilError(
            "--min-weight was given, but the links have no weight: name the column of weights with --weight."
        )
    unknown = np.isnan(links.weights)
    if unknown.any():
        raise GraphveilError(f"{links.place(int(unknown.argmax()))}, has a link without a weight: add the weight.")
    heavy = np.flatnonzero(links.weights >= reading.min_weight)
    if count := len(links.weights) - len(heavy):
        notes.append(f"{plural(count, 'link')} with a weight below {reading.min_weight:g} dropped.")
    return _chosen(links, heavy)


def _among(count: int) -> str:
    return "(the only such row): remove it" if count == 1 else f"(one of {count:,} such rows): remove them"


def _chosen(links: Links, rows: NDArray[np.int64]) -> Links:
    return replace(links, ends=links.ends[:, torch.from_numpy(rows)], place=lambda row: links.place(int(rows[row])))


def _directions(pairs: Tensor, both: Tensor, links: Links, reading: ReadOptions, notes: list[str]) -> Tensor:
    """The pairs of links: those in at least one direction, or only those in both."""
    count, distinct = int(both.sum()), pairs[~both]
    if reading.direction == "mutual" and links.directed:
        if one_way := distinct.numel() - count:
            notes.append(f"{plural(one_way, 'link')} in one direction only dropped.")
        return pairs[both]
    if count:
        verb = "exists in both directions and counts" if count == 1 else "exist in both directions and count"
        notes.append(f"{plural(count, 'link')} {verb} once.")
    elif links.directed and distinct.numel():
        notes.append("Each link exists in one direction and counts as undirected.")
    return distinct


def _distinct(codes: Tensor) -> Tensor:
    new = torch.ones_like(codes, dtype=torch.bool)
    new[1:] = codes[1:] != codes[:-1]
    return codes[new]


def _first(links: Links, rows: Tensor) -> str:
    return links.place(int(rows.long().argmax()))


def _first_repeated(ends: Tensor) -> int:
    """The first row that repeats an earlier one."""
    _, codes = torch.unique(ends, dim=1, return_inverse=True)
    order = codes.argsort(stable=True)
    again = codes[order][1:] == codes[order][:-1]
    return int(order[1:][again].min())
