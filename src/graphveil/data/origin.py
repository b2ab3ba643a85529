"""What a graph of somebody's own carries beside its tensors: ids, how its columns became numbers, what was done.

`ReadOptions` says how to read a graph. `Encoding` says how its columns became features and classes, so that a newer
graph can be encoded in the same way. Both are plain values, and a run's record contains them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from torch_geometric.data import Data

from graphveil.errors import GraphveilError, unknown

MOST_BINS = 100
"""Classes that numbers may be cut into."""

_CHOICES: Mapping[str, Sequence[str]] = {
    "missing": ("degree", "embedding"),
    "direction": ("either", "mutual"),
    "loops": ("drop", "refuse"),
    "duplicates": ("drop", "refuse"),
}


@dataclass(frozen=True)
class ReadOptions:
    """How a graph is to be read; None is guessed, and told.

    Args:
        nodes: the table of nodes, where it is not found beside the links.
        source, target, weight: columns of the links.
        id, label: columns of the nodes.
        attributes: node columns that are secrets or utility, and so never features.
        features: node columns to take as features; None takes all that are left.
        drop: those not to take.
        bins: into how many classes of equal size a numeric attribute is cut, by its name.
        missing: what stands for features where there are none: "degree", or "embedding", one to be learned a node.
        direction: "either" takes one direction for a link, "mutual" wants both.
        min_weight: links of less weight are dropped.
        loops, duplicates: "drop" them, or "refuse" a graph that has some.
        text_encoding: of CSV files; None is UTF-8, or what a byte-order mark says.
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
    text_encoding: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise unknown(name, str(getattr(self, name)), choices)
        for name in ("attributes", "features", "drop"):
            given = getattr(self, name)
            if isinstance(given, str) or not all(isinstance(column, str) for column in given or ()):
                raise GraphveilError(f"{name} is {given!r}: give a list of names, such as ['age'].")
        for column, count in self.bins.items():
            if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MOST_BINS:
                raise GraphveilError(f"{count!r} bins for {column!r}: give a number from 2 to {MOST_BINS}.")
        if self.min_weight is not None and not math.isfinite(self.min_weight):
            raise GraphveilError(f"min_weight is {self.min_weight}: give a number.")

    def wanting(self, *targets: str) -> "ReadOptions":
        """The same, with all targets that are node columns among the attributes."""
        more = [name for name in targets if name not in ("links", "labels", *self.attributes)]
        return replace(self, attributes=(*self.attributes, *dict.fromkeys(more)))


@dataclass(frozen=True)
class Column:
    """One column of a table as columns of x.

    Args:
        kind: "number" is (value - mean) / deviation, 0 where missing; "category" one column a category; "matrix" as it
            came, `width` columns.
        categories: words, in the order of their columns; of a matrix, the columns it was put together from.
    """

    name: str
    kind: Literal["number", "category", "matrix"]
    width: int
    mean: float = 0.0
    deviation: float = 1.0
    categories: Sequence[str] = ()


@dataclass(frozen=True)
class Encoding:
    """How columns became x and classes.

    Args:
        columns: in the order of x; none where features are structural.
        classes: names of the classes 0, 1, ... of each target, "labels" or an attribute.
        cuts: inner borders of the bins of numeric attributes.
        left_out: columns that are neither, so that nobody wonders about them in a newer table.
    """

    columns: Sequence[Column] = ()
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    cuts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    left_out: Sequence[str] = ()

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> "Encoding":
        """From what `dataclasses.asdict` made of one, checked: somebody may have written into a record since."""
        try:
            columns = tuple(_column(**one) for one in values["columns"])
            classes = {name: _strings(names) for name, names in values["classes"].items()}
            cuts = {name: [_finite(cut) for cut in inner] for name, inner in values["cuts"].items()}
            if any(sorted(inner) != inner or name not in classes for name, inner in cuts.items()):
                raise ValueError("cuts that are in no order, or of no target")
            left_out = _strings(values["left_out"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise GraphveilError(
                f"what a run says of how features and classes were made cannot be read ({error!r:.200}): put its"
                " run.json back as it was, or train again."
            ) from error
        return cls(columns, classes, cuts, left_out)


@dataclass(frozen=True, eq=False)
class Origin:
    """Beside the tensors of a graph that was read.

    Args:
        ids: the nodes' own, in the order of the nodes.
        notes: what was done, a sentence each.
        structural: x says nothing but the number of links of a node: a split that hides links must make it anew.
        differences: those of the notes that say where it is unlike the earlier graph by whose encoding it was read.
        reading: how it was read, with the names of columns that were guessed.
        columns: of the nodes, beside their id, which could be asked for as attributes.
    """

    ids: pa.Array = field(repr=False)
    encoding: Encoding = field(default_factory=Encoding, repr=False)
    notes: Sequence[str] = field(default=(), repr=False)
    structural: bool = False
    differences: Sequence[str] = field(default=(), repr=False)
    reading: ReadOptions = field(default_factory=ReadOptions, repr=False)
    columns: Sequence[str] = field(default=(), repr=False)


def origin_of(graph: Data) -> Origin:
    """What was read along with a graph; one that was not read has nodes 0, 1, ..."""
    found, nodes = graph.get("origin"), graph.x.size(0)
    if not isinstance(found, Origin):
        return Origin(pa.array(np.arange(nodes)))
    if len(found.ids) != nodes:
        raise GraphveilError(
            f"the graph has {nodes:,} nodes, but {len(found.ids):,} ids from when it was read: read tables of this part"
            " with read_graph, or `del graph.origin`, and nodes are numbered from 0."
        )
    return found


def class_names(graph: Data, target: str, count: int) -> Sequence[str]:
    """What the classes 0, 1, ... of a target are called: as they were read, else by their numbers."""
    return origin_of(graph).encoding.classes.get(target) or [f"class {number}" for number in range(count)]


def node_ids(graph: Data) -> pa.Array:
    """The nodes' own ids, in the order of the nodes."""
    return origin_of(graph).ids


def _column(
    name: str, kind: Any, width: int, mean: float = 0.0, deviation: float = 1.0, categories: Sequence[str] = ()
) -> Column:
    """A column as it was recorded, if it can be one."""
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
        raise TypeError("a list of words is expected")
    return list(values)


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r} is no number")
    return float(value)
