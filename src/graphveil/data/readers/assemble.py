"""Build a graph from what a reader returned: links, classes and features, with notes about each step."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from torch import Tensor
from torch_geometric.data import Data

from graphveil.data.degree_features import degree_features
from graphveil.data.graph import UNKNOWN, check_graph, undirected_pairs
from graphveil.data.origin import Column, Encoding, Origin, ReadOptions
from graphveil.data.readers.classes import Classes, encode_classes, encode_classes_like
from graphveil.data.readers.columns import BadCells, are_identifiers
from graphveil.data.readers.dates import are_dates
from graphveil.data.readers.features import (
    Matrix,
    Pieces,
    encode_features,
    encode_like,
    new_values,
    sources_of,
    stack_features,
)
from graphveil.data.readers.links import Links, LinkStream, simple_links
from graphveil.data.readers.safe_open import no_column
from graphveil.data.readers.text import MISSING
from graphveil.data.sentences import list_names, plural, quote
from graphveil.data.sparse import identity
from graphveil.errors import GraphveilError, shortened
from graphveil.target import BUILT_IN, Target

RESERVED = ("x", "y", "edge_index", "num_nodes", "origin", *BUILT_IN)
"""Names of parts of a graph, which no attribute may have."""

LABEL_NAMES = ("label", "labels", "y", "class", "classes", "category", "target")


@dataclass(frozen=True)
class Contents:
    """What a reader found in a file or an object.

    Args:
        name: What messages call the source.
        ids: The ids of the nodes, in the order of the source.
        links: The links, as the source has them.
        columns: Columns of the nodes by name, without the id.
        matrix: Features that came as one matrix; they are not encoded.
        label: The column that the source declares as its labels.
        attributes: Columns that the source declares as classes; they are attributes even if they were not requested.
        unread: Columns that were not read because they were not requested.
        notes: What the reader did.
        detected: Columns for those fields of `ReadOptions` that were not given.
        where: Where a node is in the source, for messages: "in line 8 of nodes.csv"; its id if this is not known.
    """

    name: str
    ids: pa.Array
    links: Links | LinkStream
    columns: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)
    matrix: Matrix | None = None
    label: str | None = None
    attributes: Sequence[str] = ()
    unread: Sequence[str] = ()
    notes: Sequence[str] = ()
    detected: Mapping[str, str] = field(default_factory=dict)
    where: Callable[[int], str] | None = None

    def cells(self, reading: ReadOptions) -> BadCells:
        """What happens to values that are no numbers in a column of numbers."""
        return BadCells(reading.bad_values, self.where or (lambda row: f"of node {quote(str(self.ids[row]))}"))


def assemble(contents: Contents, reading: ReadOptions, encoding: Encoding | None) -> Data:
    """Build the graph; with an `encoding`, columns are encoded as in the earlier graph that it belongs to."""
    rows, notes = len(contents.ids), list(contents.notes)
    edge_index = simple_links(contents.links, reading, notes)
    if not rows:
        raise GraphveilError(f"{contents.name} has no node: a graph needs at least one.")
    reading = replace(reading, **contents.detected)  # type: ignore[arg-type]
    sources = _targets(contents, reading, notes, encoding)
    differences: list[str] = []
    targets = {
        name: _classes_like(contents, name, column, reading, encoding, differences)
        if encoding is not None and name in encoding.classes
        else _classes(contents, name, column, reading, notes)
        for name, column in sources.items()
    }
    pieces = _features(contents, reading, encoding, set(sources.values()), notes if encoding is None else differences)
    graph = Data(edge_index=edge_index)
    structural = not pieces.columns and reading.missing == "degree"
    graph.x = stack_features(pieces.parts, rows) if pieces.columns else _missing(edge_index, rows, reading, notes)
    for name, classes in targets.items():
        graph[Target.of(name).key] = classes.codes
    columns = tuple(dict.fromkeys((*contents.columns, *contents.unread)))
    left = [name for name in columns if name not in sources.values()]
    kept = _kept(pieces, targets, left) if encoding is None else encoding
    notes, differences = [shortened(note) for note in notes], [shortened(note) for note in differences]
    resolved = replace(reading, label=sources.get("labels", reading.label))
    graph.origin = Origin(contents.ids, kept, (*notes, *differences), structural, tuple(differences), resolved, columns)
    check_graph(graph)
    return graph


def _targets(contents: Contents, reading: ReadOptions, notes: list[str], encoding: Encoding | None) -> dict[str, str]:
    """The column of each target: labels, and the attributes."""
    targets = {}
    label = reading.label if reading.label is not None else contents.label or detect_label(contents, notes)
    names = dict.fromkeys((*reading.attributes, *contents.attributes))
    for name, column in [("labels", label), *((name, name) for name in names)]:
        if column is None:
            continue
        if name in names and name in RESERVED:
            raise GraphveilError(
                f"an attribute cannot be called {name!r}, which is a part of every graph: rename the column"
                f"{', or give it as --label' if name in LABEL_NAMES else ''}."
            )
        if column in contents.columns:
            targets[name] = column
        elif encoding is None or column == reading.id:
            raise _no_column(contents, column, reading)
        else:
            notes.append(f"The column {column!r} is missing: {name} is not read.")
    for name in reading.bins:
        if name not in targets and name not in targets.values():
            raise GraphveilError(f"bins are given for {name!r}, which is not an attribute: add --attribute {name}.")
    return targets


def _no_column(contents: Contents, name: str, reading: ReadOptions) -> GraphveilError:
    if name == reading.id:
        return GraphveilError(
            f"{name!r} is the id of {contents.name} and cannot be a target or a feature: name another column, or"
            " another id with --id."
        )
    return no_column(contents.name, name, [*contents.columns, *contents.unread])


def detect_label(contents: Contents, notes: list[str]) -> str | None:
    """Return the column that is the label by its name, if its values are classes."""
    by_lower = {name.lower(): name for name in reversed(list(contents.columns))}
    name = next((by_lower[candidate] for candidate in LABEL_NAMES if candidate in by_lower), None)
    if name is None:
        return None
    column = contents.columns[name]
    if are_identifiers(column):
        notes.append(f"{name!r} is not used as labels: its values are identifiers, not classes.")
        return None
    notes.append(f"Labels are the column {name!r}.")
    return name


def _classes(contents: Contents, name: str, column: str, reading: ReadOptions, notes: list[str]) -> Classes:
    values, bins = contents.columns[column], reading.bins.get(name, reading.bins.get(column))
    numeric_labels = name == "labels" or name in contents.attributes
    classes = encode_classes(values, column, bins, notes, contents.cells(reading), numeric_labels)
    unknown_count = int((classes.codes == UNKNOWN).sum())
    unknown_nodes = f", unknown for {plural(unknown_count, 'node')}" if unknown_count else ""
    notes.append(f"{name}: {plural(len(classes.names), 'class', 'classes')}{unknown_nodes}.")
    if classes.cuts is not None and are_dates(values):
        notes.append(f"The dates of {column!r} are converted to days.")
    if like_missing := [class_name for class_name in classes.names if class_name in MISSING]:
        counts = "counts as a class" if len(like_missing) == 1 else "count as classes"
        notes.append(f"{list_names(like_missing)} of {column!r} {counts}; leave a cell empty if its value is unknown.")
    return classes


def _classes_like(
    contents: Contents, name: str, column: str, reading: ReadOptions, encoding: Encoding, notes: list[str]
) -> Classes:
    known, cuts = encoding.classes[name], encoding.cuts.get(name)
    classes = encode_classes_like(contents.columns[column], column, known, cuts, notes, contents.cells(reading))
    if classes.lost:
        notes.append(f"{new_values(classes.lost, column)} as unknown.")
    return classes


def _features(
    contents: Contents, reading: ReadOptions, encoding: Encoding | None, taken: set[str], notes: list[str]
) -> Pieces:
    for name in (*(reading.features or ()), *reading.drop):
        if name not in contents.columns and name not in contents.unread and encoding is None:
            raise _no_column(contents, name, reading)
    free = [name for name in contents.columns if name not in taken and name not in reading.drop]
    chosen = free if reading.features is None else [name for name in reading.features if name not in reading.drop]
    for name in chosen:
        if name in taken:
            raise GraphveilError(f"{name!r} is a target and cannot also be a feature: remove it from one of them.")
        if name not in contents.columns and encoding is None:
            raise GraphveilError(
                f"{name!r} cannot be a feature, because the features of {contents.name} are mapped from a file of their"
                " own: omit --features, or remove that file."
            )
    if encoding is not None:
        return _features_like(contents, encoding, taken | set(reading.drop), notes, contents.cells(reading))
    table = {name: contents.columns[name] for name in chosen}
    pieces = encode_features(table, len(contents.ids), notes, contents.cells(reading))
    if contents.matrix is not None and reading.features is None:
        pieces.add(Column("x", "matrix", contents.matrix.shape[1]), contents.matrix)
    if reading.features is not None and not pieces.columns:
        requested = ", ".join(reading.features) or "(none)"
        raise GraphveilError(
            f"{contents.name}: none of the columns {requested} gives a feature: name others, or omit --features."
        )
    width = sum(column.width for column in pieces.columns)
    if width:
        notes.append(f"{plural(width, 'feature')} from {plural(len(pieces.columns), 'column')}.")
    return pieces


def _features_like(
    contents: Contents, encoding: Encoding, taken: set[str], notes: list[str], cells: BadCells
) -> Pieces:
    columns = dict(contents.columns)
    if contents.matrix is not None:
        columns["x"] = contents.matrix
    pieces = encode_like(columns, encoding.columns, len(contents.ids), notes, cells)
    known = {*_sources(encoding.columns), *encoding.left_out, *taken}
    if extra := [name for name in contents.columns if name not in known]:
        notes.append(f"Columns unknown to the encoder are ignored: {list_names(extra)}.")
    return pieces


def _kept(pieces: Pieces, targets: Mapping[str, Classes], left: Iterable[str]) -> Encoding:
    """The encoding, with which a newer graph can be encoded in the same way.

    Args:
        pieces: The encoded features.
        targets: The encoded targets by name.
        left: Columns that are not targets.
    """
    used = set(_sources(pieces.columns))
    return Encoding(
        tuple(pieces.columns),
        {name: list(classes.names) for name, classes in targets.items()},
        {name: list(classes.cuts) for name, classes in targets.items() if classes.cuts is not None},
        [name for name in left if name not in used],
    )


def _sources(columns: Iterable[Column]) -> list[str]:
    return [name for column in columns for name in sources_of(column)]


def _missing(edge_index: Tensor, rows: int, reading: ReadOptions, notes: list[str]) -> Tensor:
    if reading.missing == "embedding":
        notes.append("No features: a row is learned for each node, so the encoder cannot embed other nodes.")
        return identity(rows)
    notes.append("No features: they are computed from the number of links of each node.")
    return degree_features(undirected_pairs(edge_index), rows)
