"""Summary statistics of the features and links of a graph, and how another graph differs from them.

An encoder applied to features of another distribution still returns embeddings, and nothing in them shows that they
are meaningless. So a run saves this summary, and `embed` compares the new graph with it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from graphveil.data.graph import UNKNOWN, node_classes, undirected_pairs
from graphveil.data.origin import Encoding
from graphveil.data.sentences import plural
from graphveil.target import without_links

MAX_COLUMNS = 16384
"""Features are not summarised if there are more, to keep run.json readable."""
BLOCK = 65536
SHIFT = 0.5
"""There is a warning if a mean differs by more standard deviations."""
RATIO = 2.0
"""There is a warning if a standard deviation, or the mean degree, changes by a larger factor."""
SURE = 5.0
"""A difference must exceed this many standard errors, since the largest of many columns is compared."""
NAMED = 3
"""How many columns a warning names."""

Array = NDArray[np.float64]


def summary(graph: Data) -> dict[str, Any]:
    """Return the number of nodes, the mean degree, and the mean, deviation and kurtosis of every feature.

    The kurtosis gives the standard error of the variance, which is large for a column with few ones.
    """
    nodes = graph.x.size(0)
    values: dict[str, Any] = {
        "nodes": nodes,
        "mean_degree": 2 * undirected_pairs(graph.edge_index.cpu()).size(1) / nodes,
    }
    if graph.x.size(1) <= MAX_COLUMNS:
        mean, deviation, kurtosis = _moments(graph.x.detach().cpu())
        columns = {"mean": mean, "deviation": deviation, "kurtosis": kurtosis}
        values |= {name: [float(f"{value:.6g}") for value in column] for name, column in columns.items()}
    return values


def unknown_counts(graph: Data, targets: Sequence[str]) -> dict[str, int]:
    """Return, for each target except links, the number of nodes for which it is unknown."""
    return {name: int((node_classes(graph, name) == UNKNOWN).sum()) for name in without_links(targets)}


def differences(known: Mapping[str, Any], graph: Data, encoding: Encoding) -> list[str]:
    """Return a sentence for each difference between a graph and the one that was summarised.

    Args:
        known: The `summary` of the earlier graph.
        graph: The new graph.
        encoding: The encoding of the features, for their names.
    """
    now, sentences = summary(graph), list[str]()
    before, after = float(known["mean_degree"]), now["mean_degree"]
    if max(before, after) > RATIO * min(before, after):
        sentences.append(f"The mean number of links per node is {after:.1f}; it was {before:.1f} in training.")
    if "mean" not in known or "mean" not in now or len(known["mean"]) != len(now["mean"]):
        return sentences
    mean, deviation, kurtosis = (np.array(known[name], dtype=float) for name in ("mean", "deviation", "kurtosis"))
    new_mean, new_deviation = np.array(now["mean"]), np.array(now["deviation"])
    noise = np.sqrt(1 / known["nodes"] + 1 / now["nodes"])
    scale = np.where(deviation > 0, deviation, np.abs(mean) * 1e-3 + 1e-12)  # of a constant column
    shift = np.abs(new_mean - mean) / scale
    names = _names(encoding, len(mean))
    far = shift > np.maximum(SHIFT, SURE * noise)
    if far.any():
        how = f"differ from training by more than {SHIFT:g} standard deviations"
        sentences.append(f"The means of {_count(far)} {how}: {_worst(names, shift, far)}.")
    spread = np.maximum(new_deviation, 1e-12) / scale
    spread = np.maximum(spread, 1 / spread)
    change = np.abs(new_deviation**2 - deviation**2) / np.maximum(
        deviation**2 * np.sqrt(np.maximum(kurtosis - 1, 0)), 1e-24
    )
    wide = (spread > RATIO) & (change > SURE * noise) & ~far & (deviation > 0)
    if wide.any():
        how = f"differ from training by a factor of more than {RATIO:g}"
        sentences.append(f"The standard deviations of {_count(wide)} {how}: {_worst(names, spread, wide)}.")
    return sentences


def _moments(x: torch.Tensor) -> tuple[Array, Array, Array]:
    """Mean, standard deviation and kurtosis of the columns, in float64, computed in blocks of rows."""
    rows = x.size(0)
    mean = _sum(x, np.zeros(x.size(1)), 1) / rows
    variance, fourth = (_sum(x, mean, power) / rows for power in (2, 4))
    variance[variance <= 1e-14 * mean**2] = 0.0  # rounding errors of a constant column
    kurtosis = np.divide(fourth, variance**2, out=np.ones_like(mean), where=variance > 0)
    return mean, np.sqrt(variance), kurtosis


def _sum(x: torch.Tensor, mean: Array, power: int) -> Array:
    """The sum of (x - mean) ** power over the rows."""
    if x.layout == torch.sparse_csr:
        columns, values = x.col_indices().numpy(), x.values().double().numpy()
        width = x.size(1)
        filled = np.bincount(columns, (values - mean[columns]) ** power, minlength=width)
        empty = x.size(0) - np.bincount(columns, minlength=width)
        result: Array = filled + empty * (-mean) ** power
        return result
    total = np.zeros(x.size(1))
    for block in x.split(BLOCK):
        total += ((block.double().numpy() - mean) ** power).sum(axis=0)
    return total


def _names(encoding: Encoding, width: int) -> Sequence[str]:
    """The names of the columns of x."""
    names = []
    for column in encoding.columns:
        parts = column.categories if len(column.categories) == column.width else range(column.width)
        names += [column.name] if column.width == 1 else [f"{column.name} {part}" for part in parts]
    return names if len(names) == width else [f"feature {number}" for number in range(width)]


def _count(which: NDArray[np.bool_]) -> str:
    return f"{int(which.sum()):,} of {plural(len(which), 'feature')}"


def _worst(names: Sequence[str], by: Array, which: NDArray[np.bool_]) -> str:
    order = [place for place in np.argsort(-by, kind="stable") if which[place]][:NAMED]
    values = [f"{by[place]:.1f}" if by[place] < 1000 else "over 1,000" for place in order]
    return ", ".join(f"{names[place]!r} ({value})" for place, value in zip(order, values, strict=True))
