"""Convert rows of two nodes each to simple, undirected links, with notes about what was dropped."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphveil.data.graph import decode_both_directions, encode_pairs
from graphveil.data.origin import ReadOptions
from graphveil.data.sentences import plural
from graphveil.errors import GraphveilError

Block = tuple[Tensor, NDArray[np.float64] | None]
"""Ends of links as numbers of nodes, (2, rows), and their weights, (rows,), if they have any."""
ROWS = 2**20
"""Rows of a block of links that are in memory already."""


@dataclass(frozen=True)
class Links:
    """Rows of links as the source has them, in memory.

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

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.ends.size(1)

    def blocks(self) -> Iterator[Block]:
        """The rows, block by block."""
        for start in range(0, self.rows, ROWS):
            part = slice(start, start + ROWS)
            yield self.ends[:, part], None if self.weights is None else self.weights[part]


@dataclass(frozen=True)
class LinkStream:
    """Rows of links as the source has them, which are read block by block.

    Args:
        rows: The number of rows.
        blocks: A function that reads all rows; it may be called again.
        place: Where a row is in its source, for messages.
        directed: Whether a row is a link in one direction; else in both.
    """

    rows: int
    blocks: Callable[[], Iterator[Block]]
    place: Callable[[int], str]
    directed: bool = True


def simple_links(links: Links | LinkStream, reading: ReadOptions, notes: list[str]) -> Tensor:
    """Return each link in both directions, (2, 2 * links), as `both_directions` does; what is dropped is noted.

    The rows are read once. Of each link that is kept, only one number is in memory until all are known.
    """
    dropped = _Dropped()
    codes = torch.empty(links.rows, dtype=torch.long)
    count = 0
    for _, ends in _kept(links, reading, dropped):
        codes[count : count + ends.size(1)] = _directed_codes(ends)
        count += ends.size(1)
    _check_dropped(dropped, links, reading, notes)
    codes = codes[:count]
    codes.numpy().sort()
    codes = _distinct(codes)
    if repeated := count - codes.numel():
        if reading.duplicates == "refuse":
            row = _first_repeated(links, reading)
            raise GraphveilError(f"{links.place(row)}, repeats a link {_among(repeated)}, or use --duplicates drop.")
        notes.append(f"{plural(repeated, 'duplicate link')} dropped.")
    pairs = codes.bitwise_right_shift_(1)
    both = torch.zeros_like(pairs, dtype=torch.bool)
    both[1:] = pairs[1:] == pairs[:-1]
    pairs = _directions(pairs, both, links, reading, notes)
    notes.append(f"{plural(pairs.numel(), 'link')} from {plural(links.rows, 'row')}.")
    return decode_both_directions(pairs)


@dataclass
class _Dropped:
    """How many rows were not kept, and the first row of each kind."""

    light: int = 0
    loops: int = 0
    first_loop: int | None = None
    first_without_weight: int | None = None
    weighted: bool = False
    has_weights: bool = False


def _kept(links: Links | LinkStream, reading: ReadOptions, dropped: _Dropped) -> Iterator[tuple[NDArray[Any], Tensor]]:
    """The rows that are heavy enough and no self-loops, block by block: their numbers (n,), and their ends (2, n)."""
    start = 0
    for ends, weights in links.blocks():
        rows = np.arange(start, start + ends.size(1))
        start += ends.size(1)
        if weights is not None:
            dropped.has_weights = True
            dropped.weighted = dropped.weighted or bool((weights != 1).any())
            if reading.min_weight is not None:
                unknown = np.isnan(weights)
                if unknown.any() and dropped.first_without_weight is None:
                    dropped.first_without_weight = int(rows[unknown.argmax()])
                heavy = np.flatnonzero(weights >= reading.min_weight)
                dropped.light += len(rows) - len(heavy)
                rows, ends = rows[heavy], ends[:, torch.from_numpy(heavy)]  # noqa: PLW2901 - what is kept of it
        loop = ends[0] == ends[1]
        if count := int(loop.sum()):
            if dropped.first_loop is None:
                dropped.first_loop = int(rows[int(loop.long().argmax())])
            dropped.loops += count
            rows, ends = rows[~loop.numpy()], ends[:, ~loop]  # noqa: PLW2901
        yield rows, ends


def _check_dropped(dropped: _Dropped, links: Links | LinkStream, reading: ReadOptions, notes: list[str]) -> None:
    """Note what was not kept, or refuse it."""
    if reading.min_weight is None:
        if dropped.weighted:
            notes.append("Link weights are used only with --min-weight.")
    elif not dropped.has_weights and links.rows:
        raise GraphveilError(
            "--min-weight was given, but the links have no weight: name the column of weights with --weight."
        )
    if dropped.first_without_weight is not None:
        where = links.place(dropped.first_without_weight)
        raise GraphveilError(f"{where}, has a link without a weight: add the weight.")
    if dropped.light:
        light = plural(dropped.light, "link")
        notes.append(f"{light} with a weight below {reading.min_weight:g} dropped.")
    if dropped.first_loop is not None:
        if reading.loops == "refuse":
            where, among = links.place(dropped.first_loop), _among(dropped.loops)
            raise GraphveilError(f"{where}, links a node to itself {among}, or use --loops drop.")
        notes.append(f"{plural(dropped.loops, 'self-loop')} dropped.")


def _among(count: int) -> str:
    return "(the only such row): remove it" if count == 1 else f"(one of {count:,} such rows): remove them"


def _directions(
    pairs: Tensor, both: Tensor, links: Links | LinkStream, reading: ReadOptions, notes: list[str]
) -> Tensor:
    """The pairs of links: those in at least one direction, or only those in both."""
    count = int(both.sum())
    distinct = pairs[~both] if count else pairs
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


def _directed_codes(ends: Tensor) -> Tensor:
    """A number for each link, (n,): twice the code of its pair, plus its direction."""
    return 2 * encode_pairs(torch.stack([torch.minimum(*ends), torch.maximum(*ends)])) + (ends[0] > ends[1])


def _distinct(codes: Tensor) -> Tensor:
    """The distinct ones of ascending codes; the same tensor if all are."""
    new = torch.ones_like(codes, dtype=torch.bool)
    new[1:] = codes[1:] != codes[:-1]
    return codes if new.all() else codes[new]


def _first_repeated(links: Links | LinkStream, reading: ReadOptions) -> int:
    """The first row that repeats an earlier one."""
    rows, codes = zip(*((rows, _directed_codes(ends)) for rows, ends in _kept(links, reading, _Dropped())), strict=True)
    row, code = np.concatenate(rows), torch.cat(codes)
    order = code.argsort(stable=True)
    again = code[order][1:] == code[order][:-1]
    return int(row[order[1:][again].numpy()].min())
