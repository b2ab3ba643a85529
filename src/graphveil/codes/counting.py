"""Exact counts of links by the codes of their ends, in one pass over the links, block by block.

The links may be a memory-mapped file. Besides the nodes' codes, memory holds one block of links and the cells
(unordered pairs of codes) that have links; it does not grow with the number of links otherwise. Counts are integers, so
they do not depend on the size of the blocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphveil.codes.tables import Integers
from graphveil.errors import GraphveilError

BLOCK = 2**20
"""Links in a block."""
DENSE_CELLS = 2**20
"""Up to this many pairs of codes are counted in a table; of more pairs of codes, only those that occur."""
COMPARED = 2**24
"""Links that are compared with each other at once, in search of links that occur twice."""


@dataclass(frozen=True, eq=False)
class LinkCells:
    """The number of links in each cell that has links.

    Args:
        keys: the cells in ascending order, (cells,): the smaller code times `width`, plus the larger code.
        links: the number of links in each, (cells,).
        width: more than the largest code.
    """

    keys: Integers
    links: Integers
    width: int

    @property
    def codes(self) -> Integers:
        """The two codes of each cell, (2, cells), the smaller one first."""
        return np.stack([self.keys // self.width, self.keys % self.width])

    def place(self, keys: Integers) -> Integers:
        """The places of given cells among these, (n,); all of them have links."""
        return np.searchsorted(self.keys, keys)


class CellCounter:
    """Counts blocks of links by cells.

    Args:
        codes: the code of each node, (n,), from 0.
    """

    def __init__(self, codes: Integers) -> None:
        self._codes = codes
        self._width = int(codes.max(initial=0)) + 1
        self._table = np.zeros(self._width**2 if self._width**2 <= DENSE_CELLS else 0, dtype=np.int64)
        self._parts: list[tuple[Integers, Integers]] = [(self._table[:0], self._table[:0])]
        self._waiting = 0

    def add(self, pairs: Integers) -> None:
        """Count one block of links, (2, links)."""
        keys = cell_keys(self._codes[pairs], self._width)
        if len(self._table):
            self._table += np.bincount(keys, minlength=len(self._table))
            return
        part = np.unique(keys, return_counts=True)
        self._parts.append(part)
        self._waiting += len(part[0])
        if self._waiting > max(BLOCK, 2 * len(self._parts[0][0])):  # so that each cell is merged a few times in all
            self._merge()

    def cells(self) -> LinkCells:
        """The counts of all blocks."""
        if len(self._table):
            keys = np.flatnonzero(self._table)
            return LinkCells(keys, self._table[keys], self._width)
        self._merge()
        return LinkCells(*self._parts[0], self._width)

    def _merge(self) -> None:
        keys, links = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        self._parts = [sum_by_key(keys, links)]
        self._waiting = len(self._parts[0][0])


class LinkSample:
    """The links at some columns of all links.

    Args:
        columns: columns of all links, each once, (n,).
    """

    def __init__(self, columns: Integers) -> None:
        self.pairs = np.empty((2, len(columns)), dtype=np.int64)
        self._order = np.argsort(columns)
        self._columns = columns[self._order]

    def add(self, start: int, pairs: Integers) -> None:
        """Take what is sampled of the block of links (2, links) that starts at column `start`."""
        first, end = np.searchsorted(self._columns, [start, start + pairs.shape[1]])
        self.pairs[:, self._order[first:end]] = pairs[:, self._columns[first:end] - start]


def count_cells(codes: Integers, pairs: NDArray[Any]) -> LinkCells:
    """Count links by the codes of their ends.

    Args:
        codes: (n,), from 0.
        pairs: (2, links).
    """
    counter = CellCounter(codes)
    for _, block in link_blocks(pairs):
        counter.add(block)
    return counter.cells()


def link_blocks(pairs: NDArray[Any]) -> Iterator[tuple[int, Integers]]:
    """The blocks of links (2, links), each with its first column; also of a memory-mapped array of any integer type."""
    for start in range(0, pairs.shape[1], BLOCK):
        yield start, np.asarray(pairs[:, start : start + BLOCK], dtype=np.int64)


def cell_keys(ends: Integers, width: int) -> Integers:
    """The cell of each link as `LinkCells` numbers it, (n,), from the codes of its ends, (2, n)."""
    keys: Integers = np.minimum(*ends).astype(np.int64) * width + np.maximum(*ends)
    return keys


def sum_by_key(keys: Integers, values: NDArray[Any]) -> tuple[Integers, NDArray[Any]]:
    """The distinct keys in ascending order, (distinct,), and the sum of the values of each, (distinct,)."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    return keys[first], np.add.reduceat(values[order], first) if len(first) else values[:0]


def checked_blocks(pairs: NDArray[Any], num_nodes: int) -> Iterator[tuple[int, Integers]]:
    """`link_blocks`, after a check that each link is (u, v) with u < v and occurs once.

    Whether links occur twice is known at the end: at once if the links ascend by v and then by u, as those of a graph
    do. Otherwise they are read again, several times if there are many.

    Args:
        pairs: (2, links).
        num_nodes: the number of nodes.
    """
    if pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.shape[1] == 0:
        raise GraphveilError(f"the links have shape {pairs.shape}: expected (2, links) and at least one link.")
    ascending, last = True, -1
    for start, block in link_blocks(pairs):
        if block.min() < 0 or block.max() >= num_nodes or not (block[0] < block[1]).all():
            raise GraphveilError(
                f"expected links as (u, v) with u < v among nodes 0 to {num_nodes - 1}, each link once."
            )
        numbers = block[1] * num_nodes + block[0]
        ascending = ascending and numbers[0] > last and bool((numbers[1:] > numbers[:-1]).all())
        last = int(numbers[-1])
        yield start, block
    twice = 0 if ascending else _repeated(pairs, num_nodes)
    if twice:
        raise GraphveilError(f"{twice:,} links occur twice: expected each link once.")
    if pairs.shape[1] == num_nodes * (num_nodes - 1) // 2:
        raise GraphveilError("all pairs of nodes are linked, so there is no non-link: use a sparser graph.")


def _repeated(pairs: NDArray[Any], num_nodes: int) -> int:
    """How many links occurred before; `COMPARED` links at most are in memory at once, about."""
    parts, repeated = -(-pairs.shape[1] // COMPARED), 0
    for part in range(parts):
        chosen = []
        for _, block in link_blocks(pairs):
            numbers = block[1] * num_nodes + block[0]
            chosen.append(numbers[numbers % parts == part])
        numbers = np.concatenate(chosen)
        numbers.sort()
        repeated += int((numbers[1:] == numbers[:-1]).sum())
    return repeated
