"""What the features and links of a graph look like on the whole, and how far another graph is from that.

An encoder knows the graph that it was trained on. Applied to one whose columns lie elsewhere it still gives numbers,
and nobody can tell from them that they mean nothing; so a run keeps this summary, and whoever applies it compares.
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

MAX_COLUMNS = 16384
"""More than these are not summarised: the record of a run is to be read by people too."""
BLOCK = 65536
SHIFT = 0.5
"""Deviations by which a mean may differ; a ratio of deviations, or of degrees, may reach `RATIO`."""
RATIO = 2.0
SURE = 5.0
"""Standard errors by which a difference must exceed what chance brings about, in the worst of many columns."""
NAMED = 3

Array = NDArray[np.float64]


def summary(graph: Data) -> dict[str, Any]:
    """Number of nodes, mean degree, and the mean, deviation and kurtosis of every feature; plain values.

    The kurtosis says how surely a deviation is known: that of a column with few ones is not.
    """
    nodes = graph.x.size(0)
    found: dict[str, Any] = {
        "nodes": nodes,
        "mean_degree": 2 * undirected_pairs(graph.edge_index.cpu()).size(1) / nodes,
    }
    if graph.x.size(1) <= MAX_COLUMNS:
        mean, deviation, kurtosis = _moments(graph.x.detach().cpu())
        columns = {"mean": mean, "deviation": deviation, "kurtosis": kurtosis}
        found |= {name: [float(f"{value:.6g}") for value in column] for name, column in columns.items()}
    return found


def unknown_counts(graph: Data, targets: Sequence[str]) -> dict[str, int]:
    """For how many nodes each target that is not links is unknown."""
    return {name: int((node_classes(graph, name) == UNKNOWN).sum()) for name in targets if name != "links"}


def differences(known: Mapping[str, Any], graph: Data, encoding: Encoding) -> list[str]:
    """A sentence for each way in which a graph is unlike the one that `known` was made from.

    Args:
        encoding: of the features, for their names.
    """
    now, found = summary(graph), list[str]()
    before, after = float(known["mean_degree"]), now["mean_degree"]
    if max(before, after) > RATIO * min(before, after):
        found.append(f"A node has {after:.1f} links on average, where it had {before:.1f} in training.")
    if "mean" not in known or "mean" not in now or len(known["mean"]) != len(now["mean"]):
        return found
    mean, deviation, kurtosis = (np.array(known[name], dtype=float) for name in ("mean", "deviation", "kurtosis"))
    new_mean, new_deviation = np.array(now["mean"]), np.array(now["deviation"])
    noise = np.sqrt(1 / known["nodes"] + 1 / now["nodes"])
    scale = np.where(deviation > 0, deviation, np.abs(mean) * 1e-3 + 1e-12)  # of a column that never changed
    shift = np.abs(new_mean - mean) / scale
    names = _names(encoding, len(mean))
    far = shift > np.maximum(SHIFT, SURE * noise)
    if far.any():
        where = f"more than {SHIFT:g} deviations from where they lay in training"
        found.append(f"Values of {_count(far)} lie {where}: {_worst(names, shift, far)}.")
    spread = np.maximum(new_deviation, 1e-12) / scale
    spread = np.maximum(spread, 1 / spread)
    doubt = np.abs(new_deviation**2 - deviation**2) / np.maximum(
        deviation**2 * np.sqrt(np.maximum(kurtosis - 1, 0)), 1e-24
    )
    wide = (spread > RATIO) & (doubt > SURE * noise) & ~far & (deviation > 0)
    if wide.any():
        how = f"more than {RATIO:g} times as wide, or as narrow, as in training"
        found.append(f"Values of {_count(wide)} are spread {how}: {_worst(names, spread, wide)}.")
    return found


def _moments(x: torch.Tensor) -> tuple[Array, Array, Array]:
    """Mean, deviation and kurtosis of the columns, in float64 and a block of rows at a time."""
    rows = x.size(0)
    mean = _sum(x, np.zeros(x.size(1)), 1) / rows
    variance, fourth = (_sum(x, mean, power) / rows for power in (2, 4))
    variance[variance <= 1e-14 * mean**2] = 0.0  # rounding, of a column that never changes
    kurtosis = np.divide(fourth, variance**2, out=np.ones_like(mean), where=variance > 0)
    return mean, np.sqrt(variance), kurtosis


def _sum(x: torch.Tensor, mean: Array, power: int) -> Array:
    """Of (x - mean) ** power over the rows."""
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
    """Of the columns of x; of a category its own column's."""
    names = []
    for column in encoding.columns:
        own = column.categories if len(column.categories) == column.width else range(column.width)
        names += [column.name] if column.width == 1 else [f"{column.name} {one}" for one in own]
    return names if len(names) == width else [f"feature {number}" for number in range(width)]


def _count(which: NDArray[np.bool_]) -> str:
    return f"{int(which.sum()):,} of {plural(len(which), 'feature')}"


def _worst(names: Sequence[str], by: Array, which: NDArray[np.bool_]) -> str:
    order = [place for place in np.argsort(-by, kind="stable") if which[place]][:NAMED]
    told = [f"{by[place]:.1f}" if by[place] < 1000 else "over 1,000" for place in order]
    return ", ".join(f"{names[place]!r} ({number})" for place, number in zip(order, told, strict=True))
