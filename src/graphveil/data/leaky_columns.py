"""Find single feature columns that predict a target: then the secret is in the features themselves."""

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

MAX_NODES = 50_000
"""How many nodes are used; of more, a sample."""

BINS = 32
"""Numbers are cut into at least so many bins; with many classes, into `BINS_PER_CLASS` for each of them."""
BINS_PER_CLASS = 8
FULL = 8
"""How many nodes a bin should have: its class is learned from half of them."""

Codes = NDArray[np.int64]
Filled = tuple[Codes, Codes]
"""The nonzero rows of a column, and for each of them the code 1, 2, ... of its value; the code of zero is 0."""


def find_leaky_columns(graph: Data, target: str) -> list[tuple[str, float]]:
    """Return the feature columns that alone predict the classes of a target, and how well, the strongest first.

    The most frequent class of each category, or of each bin of a number, is learned on one half of the nodes and
    predicted on the other half, and vice versa. Repeated numbers are also tried as categories, and the better result
    counts: the number of a district predicts the district, although a bin holds several. The skill is the gain over
    always predicting the largest class: (accuracy - majority) / (1 - majority).

    Args:
        graph: The graph.
        target: "labels" or a node attribute.

    Returns:
        Names and skills, from 0 (exclusive) to 1, of all columns with a positive skill.
    """
    y = node_classes(graph, target)
    nodes = torch.nonzero(y != UNKNOWN).flatten()
    nodes = nodes[torch.randperm(nodes.numel(), generator=generator(0, "telling"))[:MAX_NODES]]
    classes = y[nodes].numpy()
    if len(classes) < 4 or (classes == classes[0]).all():
        return []
    majority = float(np.bincount(classes).max()) / len(classes)
    halves = np.arange(len(classes)) % 2
    totals = np.stack([np.bincount(classes[halves == half], minlength=classes.max() + 1) for half in (0, 1)])
    skills = []
    for name, codings in _columns(graph, nodes, BINS_PER_CLASS * len(np.unique(classes))):
        correct = max(_correct(filled, classes, halves, totals) for filled in codings)
        skill = (correct / len(classes) - majority) / (1 - majority)
        if skill > 0:
            skills.append((name, skill))
    return sorted(skills, key=lambda pair: -pair[1])


def _correct(filled: Filled, classes: Codes, halves: Codes, totals: Codes) -> int:
    """How many nodes get their class from the most frequent class of the same value in the other half.

    Args:
        filled: The coded column.
        classes: (nodes,) the class of each node.
        halves: (nodes,) the half of each node, 0 or 1.
        totals: (2, classes), how many nodes of each half have each class.
    """
    rows, codes = filled
    height, width = int(codes.max(initial=0)) + 1, totals.shape[1]
    in_half = [halves[rows] == half for half in (0, 1)]
    filled_counts = [np.bincount(classes[rows[inside]], minlength=width) for inside in in_half]
    zeros = totals - np.stack(filled_counts)
    correct = 0
    for learned, other in ((0, 1), (1, 0)):
        best = np.full(height, totals[learned].argmax())  # for values that the half does not have
        if zeros[learned].any():
            best[0] = zeros[learned].argmax()
        pairs = codes[in_half[learned]] * width + classes[rows[in_half[learned]]]
        pairs, counts = np.unique(pairs, return_counts=True)
        order = np.lexsort((-pairs, counts))  # the last assignment of a value wins: its most frequent class
        best[pairs[order] // width] = pairs[order] % width
        correct += int(zeros[other, best[0]])
        correct += int((best[codes[in_half[other]]] == classes[rows[in_half[other]]]).sum())
    return correct


def _columns(graph: Data, nodes: Tensor, bins: int) -> Iterator[tuple[str, list[Filled]]]:
    """Each column of the table that the features were encoded from, or else of the features, with its codings."""
    x = _rows(graph.x, nodes)
    if is_structural(graph):
        yield "number of links", _codings(x, 1, bins)
        return
    columns = origin_of(graph).encoding.columns
    if sum(column.width for column in columns) != x.shape[1]:
        columns = ()  # x was replaced
    start = 0
    for column in columns:
        end = start + column.width
        if column.kind == "category":
            places = np.arange(start, end).repeat(np.diff(x.indptr[start : end + 1]))
            yield column.name, [(x.indices[x.indptr[start] : x.indptr[end]], places - start + 1)]
        elif column.kind == "number":
            yield column.name, _codings(x, start, bins)
        else:
            names = column.categories or [f"{column.name}[{number}]" for number in range(column.width)]
            yield from ((name, _codings(x, start + place, bins)) for place, name in enumerate(names))
        start = end
    yield from ((f"x[{place}]", _codings(x, place, bins)) for place in range(start, x.shape[1]))


def _rows(x: Tensor, nodes: Tensor) -> sp.csc_matrix:
    """The rows of some nodes, sparse by columns."""
    if x.layout == torch.sparse_csr:
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        return sp.csr_matrix(parts, shape=tuple(x.shape))[nodes.numpy()].tocsc()
    return sp.csc_matrix(x[nodes].numpy())


def _codings(x: sp.csc_matrix, place: int, bins: int) -> list[Filled]:
    """Codings of a column: its nonzero numbers in bins of about equal size and, if they repeat, each as a category."""
    part = slice(x.indptr[place], x.indptr[place + 1])
    rows, values = x.indices[part], x.data[part]
    different, codes = np.unique(values, return_inverse=True)
    categories = (rows, 1 + codes)
    if len(different) < BINS:
        return [categories]
    count = max(BINS, min(bins, len(values) // FULL))
    cuts = np.unique(np.quantile(values, np.arange(1, count) / count))
    binned = (rows, 1 + np.searchsorted(cuts, values, side="right"))
    return [binned, categories] if 2 * len(different) <= len(values) else [binned]
