"""Which single columns of the features tell a target: then the secret is in X itself, and no encoder is to blame."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from graphveil.data.graph import UNKNOWN, node_classes
from graphveil.data.origin import origin_of
from graphveil.randomness import generator

MOST_NODES = 50_000
"""Nodes that are looked at."""

BINS = 32
"""Equal parts that numbers are cut into."""

Codes = NDArray[np.int64]
Filled = tuple[Codes, Codes]
"""The rows of a column that are not empty, and for each the code 1, 2, ... of its value; 0 is for the others."""


def telling_columns(graph: Data, target: str) -> list[tuple[str, float]]:
    """Columns of the features with how well each alone tells the classes of a target, the strongest first.

    From one half of the nodes the most frequent class of each category, or of each bin of a number, is learned; it is
    named on the other half, and the other way round. The strength is what that gains over always naming the largest
    class: (accuracy - majority) / (1 - majority). Columns that gain nothing are left out.
    """
    y = node_classes(graph, target)
    nodes = torch.nonzero(y != UNKNOWN).flatten()
    nodes = nodes[torch.randperm(nodes.numel(), generator=generator(0, "telling"))[:MOST_NODES]]
    classes = y[nodes].numpy()
    if len(classes) < 4 or (classes == classes[0]).all():
        return []
    majority = float(np.bincount(classes).max()) / len(classes)
    halves = np.arange(len(classes)) % 2
    found = []
    for name, filled in _columns(graph, nodes):
        strength = (_right(filled, classes, halves) / len(classes) - majority) / (1 - majority)
        if strength > 0:
            found.append((name, strength))
    return sorted(found, key=lambda pair: -pair[1])


def _right(filled: Filled, classes: Codes, halves: Codes) -> int:
    """How many classes are named rightly, each half by the most frequent class of the same value in the other."""
    rows, codes = filled
    height, width = int(codes.max(initial=0)) + 1, int(classes.max()) + 1
    places = (halves[rows] * height + codes) * width + classes[rows]
    counts = np.bincount(places, minlength=2 * height * width).reshape(2, height, width)
    total = np.stack([np.bincount(classes[halves == half], minlength=width) for half in (0, 1)])
    counts[:, 0] = total - counts.sum(axis=1)
    right = 0
    for learned, asked in ((0, 1), (1, 0)):
        best = counts[learned].argmax(axis=1)
        best[~counts[learned].any(axis=1)] = total[learned].argmax()  # values that were never seen
        right += int(counts[asked, np.arange(height), best].sum())
    return right


def _columns(graph: Data, nodes: Tensor) -> Iterator[tuple[str, Filled]]:
    """Each column of the table that the features were made from, or else of the features."""
    origin = origin_of(graph)
    x = _rows(graph.x, nodes)
    if origin.structural:
        yield "number of links", _binned(x, 1)
        return
    start = 0
    for column in origin.encoding.columns:
        end = start + column.width
        if column.kind == "category":
            places = np.arange(start, end).repeat(np.diff(x.indptr[start : end + 1]))
            yield column.name, (x.indices[x.indptr[start] : x.indptr[end]], places - start + 1)
        elif column.kind == "number":
            yield column.name, _binned(x, start)
        else:
            names = column.categories or [f"{column.name}[{number}]" for number in range(column.width)]
            yield from ((name, _binned(x, start + place)) for place, name in enumerate(names))
        start = end
    yield from ((f"x[{place}]", _binned(x, place)) for place in range(start, x.shape[1]))


def _rows(x: Tensor, nodes: Tensor) -> sp.csc_matrix:
    """Some rows, by columns, without what is zero."""
    if x.layout == torch.sparse_csr:
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        return sp.csr_matrix(parts, shape=tuple(x.shape))[nodes.numpy()].tocsc()
    return sp.csc_matrix(x[nodes].numpy())


def _binned(x: sp.csc_matrix, place: int) -> Filled:
    """Bins of about equal size of all that is not zero."""
    part = slice(x.indptr[place], x.indptr[place + 1])
    values = x.data[part]
    if not len(values) or (values == values[0]).all():
        return x.indices[part], np.ones(len(values), dtype=np.int64)
    cuts = np.unique(np.quantile(values, np.arange(1, BINS) / BINS))
    return x.indices[part], 1 + np.searchsorted(cuts, values, side="right")
