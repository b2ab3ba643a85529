"""Graphs from tables: one of links, and optionally one of nodes, as CSV, TSV, Parquet, a list of links or in memory.

The role of a column is detected from its name unless an option gives it, and is noted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphveil.data.origin import ReadOptions
from graphveil.data.readers import ids as node_ids
from graphveil.data.readers.assemble import LABEL_NAMES, Contents
from graphveil.data.readers.columns import is_text, numbers, words
from graphveil.data.readers.find import PARQUET, check_spreadsheet, plain_suffix
from graphveil.data.readers.links import Block, LinkStream
from graphveil.data.readers.safe_open import no_column
from graphveil.data.readers.text import MISSING, TextTable, open_text
from graphveil.data.readers.typed import MemoryTable, ParquetTable, open_parquet
from graphveil.data.sentences import list_names, plural
from graphveil.errors import GraphveilError

SOURCE_NAMES = ("source", "src", "from", "fromnodeid", "from_id", "source_id", "u", "node1", "node_1", "id1", "id_1")
TARGET_NAMES = ("target", "dst", "to", "tonodeid", "to_id", "target_id", "v", "node2", "node_2", "id2", "id_2")
WEIGHT_NAMES = ("weight", "w", "weights", "edge_weight")
ID_NAMES = ("id", "node", "node_id", "nodeid", "vertex")

CODE = r"^[+-]?(0\d|\d{19})"
"""A code of digits, which loses its leading zero as a number, or its last digits if it is too long for an integer."""

FEWEST_ROWS = 2**20
"""Rows of links whose ends are looked up at once, at least."""

_LINK_WORDS = {*SOURCE_NAMES, *TARGET_NAMES, *WEIGHT_NAMES}
_NODE_WORDS = {*ID_NAMES, *LABEL_NAMES}


Table = TextTable | ParquetTable | MemoryTable


@dataclass(frozen=True)
class Ends:
    """The contents of a table of links.

    Args:
        table: The name of the file, or what messages call the table.
        rows: The number of rows.
        tables: A function that reads all rows, in one or several tables; it may be called again.
        types: The types of the ids of the sources and of the targets.
        names: The names of these two columns.
        weight: The name of the column of weights, if there is one.
        place: Where a row is in the file, for messages.
        typed: Whether the file declares the type of the ids.
        detected: As in `Contents`.
    """

    table: str
    rows: int
    tables: Callable[[], Iterator[pa.Table]]
    types: Sequence[pa.DataType]
    names: tuple[str, str]
    weight: str | None
    place: Callable[[int], str]
    typed: bool
    detected: Mapping[str, str]

    def ids(self) -> Iterator[pa.ChunkedArray]:
        """The ids of the sources and of the targets, in parts."""
        for table in self.tables():
            yield from (table[name] for name in self.names)

    def numbered(self, ids: pa.Array) -> LinkStream:
        """The links with their ends as places among `ids`, which have the common type of all ids."""

        def blocks() -> Iterator[Block]:
            start = 0
            # each block builds a table of all ids, so that a block has at least as many rows as there are ids
            for rows in _blocks(self.tables(), max(FEWEST_ROWS, len(ids))):
                place = _shifted(self.place, start)
                ends = [node_ids.to_type(rows[name], ids.type) for name in self.names]
                weights = None if self.weight is None else _weights(rows[self.weight], self.weight, place)
                yield node_ids.node_numbers(ends, ids, self.names, place), weights
                start += len(rows)

        return LinkStream(self.rows, blocks, self.place)


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
    tables: Callable[[], Iterator[pa.Table]]
    if isinstance(table, ParquetTable):
        count, schema, tables = table.rows, table.schema, partial(table.stream, columns)
    else:
        rows = table.read(columns, [source, target])
        count, schema, tables = len(rows), rows.schema, lambda: iter((rows,))
    types = [schema.field(name).type for name in (source, target)]
    typed, detected = not isinstance(table, TextTable), _named_in_file(table, source=source, target=target)
    return Ends(table.file.name, count, tables, types, (source, target), weight, table.place, typed, detected)


def _blocks(tables: Iterable[pa.Table], fewest: int) -> Iterator[pa.Table]:
    """The rows of tables in blocks of at least this many rows; the last block may be smaller."""
    waiting, rows = list[pa.Table](), 0
    for table in tables:
        waiting.append(table)
        rows += len(table)
        if rows >= fewest:
            yield pa.concat_tables(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def _shifted(place: Callable[[int], str], start: int) -> Callable[[int], str]:
    """Where a row is, by its number in the block that starts at a row."""
    return lambda row: place(start + row)


def _named_in_file(table: Table, **names: str) -> dict[str, str]:
    """The columns that have a name in the file, and not only a number."""
    return {field: name for field, name in names.items() if name not in table.unnamed}


def _names_are_ids(ends: Ends) -> bool:
    """Whether the name of a column is the id of a node."""
    return any(pc.index(column, pa.scalar(name)).as_py() >= 0 for column in ends.ids() for name in ends.names)


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
    kind = node_ids.common_type([rows[name].type, *ends.types], lambda: chain([rows[name]], ends.ids()))
    ids = node_ids.check_ids(node_ids.to_type(rows[name], kind), name, table.place)
    rows_of = plural(len(ids), "row of", "rows of")
    notes.append(f"Nodes are the {rows_of} {table.file.name}, with the ids of the column {name!r}.")
    links = ends.numbered(ids)
    rest = {column: rows[column] for column in columns if column != name}
    for column, values in rest.items():
        if column in (*reading.attributes, reading.label) and pa.types.is_null(values.type):
            rest[column] = table.read([column], [column])[column]  # "None" may be a class
    if isinstance(table, TextTable):
        rest |= _codes(table, rest, reading)
    original = _original_type(rows[name].type, ids, not isinstance(table, TextTable))
    detected = {**ends.detected, **_named_in_file(table, id=name)}
    # only in text can a cell have to be found, and otherwise the file need not stay in memory
    where = _cell_place(table) if any(is_text(values.type) for values in rest.values()) else None
    return Contents(table.file.name, original, links, rest, unread=unread, notes=notes, detected=detected, where=where)


def _without_nodes(ends: Ends, notes: list[str]) -> Contents:
    kind = node_ids.common_type(ends.types, ends.ids)
    ids = node_ids.ids_of_links((node_ids.to_type(column, kind) for column in ends.ids()), kind)
    notes.append(f"No table of nodes: nodes are the {len(ids):,} ids of the links, sorted.")
    original = _original_type(ends.types[0], ids, ends.typed)
    return Contents(ends.table, original, ends.numbered(ids), notes=notes, detected=ends.detected)


def _codes(
    table: TextTable, columns: Mapping[str, pa.ChunkedArray], reading: ReadOptions
) -> dict[str, pa.ChunkedArray]:
    """The text of those columns of classes that were read as numbers and hold codes: 01234 and 1234 are two classes."""
    numeric = [
        name
        for name, values in columns.items()
        if (name in reading.attributes or _may_be_label(name, reading))
        and (pa.types.is_integer(values.type) or pa.types.is_floating(values.type))
    ]
    if not numeric:
        return {}
    rows = table.read(numeric, numeric)
    text = {name: words(rows[name], name) for name in numeric}
    return {name: values for name, values in text.items() if pc.any(pc.match_substring_regex(values, CODE)).as_py()}


def _may_be_label(name: str, reading: ReadOptions) -> bool:
    return name == reading.label if reading.label is not None else name.lower() in LABEL_NAMES


def _cell_place(table: Table) -> Callable[[int], str]:
    """Where the cells of a row are, for messages."""
    return lambda row: f"in {table.where(row)} of {table.file.name}"


def _original_type(declared: pa.DataType, ids: pa.Array, typed: bool) -> pa.Array:
    """Ids in the type of the file; in a file without types, numbers if all ids are numbers."""
    whole = pa.types.is_integer(declared) or (typed and is_text(declared))
    if pa.types.is_integer(ids.type) and declared != ids.type and whole:
        return ids.cast(declared)
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
