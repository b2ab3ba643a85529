"""Loops over the entries of sparse patterns in CSR format, and over pairs of nodes in ascending order."""

import math

import numpy as np

from graphveil.kernels.compiling import Array, Number, compiled


@compiled
def starts(ascending: Array, out: Array) -> None:
    """Write where each of 0, 1, ..., len(out) - 1 begins in an ascending vector."""
    number = 0
    for place in range(len(ascending)):
        while number < len(out) and number <= ascending[place]:
            out[number] = place
            number += 1
    while number < len(out):
        out[number] = len(ascending)
        number += 1


@compiled
def count_entries(col: Array, t_crow: Array, start: int, stop: int) -> None:
    """Write the number of entries of each column from `start` to `stop` one place after the column."""
    t_crow[start + 1 : stop + 1] = 0
    for column in col:
        if start <= column < stop:
            t_crow[np.uint64(column) + np.uint64(1)] += 1


@compiled
def transpose(crow: Array, col: Array, t_crow: Array, writes_order: bool, out: Array, start: int, stop: int) -> None:
    """Write the columns of the transpose of a pattern, or the old places of its entries, for some of its rows.

    Each thread reads all entries, and writes those of its own rows.

    Args:
        crow: (rows + 1,).
        col: (entries,).
        t_crow: (columns + 1,).
        writes_order: Whether to write places instead of columns.
        out: (entries,).
    """
    following = t_crow[start:stop].copy()
    for row in range(len(crow) - 1):
        for entry in range(crow[row], crow[row + 1]):
            column = col[entry]
            if start <= column < stop:
                place = np.uint64(column - start)
                out[np.uint64(following[place])] = entry if writes_order else row
                following[place] += 1


@compiled
def nth_free(rank: Array, before: Array, first_row: Number, row: Array, col: Array, start: int, stop: int) -> None:
    """Write the pairs col < row whose codes are the free codes of ascending ranks, for ranks from `start` to `stop`.

    Both vectors ascend, so they are merged, and the larger end of a pair only moves up.
    """
    taken, end = 0, len(before)  # how many taken codes come before the first one: by bisection
    while taken < end:
        middle = (taken + end) // 2
        if before[middle] <= rank[start]:
            taken = middle + 1
        else:
            end = middle
    v = max(int((1 + math.sqrt(1.0 + 8.0 * (rank[start] + taken))) / 2) - 1, 0)  # a large root may be rounded up
    base = v * (v - 1) // 2
    for k in range(start, stop):
        while taken < len(before) and before[taken] <= rank[k]:
            taken += 1
        code = rank[k] + taken
        while base + v <= code:
            base += v
            v += 1
        row[k] = v + first_row
        col[k] = code - base + first_row
