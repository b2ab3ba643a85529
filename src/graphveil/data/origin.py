"""What a graph that was read carries besides its tensors: ids, the encoding of its columns, and notes.

`ReadOptions` says how to read a graph. `Encoding` says how its columns became features and classes, so that a newer
graph can be encoded in the same way. Both are plain values, and run.json contains them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from torch_geometric.data import Data

from graphveil.errors import GraphveilError, unknown
from graphveil.target import BUILT_IN

MAX_BINS = 100
"""How many classes numbers may be cut into."""

_CHOICES: Mapping[str, Sequence[str]] = {
    "missing": ("degree", "embedding"),
    "direction": ("either", "mutual"),
    "loops": ("drop", "refuse"),
    "duplicates": ("drop", "refuse"),
    "bad_values": ("missing", "refuse"),
}


@dataclass(frozen=True)
class ReadOptions:
    """How to read a graph. An option that is None is detected from the data; `graph.origin.notes` says what was found.

    Args:
        nodes: The table of nodes, if it is not found beside the table of links.
        source: The column of the links with the ids of their sources.
        target: The column of the links with the ids of their targets.
        weight: The column of the links with their weights.
        id: The column of the nodes with their ids.
        label: The column of the nodes with their labels.
        attributes: Node columns that are targets, and so never features.
        features: Node columns to use as features; None uses all others.
        drop: Node columns to exclude from the features.
        bins: The number of classes of equal size to cut a numeric attribute into, by its name.
        missing: Features of a graph without any: "degree", or "embedding" (a learned row for each node).
        direction: Which links count: "either" (in at least one direction) or "mutual" (in both).
        min_weight: Links of a lower weight are dropped.
        loops: "drop" self-loops, or "refuse" a graph that has any.
        duplicates: "drop" duplicate links, or "refuse" a graph that has any.
        bad_values: Values that are not numbers in a column of numbers: "missing" counts them as missing values, and
            "refuse" refuses the graph.
        text_encoding: The encoding of CSV files; None means UTF-8, or what a byte order mark declares.
    """

    nodes: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    id: str | None = None
    label: str | None = None
    attributes: Sequence[str] = ()
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    bins: Mapping[str, int] = field(default_factory=dict)
    missing: Literal["degree", "embedding"] = "degree"
    direction: Literal["either", "mutual"] = "either"
    min_weight: float | None = None
    loops: Literal["drop", "refuse"] = "drop"
    duplicates: Literal["drop", "refuse"] = "drop"
    bad_values: Literal["missing", "refuse"] = "missing"
    text_encoding: str | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise unknown(name, str(getattr(self, name)), choices)
        for name in ("attributes", "features", "drop"):
            columns = getattr(self, name)
            if isinstance(columns, str) or not all(isinstance(column, str) for column in columns or ()):
                raise GraphveilError(f"{name} is {columns!r}: give a list of names, such as ['age'].")
        for column, count in self.bins.items():
            if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MAX_BINS:
                raise GraphveilError(
                    f"{count!r} bins are given for {column!r}: expected a whole number from 2 to {MAX_BINS}."
                )
        if self.min_weight is not None and not math.isfinite(self.min_weight):
            raise GraphveilError(f"min_weight is {self.min_weight}: expected a finite number.")

    def with_targets(self, *targets: str) -> "ReadOptions":
        """Return these options with all targets that are node columns added to the attributes."""
        more = [name for name in targets if name not in (*BUILT_IN, *self.attributes)]
        return replace(self, attributes=(*self.attributes, *dict.fromkeys(more)))


@dataclass(frozen=True)
class Column:
    """How one column of a table is encoded as columns of x.

    Args:
        name: The name of the column.
        kind: "number" is (value - mean) / deviation, 0 if missing; "category" is one-hot; "matrix" is not scaled.
        width: The number of columns of x.
        mean: The mean of a number.
        deviation: The standard deviation of a number.
        categories: The categories in the order of their columns; of a matrix, the columns that it was built from.
    """

    name: str
    kind: Literal["number", "category", "matrix"]
    width: int
    mean: float = 0.0
    deviation: float = 1.0
    categories: Sequence[str] = ()


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table became x and classes.

    Args:
        columns: The encoded columns in the order of x; empty if x holds `degree_features`.
        classes: The names of the classes 0, 1, ... of each target, "labels" or an attribute.
        cuts: The inner borders of the bins of numeric attributes.
        left_out: The columns that are not used, so that there is no warning about them in a newer table.
    """

    columns: Sequence[Column] = ()
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    cuts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    left_out: Sequence[str] = ()

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> "Encoding":
        """Build from the result of `dataclasses.asdict`, with checks, since run.json may have been edited."""
        try:
            columns = tuple(_column(**column) for column in values["columns"])
            classes = {name: _strings(names) for name, names in values["classes"].items()}
            cuts = {name: [_finite(cut) for cut in inner] for name, inner in values["cuts"].items()}
            if any(sorted(inner) != inner or name not in classes for name, inner in cuts.items()):
                raise ValueError("cuts are not ascending, or belong to no target")
            left_out = _strings(values["left_out"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise GraphveilError(
                f"the encoding in run.json cannot be read ({error!r:.200}): restore the original run.json, or train"
                " again."
            ) from error
        return cls(columns, classes, cuts, left_out)


@dataclass(frozen=True, eq=False)
class Origin:
    """What a graph that was read carries besides its tensors.

    Args:
        ids: The ids of the nodes, in the order of the nodes.
        encoding: How its columns became features and classes.
        notes: What was done, one sentence each.
        structural: Whether x holds `degree_features`, which must be computed again for a split that hides links.
        differences: Those of the notes that say how it differs from the earlier graph whose encoding was used.
        reading: How it was read, including the columns that were detected.
        columns: The columns of the nodes, without the id; each could be an attribute.
    """

    ids: pa.Array = field(repr=False)
    encoding: Encoding = field(default_factory=Encoding, repr=False)
    notes: Sequence[str] = field(default=(), repr=False)
    structural: bool = False
    differences: Sequence[str] = field(default=(), repr=False)
    reading: ReadOptions = field(default_factory=ReadOptions, repr=False)
    columns: Sequence[str] = field(default=(), repr=False)


def origin_of(graph: Data) -> Origin:
    """Return the origin of a graph; the ids of a graph without one are 0, 1, ..."""
    origin, nodes = graph.get("origin"), graph.x.size(0)
    if not isinstance(origin, Origin):
        return Origin(pa.array(np.arange(nodes)))
    if len(origin.ids) != nodes:
        raise GraphveilError(
            f"the graph has {nodes:,} nodes, but {len(origin.ids):,} ids from when it was read: read tables of these"
            " nodes with read_graph, or `del graph.origin` to number the nodes from 0."
        )
    return origin


def class_names(graph: Data, target: str, count: int) -> Sequence[str]:
    """Return the names of the classes 0, 1, ... of a target, as they were read; else "class 0", "class 1", ...

    A named graph has the names of its labels in `class_names`.
    """
    known = origin_of(graph).encoding.classes.get(target) or graph.get("class_names", {}).get(target)
    return known or [f"class {number}" for number in range(count)]


def node_ids(graph: Data) -> pa.Array:
    """Return the ids of the nodes, in the order of the nodes."""
    return origin_of(graph).ids


def _column(
    name: str, kind: Any, width: int, mean: float = 0.0, deviation: float = 1.0, categories: Sequence[str] = ()
) -> Column:
    """A column from its record, after checking it."""
    _strings([name])
    if kind not in ("number", "category", "matrix") or type(width) is not int or width < 0:
        raise ValueError(f"{name!r} is of kind {kind!r} and width {width!r}")
    counted = {"number": 1, "category": len(categories), "matrix": len(categories) or width}[kind]
    if width != counted:
        raise ValueError(f"{name!r} has width {width}, not {counted}")
    if not _finite(deviation) > 0:
        raise ValueError(f"{name!r} has deviation {deviation}")
    return Column(name, kind, width, _finite(mean), _finite(deviation), _strings(categories))


def _strings(values: Any) -> list[str]:
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise TypeError("expected a list of strings")
    return list(values)


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r} is not a finite number")
    return float(value)
