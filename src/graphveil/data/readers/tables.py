"""Graphs from tables: one of links, and optionally one of nodes, as CSV, TSV, Parquet, a list of links or in memory.

The role of a column is detected from its name unless an option gives it, and is noted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphveil.data.origin import ReadOptions
from graphveil.data.readers import ids as node_ids
from graphveil.data.readers.assemble import LABEL_NAMES, Contents
from graphveil.data.readers.columns import numbers
from graphveil.data.readers.find import PARQUET, check_spreadsheet, plain_suffix
from graphveil.data.readers.links import Links
from graphveil.data.readers.safe_open import no_column
from graphveil.data.readers.text import MISSING, TextTable, open_text
from graphveil.data.readers.typed import MemoryTable, ParquetTable, open_parquet
from graphveil.data.sentences import list_names, plural
from graphveil.errors import GraphveilError

SOURCE_NAMES = ("source", "src", "from", "fromnodeid", "from_id", "source_id", "u", "node1", "node_1", "id1", "id_1")
TARGET_NAMES = ("target", "dst", "to", "tonodeid", "to_id", "target_id", "v", "node2", "node_2", "id2", "id_2")
WEIGHT_NAMES = ("weight", "w", "weights", "edge_weight")
ID_NAMES = ("id", "node", "node_id", "nodeid", "vertex")

_LINK_WORDS = {*SOURCE_NAMES, *TARGET_NAMES, *WEIGHT_NAMES}
_NODE_WORDS = {*ID_NAMES, *LABEL_NAMES}


Table = TextTable | ParquetTable | MemoryTable


@dataclass(frozen=True)
class Ends:
    """The contents of a table of links.

    Args:
        table: The name of the file, or what messages call the table.
        ids: The ids of the sources and of the targets.
        names: The names of these two columns.
        place: Where a row is in the file, for messages.
        weights: (rows,), if the links have weights.
        typed: Whether the file declares the type of the ids.
        detected: As in `Contents`.
    """

    table: str
    ids: Sequence[pa.ChunkedArray]
    names: tuple[str, str]
    place: Callable[[int], str]
    weights: NDArray[np.float64] | None
    typed: bool
    detected: Mapping[str, str]


def read_tables(links: Path | MemoryTable, nodes: Path | MemoryTable | None, reading: ReadOptions) -> Contents:
    """Read a graph from a table of links and, if it exists, a table of nodes; each is a file or in memory."""
    notes: list[str] = []
    ends = _read_ends(links, reading, notes)
    return _without_nodes(ends, notes) if nodes is None else _with_nodes(nodes, ends, reading, notes)


def open_table(file: Path | MemoryTable, encoding: str | None, known: set[str]) -> Table:
    """Open a table of text or Parquet and read its header; a table in memory is returned as it is.

    Args:
        file: The file or the table.
        encoding: The encoding of a text file; None detects it.
        known: Names, in lower case, that the columns of such a table often have.
    """
    if isinstance(file, MemoryTable):
        return file
    check_spreadsheet(file)
    if plain_suffix(file) not in PARQUET:
        return open_text(file, encoding, lambda name: name.lower() in known)
    return open_parquet(file)


def _read_ends(file: Path | MemoryTable, reading: ReadOptions, notes: list[str]) -> Ends:
    table = open_table(file, reading.text_encoding, _LINK_WORDS)
    ends = _ends_of(table, reading)
    detected = reading.source is None and reading.target is None and _LINK_WORDS.isdisjoint(map(str.lower, table.names))
    if isinstance(table, TextTable) and table.header and detected and _names_are_ids(ends):
        table = table.without_header()  # its names are ids of nodes, so it is a link
        ends = _ends_of(table, reading)
    _note_layout(table, notes)
    notes.append(f"Links are read from the columns {ends.names[0]!r} and {ends.names[1]!r} of {table.file.name}.")
    return ends


def _ends_of(table: Table, reading: ReadOptions) -> Ends:
    source = _pick(table, SOURCE_NAMES, reading.source, "source", 0, ())
    target = _pick(table, TARGET_NAMES, reading.target, "target", 1, (source,))
    if source == target:
        raise GraphveilError(f"{table.file}: source and target are both {source!r}: name two different columns.")
    weight = reading.weight if reading.weight is not None else _detect(table.names, WEIGHT_NAMES)
    columns = [source, target, *([_named(table, weight)] if weight is not None else [])]
    rows = table.read(columns, [source, target])
    weights = None if weight is None else _weights(rows[weight], weight, table.place)
    typed, detected = not isinstance(table, TextTable), _named_in_file(table, source=source, target=target)
    return Ends(table.file.name, [rows[source], rows[target]], (source, target), table.place, weights, typed, detected)


def _named_in_file(table: Table, **names: str) -> dict[str, str]:
    """The columns that have a name in the file, and not only a number."""
    return {field: name for field, name in names.items() if name not in table.unnamed}


def _names_are_ids(ends: Ends) -> bool:
    """Whether the name of a column is the id of a node."""
    return any(pc.index(column, pa.scalar(name)).as_py() >= 0 for column in ends.ids for name in ends.names)


def _with_nodes(file: Path | MemoryTable, ends: Ends, reading: ReadOptions, notes: list[str]) -> Contents:
    table = open_table(file, reading.text_encoding, _NODE_WORDS)
    _note_layout(table, notes)
    name = _pick(table, ID_NAMES, reading.id, "id", 0, ())
    columns = [column for column in table.names if column == name or _is_read(table, column, reading)]
    read = set(columns)
    unread = [column for column in table.names if column not in read]
    if blank := [column for column in unread if column in table.unnamed]:
        notes.append(f"Columns of {table.file.name} without a name are not read: {list_names(blank)}.")
    rows = table.read(columns, [name])
    known, *both = node_ids.to_common_type(rows[name], *ends.ids)
    ids = node_ids.check_ids(known, name, table.place)
    rows_of = plural(len(ids), "row of", "rows of")
    notes.append(f"Nodes are the {rows_of} {table.file.name}, with the ids of the column {name!r}.")
    links = Links(node_ids.node_numbers(both, ids, ends.names, ends.place), ends.place, ends.weights)
    rest = {column: rows[column] for column in columns if column != name}
    for column, values in rest.items():
        if column in (*reading.attributes, reading.label) and pa.types.is_null(values.type):
            rest[column] = table.read([column], [column])[column]  # "None" may be a class
    original = _original_type(rows[name], ids, not isinstance(table, TextTable))
    detected = {**ends.detected, **_named_in_file(table, id=name)}
    return Contents(table.file.name, original, links, rest, unread=unread, notes=notes, detected=detected)


def _without_nodes(ends: Ends, notes: list[str]) -> Contents:
    both = node_ids.to_common_type(*ends.ids)
    ids = node_ids.ids_of_links(both)
    links = Links(node_ids.node_numbers(both, ids, ends.names, ends.place), ends.place, ends.weights)
    notes.append(f"No table of nodes: nodes are the {len(ids):,} ids of the links, sorted.")
    return Contents(
        ends.table, _original_type(ends.ids[0], ids, ends.typed), links, notes=notes, detected=ends.detected
    )


def _original_type(column: pa.ChunkedArray, ids: pa.Array, typed: bool) -> pa.Array:
    """Ids in the type of the file; in a file without types, numbers if all ids are numbers."""
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if (
        pa.types.is_integer(ids.type)
        and column.type != ids.type
        and (pa.types.is_integer(column.type) or (typed and text))
    ):
        return ids.cast(column.type)
    return ids.cast(pa.string()) if pa.types.is_large_string(ids.type) and ids.nbytes < 2**31 else ids


def _note_layout(table: Table, notes: list[str]) -> None:
    if not table.header:
        notes.append(f"{table.file.name} has no header.")
    if table.delimiter != ",":
        name = {"\t": "tabs", " ": "spaces", ";": "semicolons", "|": "vertical bars"}[table.delimiter]
        notes.append(f"Columns of {table.file.name} are separated by {name}.")


def _is_read(table: Table, column: str, reading: ReadOptions) -> bool:
    if column in {*reading.attributes, *(reading.features or ()), reading.label}:
        return True
    if column in table.unnamed and table.header:
        return False
    return reading.features is None or column.lower() in LABEL_NAMES


def _weights(column: pa.ChunkedArray, name: str, place: Callable[[int], str]) -> NDArray[np.float64]:
    values = numbers(column)
    if values is None and len(column):
        where = place(_first_non_number(column))
        raise GraphveilError(
            f"{where}, column {name!r}, has a weight that is not a number: name another column with --weight."
        )
    return np.zeros(0) if values is None else values


def _first_non_number(column: pa.ChunkedArray) -> int:
    """The first row whose value is neither missing nor a number."""
    for row, value in enumerate(column.to_pylist()):
        try:
            if value is not None and str(value).strip() not in MISSING:
                float(value)
        except (TypeError, ValueError):
            return row
    return 0


def _pick(table: Table, usual: Sequence[str], chosen: str | None, role: str, place: int, taken: Sequence[str]) -> str:
    """The column with a role: the chosen one, or one with a usual name, or that at a place."""
    if chosen is not None:
        return _named(table, chosen)
    free = [name for name in table.names if name not in taken]
    if (detected := _detect(free, usual)) is not None:
        return detected
    if len(table.names) <= place:
        raise GraphveilError(
            f"{table.file} has {len(table.names)} column and no {role}: expected a table of links with two columns."
        )
    return free[0] if table.names[place] in taken else table.names[place]


def _detect(names: Sequence[str], usual: Sequence[str]) -> str | None:
    by_lower = {name.lower(): name for name in reversed(names)}
    return next((by_lower[name] for name in usual if name in by_lower), None)


def _named(table: Table, name: str) -> str:
    if name not in table.names:
        raise no_column(str(table.file), name, table.names)
    return name
