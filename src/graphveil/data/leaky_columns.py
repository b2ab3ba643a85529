"""Which single columns of the features tell a target: then the secret is in X itself, and no encoder is to blame."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from graphveil.data.degree_features import is_structural
from graphveil.data.graph import UNKNOWN, node_classes
from graphveil.data.origin import origin_of
from graphveil.randomness import generator

MOST_NODES = 50_000
"""Nodes that are looked at."""

BINS = 32
"""Equal parts that numbers are cut into, at least; where there are many classes, `BINS_PER_CLASS` for each of them."""
BINS_PER_CLASS = 8
FULL = 8
"""Nodes that make a bin worth having: what a bin says is learned from half of them."""

Codes = NDArray[np.int64]
Filled = tuple[Codes, Codes]
"""The rows of a column that are not empty, and for each the code 1, 2, ... of its value; 0 is for the others."""


def find_leaky_columns(graph: Data, target: str) -> list[tuple[str, float]]:
    """Columns of the features with how well each alone tells the classes of a target, the strongest first.

    From one half of the nodes the most frequent class of each category, or of each bin of a number, is learned; it is
    named on the other half, and the other way round. Numbers that repeat are taken as categories, too, and what tells
    more counts: the number of a district tells the district, though no bin has it to itself. The strength is what that
    gains over always naming the largest class: (accuracy - majority) / (1 - majority). Columns that gain nothing are
    left out.
    """
    y = node_classes(graph, target)
    nodes = torch.nonzero(y != UNKNOWN).flatten()
    nodes = nodes[torch.randperm(nodes.numel(), generator=generator(0, "telling"))[:MOST_NODES]]
    classes = y[nodes].numpy()
    if len(classes) < 4 or (classes == classes[0]).all():
        return []
    majority = float(np.bincount(classes).max()) / len(classes)
    halves = np.arange(len(classes)) % 2
    totals = np.stack([np.bincount(classes[halves == half], minlength=classes.max() + 1) for half in (0, 1)])
    found = []
    for name, ways in _columns(graph, nodes, BINS_PER_CLASS * len(np.unique(classes))):
        right = max(_right(filled, classes, halves, totals) for filled in ways)
        strength = (right / len(classes) - majority) / (1 - majority)
        if strength > 0:
            found.append((name, strength))
    return sorted(found, key=lambda pair: -pair[1])


def _right(filled: Filled, classes: Codes, halves: Codes, totals: Codes) -> int:
    """How many classes are named rightly, each half by the most frequent class of the same value in the other.

    Args:
        totals: (2, number of classes), how many nodes of each half have each class.
    """
    rows, codes = filled
    height, width = int(codes.max(initial=0)) + 1, totals.shape[1]
    asked = [halves[rows] == half for half in (0, 1)]
    rest = np.stack(
        [total - np.bincount(classes[rows[one]], minlength=width) for total, one in zip(totals, asked, strict=True)]
    )
    right = 0
    for learned, other in ((0, 1), (1, 0)):
        best = np.full(height, totals[learned].argmax())  # for values that were never seen
        if rest[learned].any():
            best[0] = rest[learned].argmax()
        pairs = codes[asked[learned]] * width + classes[rows[asked[learned]]]
        pairs, counts = np.unique(pairs, return_counts=True)
        order = np.lexsort((-pairs, counts))  # the last of a value stays: its most frequent class
        best[pairs[order] // width] = pairs[order] % width
        right += int(rest[other, best[0]])
        right += int((best[codes[asked[other]]] == classes[rows[asked[other]]]).sum())
    return right


def _columns(graph: Data, nodes: Tensor, bins: int) -> Iterator[tuple[str, list[Filled]]]:
    """Each column of the table that the features were made from, or else of the features."""
    x = _rows(graph.x, nodes)
    if is_structural(graph):
        yield "number of links", _ways(x, 1, bins)
        return
    columns = origin_of(graph).encoding.columns
    if sum(column.width for column in columns) != x.shape[1]:
        columns = ()  # x was set anew
    start = 0
    for column in columns:
        end = start + column.width
        if column.kind == "category":
            places = np.arange(start, end).repeat(np.diff(x.indptr[start : end + 1]))
            yield column.name, [(x.indices[x.indptr[start] : x.indptr[end]], places - start + 1)]
        elif column.kind == "number":
            yield column.name, _ways(x, start, bins)
        else:
            names = column.categories or [f"{column.name}[{number}]" for number in range(column.width)]
            yield from ((name, _ways(x, start + place, bins)) for place, name in enumerate(names))
        start = end
    yield from ((f"x[{place}]", _ways(x, place, bins)) for place in range(start, x.shape[1]))


def _rows(x: Tensor, nodes: Tensor) -> sp.csc_matrix:
    """Some rows, by columns, without what is zero."""
    if x.layout == torch.sparse_csr:
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        return sp.csr_matrix(parts, shape=tuple(x.shape))[nodes.numpy()].tocsc()
    return sp.csc_matrix(x[nodes].numpy())


def _ways(x: sp.csc_matrix, place: int, bins: int) -> list[Filled]:
    """Numbers that are not zero in bins of about equal size, and where they repeat also each as a value of its own."""
    part = slice(x.indptr[place], x.indptr[place + 1])
    rows, values = x.indices[part], x.data[part]
    different, codes = np.unique(values, return_inverse=True)
    own = (rows, 1 + codes)
    if len(different) < BINS:
        return [own]
    count = max(BINS, min(bins, len(values) // FULL))
    cuts = np.unique(np.quantile(values, np.arange(1, count) / count))
    binned = (rows, 1 + np.searchsorted(cuts, values, side="right"))
    return [binned, own] if 2 * len(different) <= len(values) else [binned]
