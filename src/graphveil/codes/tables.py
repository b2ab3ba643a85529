"""Exact count tables of a discrete release: nodes by code and class, links and node pairs by two codes.

Every table of links follows one convention, that of an adjacency matrix: a link {u, v} is counted in both directions.
It adds one to cell (a, b) and one to cell (b, a), where a and b are the codes of its ends, and two to cell (a, a) if
both ends have code a. Such a table is symmetric, its sum is twice the number of links, and merging two codes adds their
rows and their columns. `unordered` returns each unordered pair of codes once, with the number of links itself.

No function needs time or memory quadratic in the number of nodes. Counts are int64: at 10^8 nodes, twice the number of
node pairs is 10^16, far below the largest int64, and the number of node pairs is still exact as a float64.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphveil.errors import GraphveilError

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def distinct_codes(z: NDArray[Any]) -> tuple[Integers, Integers]:
    """Number the distinct rows of an array in order of first occurrence.

    Rows are compared byte by byte, so two rows share a code only if they are identical: 0.0 and -0.0 differ.

    Args:
        z: (n, d), of any type with a fixed size.

    Returns:
        The code of each row, (n,), and the first row with each code, (codes,).
    """
    rows = np.ascontiguousarray(z)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise GraphveilError(f"z has shape {rows.shape}: expected one row per node and at least one column.")
    row_bytes = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, inverse = np.unique(row_bytes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[inverse.ravel()].astype(np.int64), first[order].astype(np.int64)


def joint(first: Integers, second: Integers) -> Integers:
    """The pair of two codes as one code, (n,): what two releases of the same nodes show together.

    Args:
        first: codes of one release, (n,).
        second: codes of another release, (n,), with the nodes in the same order.

    Returns:
        Codes from 0, (n,), one for each pair of codes that occurs.
    """
    if first.shape != second.shape:
        raise GraphveilError(
            f"the releases have {len(first):,} and {len(second):,} codes: expected the same nodes in the same order."
        )
    _, inverse = np.unique(first * (second.max(initial=0) + 1) + second, return_inverse=True)
    return inverse.ravel().astype(np.int64)


def code_sizes(codes: Integers, num_codes: int) -> Integers:
    """The number of nodes with each code, (num_codes,).

    Args:
        codes: (n,).
        num_codes: the number of codes.
    """
    _check_range("codes", codes, 0, num_codes)
    return np.bincount(codes, minlength=num_codes).astype(np.int64)


def class_table(codes: Integers, y: Integers, num_codes: int, num_classes: int) -> Integers:
    """The number of nodes with each code and class, (num_codes, num_classes).

    Args:
        codes: (n,).
        y: classes, (n,); nodes with an unknown class (-1) are left out.
        num_codes: the number of codes.
        num_classes: the number of classes.
    """
    _check_range("codes", codes, 0, num_codes)
    _check_range("classes", y, -1, num_classes)
    known = y >= 0
    cells = np.bincount(codes[known] * num_classes + y[known], minlength=num_codes * num_classes)
    return cells.reshape(num_codes, num_classes).astype(np.int64)


def link_table(codes: Integers, pairs: Integers, num_codes: int) -> Integers:
    """The number of links by the codes of their ends, (num_codes, num_codes), counted in both directions.

    Args:
        codes: (n,).
        pairs: (2, links), each undirected link once.
        num_codes: the number of codes.
    """
    _check_range("codes", codes, 0, num_codes)
    one, other = codes[pairs]
    cells = np.bincount(one * num_codes + other, minlength=num_codes**2).reshape(num_codes, num_codes)
    return (cells + cells.T).astype(np.int64)


def pair_table(codes: Integers, num_codes: int) -> Integers:
    """The number of node pairs by two codes, (num_codes, num_codes), in the convention of `link_table`.

    `pair_table - link_table` is the table of the non-links.

    Args:
        codes: (n,).
        num_codes: the number of codes.
    """
    sizes = code_sizes(codes, num_codes)
    return np.outer(sizes, sizes) - np.diag(sizes)


def unordered(table: Integers) -> Integers:
    """A table of links or pairs with each unordered pair of codes once, (num_codes * (num_codes + 1) / 2,)."""
    once = np.triu(table)
    np.fill_diagonal(once, np.diag(table) // 2)
    return once[np.triu_indices(len(table))]


def link_cells(codes: Integers, pairs: Integers) -> tuple[Integers, Integers]:
    """The unordered pairs of codes that have links, without the M x M table.

    Args:
        codes: (n,).
        pairs: (2, links).

    Returns:
        The codes of each cell, (2, cells) with the smaller code first, and the cell of each link, (links,).
    """
    ends = codes[pairs]
    width = codes.max(initial=0) + 1
    cells, cell_of = np.unique(ends.min(axis=0) * width + ends.max(axis=0), return_inverse=True)
    return np.stack([cells // width, cells % width]), cell_of.ravel()


def cell_pairs(cells: Integers, sizes: Integers) -> Integers:
    """The number of node pairs in each unordered pair of codes, (cells,).

    Args:
        cells: the two codes of each cell, (2, cells).
        sizes: number of nodes with each code, (codes,).
    """
    one, other = cells
    counts: Integers = np.where(one == other, sizes[one] * (sizes[one] - 1) // 2, sizes[one] * sizes[other])
    return counts


def weighted_counts(index: Integers, weights: NDArray[Any], length: int = 0) -> Floats:
    """The sum of the weights at each index, (largest index + 1,) or at least `length`."""
    return np.asarray(np.bincount(index, weights=weights, minlength=length), dtype=np.float64)


def _check_range(what: str, values: Integers, lowest: int, end: int) -> None:
    if len(values) and (values.min() < lowest or values.max() >= end):
        raise GraphveilError(f"the {what} range from {values.min()} to {values.max()}: expected {lowest} to {end - 1}.")
