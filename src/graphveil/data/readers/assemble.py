"""From what a reader found to a graph: links, classes, features, and an account of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from torch import Tensor
from torch_geometric.data import Data

from graphveil.data.degree_features import degree_features
from graphveil.data.graph import UNKNOWN, both_directions, check_graph
from graphveil.data.origin import Column, Encoding, Origin, ReadOptions
from graphveil.data.readers.classes import Classes, classes_like, classes_of
from graphveil.data.readers.columns import are_names
from graphveil.data.readers.dates import are_dates
from graphveil.data.readers.features import Matrix, Pieces, features_like, features_of, new_values, sources_of, together
from graphveil.data.readers.links import Links, simple_links
from graphveil.data.readers.safe_open import no_column
from graphveil.data.readers.text import MISSING
from graphveil.data.sentences import list_names, plural
from graphveil.data.sparse import identity
from graphveil.errors import GraphveilError, shortened

RESERVED = ("x", "y", "edge_index", "num_nodes", "origin", "links", "labels")
"""Names of a graph's own parts, which no attribute may have."""

LABEL_NAMES = ("label", "labels", "y", "class", "classes", "category", "target")


@dataclass(frozen=True)
class Found:
    """What a file or an object holds.

    Args:
        name: of the source, for sentences.
        ids: the nodes' own, in their order.
        columns: of the nodes, by name, beside the id.
        matrix: features that came as one matrix; it is taken as it is.
        label: the column that the source itself calls its labels.
        attributes: columns that are classes in the source itself, so that they are kept without being asked for.
        unread: columns that are there but were not read, since nobody asked for them.
        notes: what the reader did.
        guessed: names of columns that the `ReadOptions` left open, by its fields.
    """

    name: str
    ids: pa.Array
    links: Links
    columns: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)
    matrix: Matrix | None = None
    label: str | None = None
    attributes: Sequence[str] = ()
    unread: Sequence[str] = ()
    notes: Sequence[str] = ()
    guessed: Mapping[str, str] = field(default_factory=dict)


def assemble(found: Found, reading: ReadOptions, encoding: Encoding | None) -> Data:
    """The graph of what was found, encoded like an earlier one where its `encoding` is given."""
    rows, notes = len(found.ids), list(found.notes)
    if not rows:
        raise GraphveilError(f"{found.name} has no node: a graph needs one at least.")
    pairs = simple_links(found.links, reading, notes)
    reading = replace(reading, **found.guessed)  # type: ignore[arg-type]
    sources = _targets(found, reading, notes, encoding)
    targets = {name: _classes(found, name, column, reading, encoding, notes) for name, column in sources.items()}
    unlike = [
        f"{new_values(classes.lost, sources[name])} as unknown." for name, classes in targets.items() if classes.lost
    ]
    pieces = _features(found, reading, encoding, set(sources.values()), notes if encoding is None else unlike)
    graph = Data(edge_index=both_directions(pairs))
    structural = not pieces.columns and reading.missing == "degree"
    graph.x = together(pieces.parts, rows) if pieces.columns else _missing(pairs, rows, reading, notes)
    for name, classes in targets.items():
        graph["y" if name == "labels" else name] = classes.codes
    columns = tuple(dict.fromkeys((*found.columns, *found.unread)))
    left = [name for name in columns if name not in sources.values()]
    kept = _kept(pieces, targets, left) if encoding is None else encoding
    notes, unlike = [shortened(note) for note in notes], [shortened(note) for note in unlike]
    known_as = replace(reading, label=sources.get("labels", reading.label))
    graph.origin = Origin(found.ids, kept, (*notes, *unlike), structural, tuple(unlike), known_as, columns)
    check_graph(graph)
    return graph


def _targets(found: Found, reading: ReadOptions, notes: list[str], encoding: Encoding | None) -> dict[str, str]:
    """The column of each target: labels, and the attributes."""
    targets = {}
    label = reading.label if reading.label is not None else found.label or _guessed_label(found, notes)
    names = dict.fromkeys((*reading.attributes, *found.attributes))
    for name, column in [("labels", label), *((name, name) for name in names)]:
        if column is None:
            continue
        if name in names and name in RESERVED:
            raise GraphveilError(
                f"an attribute cannot be called {name!r}, which is a part of every graph: rename the column"
                f"{', or give it as --label' if name in LABEL_NAMES else ''}."
            )
        if column in found.columns:
            targets[name] = column
        elif encoding is None or column == reading.id:
            raise _no_column(found, column, reading)
        else:
            notes.append(f"There is no column {column!r}: {name} is left out.")
    for name in reading.bins:
        if name not in targets and name not in targets.values():
            raise GraphveilError(f"bins are given for {name!r}, which is no attribute: name it with --attribute too.")
    return targets


def _no_column(found: Found, name: str, reading: ReadOptions) -> GraphveilError:
    if name == reading.id:
        return GraphveilError(
            f"{name!r} is the id of {found.name}, which tells nodes apart and is neither kept, hidden nor a feature:"
            " name another column, or another id by --id."
        )
    return no_column(found.name, name, [*found.columns, *found.unread])


def _guessed_label(found: Found, notes: list[str]) -> str | None:
    by_lower = {name.lower(): name for name in reversed(list(found.columns))}
    name = next((by_lower[guess] for guess in LABEL_NAMES if guess in by_lower), None)
    if name is None:
        return None
    column = found.columns[name]
    if are_names(column):
        notes.append(f"{name!r} is not taken for the labels: its values are names rather than classes.")
        return None
    notes.append(f"Labels are the column {name!r}.")
    return name


def _classes(
    found: Found, name: str, column: str, reading: ReadOptions, encoding: Encoding | None, notes: list[str]
) -> Classes:
    values = found.columns[column]
    if encoding is not None and name in encoding.classes:
        return classes_like(values, column, encoding.classes[name], encoding.cuts.get(name))
    bins = reading.bins.get(name, reading.bins.get(column))
    classes = classes_of(values, column, bins, numeric_labels=name == "labels" or name in found.attributes)
    unknown_count = int((classes.codes == UNKNOWN).sum())
    without = f", {plural(unknown_count, 'node')} unknown" if unknown_count else ""
    notes.append(f"{name}: {plural(len(classes.names), 'class', 'classes')}{without}.")
    if classes.cuts is not None and are_dates(values):
        notes.append(f"The values of {column!r} are dates: counted in days.")
    if doubtful := [word for word in classes.names if word in MISSING]:
        own = "is taken as a class of its own" if len(doubtful) == 1 else "are taken as classes of their own"
        notes.append(f"{list_names(doubtful)} of {column!r} {own}; leave cells empty where nothing is known.")
    return classes


def _features(
    found: Found, reading: ReadOptions, encoding: Encoding | None, taken: set[str], notes: list[str]
) -> Pieces:
    for name in (*(reading.features or ()), *reading.drop):
        if name not in found.columns and name not in found.unread and encoding is None:
            raise _no_column(found, name, reading)
    free = [name for name in found.columns if name not in taken and name not in reading.drop]
    asked = free if reading.features is None else [name for name in reading.features if name not in reading.drop]
    for name in asked:
        if name in taken:
            raise GraphveilError(f"{name!r} is a target and cannot be a feature, too: it would tell itself.")
    if encoding is not None:
        return _features_like(found, encoding, taken | set(reading.drop), notes)
    pieces = features_of({name: found.columns[name] for name in asked}, len(found.ids), notes)
    if found.matrix is not None and reading.features is None:
        pieces.add(Column("x", "matrix", found.matrix.shape[1]), found.matrix)
    if reading.features is not None and not pieces.columns:
        asked_for = ", ".join(reading.features) or "(none)"
        raise GraphveilError(
            f"{found.name}: none of the columns {asked_for} gives a feature: name others, or leave out --features."
        )
    width = sum(column.width for column in pieces.columns)
    if width:
        notes.append(f"{plural(width, 'feature')} from {plural(len(pieces.columns), 'column')}.")
    return pieces


def _features_like(found: Found, encoding: Encoding, taken: set[str], notes: list[str]) -> Pieces:
    columns = dict(found.columns)
    if found.matrix is not None:
        columns["x"] = found.matrix
    pieces = features_like(columns, encoding.columns, len(found.ids), notes)
    known = {*_sources(encoding.columns), *encoding.left_out, *taken}
    if extra := [name for name in found.columns if name not in known]:
        notes.append(f"Not known to the encoder, and ignored: {list_names(extra)}.")
    return pieces


def _kept(pieces: Pieces, targets: Mapping[str, Classes], left: Iterable[str]) -> Encoding:
    """What a newer graph has to be told.

    Args:
        left: columns that are no target.
    """
    used = set(_sources(pieces.columns))
    return Encoding(
        tuple(pieces.columns),
        {name: list(found.names) for name, found in targets.items()},
        {name: list(found.cuts) for name, found in targets.items() if found.cuts is not None},
        [name for name in left if name not in used],
    )


def _sources(columns: Iterable[Column]) -> list[str]:
    return [name for column in columns for name in sources_of(column)]


def _missing(pairs: Tensor, rows: int, reading: ReadOptions, notes: list[str]) -> Tensor:
    if reading.missing == "embedding":
        notes.append("No features: a row is learned for each node, so that the encoder fits these nodes alone.")
        return identity(rows)
    notes.append("No features: each node has those of its number of links.")
    return degree_features(pairs, rows)
