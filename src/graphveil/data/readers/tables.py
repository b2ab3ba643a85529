"""Graphs from tables: one of links, and optionally one of nodes, as CSV, TSV, Parquet or a list of links.

The role of a column is detected from its name unless an option gives it, and is noted.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphveil.data.origin import ReadOptions
from graphveil.data.readers import ids as node_ids
from graphveil.data.readers.assemble import LABEL_NAMES, Contents
from graphveil.data.readers.columns import numbers
from graphveil.data.readers.links import Links
from graphveil.data.readers.safe_open import MAX_COLUMNS, brief, check_expansion, check_file, no_column
from graphveil.data.readers.text import MISSING, TextTable, open_text
from graphveil.data.sentences import list_names, plural
from graphveil.errors import GraphveilError

TEXT = (".csv", ".tsv", ".txt", ".tab", ".edges", ".edgelist", ".el")
PARQUET = (".parquet", ".pq")
SOURCE_NAMES = ("source", "src", "from", "fromnodeid", "from_id", "source_id", "u", "node1", "node_1", "id1", "id_1")
TARGET_NAMES = ("target", "dst", "to", "tonodeid", "to_id", "target_id", "v", "node2", "node_2", "id2", "id_2")
WEIGHT_NAMES = ("weight", "w", "weights", "edge_weight")
ID_NAMES = ("id", "node", "node_id", "nodeid", "vertex")
LINK_FILES = ("edges", "edge", "links", "link", "edgelist", "relations", "relationships")
NODE_FILES = ("nodes", "node", "vertices", "vertex", "people", "persons", "users", "members")

_LINK_WORDS = {*SOURCE_NAMES, *TARGET_NAMES, *WEIGHT_NAMES}
_NODE_WORDS = {*ID_NAMES, *LABEL_NAMES}
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file whose schema is known and whose rows have not been read."""

    file: Path
    names: Sequence[str]
    unnamed: frozenset[str] = frozenset()
    header: str = "the schema"
    delimiter: str = ","

    def read(self, columns: Sequence[str], texts: Sequence[str] = ()) -> pa.Table:
        """Read columns; all of them, also `texts`, have the type that the file declares."""
        del texts
        size, batches, taken = check_file(self.file), [], 0
        try:
            with pq.ParquetFile(self.file) as parquet:
                schema = pa.schema([parquet.schema_arrow.field(name) for name in columns])
                for batch in parquet.iter_batches(columns=list(columns)):
                    taken += batch.nbytes  # a long text and a million references to it are a small file
                    check_expansion(self.file, size, taken)
                    batches.append(batch.select(list(columns)))
            table = pa.Table.from_batches(batches, batches[0].schema if batches else schema)
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise _bad_table(self.file, error) from error
        return table

    def place(self, row: int) -> str:
        """Where a row is in the file, for messages."""
        return f"{self.file}, row {row + 1}"


Table = TextTable | ParquetTable


@dataclass(frozen=True)
class Ends:
    """The contents of a table of links.

    Args:
        ids: The ids of the sources and of the targets.
        names: The names of these two columns.
        place: Where a row is in the file, for messages.
        weights: (rows,), if the links have weights.
        typed: Whether the file declares the type of the ids.
        detected: As in `Contents`.
    """

    ids: Sequence[pa.ChunkedArray]
    names: tuple[str, str]
    place: Callable[[int], str]
    weights: NDArray[np.float64] | None
    typed: bool
    detected: Mapping[str, str]


def read_tables(links: Path, nodes: Path | None, reading: ReadOptions) -> Contents:
    """Read a graph from a table of links and, if it exists, a table of nodes."""
    notes: list[str] = []
    ends = _read_ends(links, reading, notes)
    return _without_nodes(links, ends, notes) if nodes is None else _with_nodes(nodes, ends, reading, notes)


def find_tables(folder: Path) -> tuple[Path, Path | None]:
    """Return the tables of links and of nodes in a folder, found by their names."""
    files = sorted(file for file in folder.iterdir() if is_table(file))
    kinds = [(file, *_kind(file)) for file in files]
    links = [file for file, kind, _ in kinds if kind == "links"]
    nodes = [file for file, kind, _ in kinds if kind == "nodes"]
    if len(links) != 1 or len(nodes) > 1:
        existing = ", ".join(file.name for file in files[:10]) or "no table"
        raise GraphveilError(
            f"{folder} holds {existing}: expected one edges.csv (or .tsv, .txt, .parquet) and at most one nodes.csv; or"
            " give the table of links, and that of nodes with --nodes."
        )
    return links[0], nodes[0] if nodes else None


def find_nodes(links: Path, nodes: str | None) -> Path | None:
    """Return the table of nodes that belongs to a table of links.

    Args:
        links: The table of links.
        nodes: The path of the table of nodes; None searches for a table with a matching name beside the links.
    """
    if nodes is not None:
        path = Path(nodes).expanduser()
        beside = links.parent / path.name
        return beside if not path.exists() and beside.exists() else path
    kind, rest = _kind(links)
    if kind != "links":
        return None
    try:
        beside_links = [file for file in sorted(links.parent.iterdir()) if is_table(file)]
    except OSError:
        return None
    matches = [file for file in beside_links if _kind(file) == ("nodes", rest)]
    if len(matches) > 1:
        names = ", ".join(file.name for file in matches)
        raise GraphveilError(f"several tables may hold the nodes of {links.name} ({names}): choose one with --nodes.")
    return matches[0] if matches else None


def is_table(file: Path) -> bool:
    """Return whether a file is a table, by its suffix."""
    return plain_suffix(file) in (*TEXT, *PARQUET)


def are_tables(path: Path) -> bool:
    """Return whether a path is a table or a folder of tables, even if it no longer exists."""
    return plain_suffix(path) in ("", *TEXT, *PARQUET) or path.is_dir()


def plain_suffix(file: Path) -> str:
    """Return the suffix of a name in lower case, without .gz."""
    name = file.name.lower().removesuffix(".gz")
    return Path(name).suffix


def open_table(file: Path, encoding: str | None, known: set[str]) -> Table:
    """Open a table of text or Parquet and read its header.

    Args:
        file: The file.
        encoding: The encoding of a text file; None detects it.
        known: Names, in lower case, that the columns of such a table often have.
    """
    if plain_suffix(file) not in PARQUET:
        return open_text(file, encoding, lambda name: name.lower() in known)
    size = check_file(file)
    try:
        with pq.ParquetFile(file) as parquet:
            schema, metadata = parquet.schema_arrow, parquet.metadata
            names = list(schema.names)
            rows = metadata.num_rows
            groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
            declared = sum(group.total_byte_size for group in groups)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _bad_table(file, error) from error
    if len(names) > MAX_COLUMNS:
        raise GraphveilError(
            f"{file} has {len(names):,} columns, and at most {MAX_COLUMNS:,} are supported: remove some."
        )
    if len(set(names)) < len(names):
        raise GraphveilError(f"{file} has two columns with the same name: rename one.")
    check_expansion(file, size, max(declared, rows * len(names)))
    return ParquetTable(file, names, frozenset(name for name in names if _PANDAS_INDEX.fullmatch(name)))


def _bad_table(file: Path, error: Exception) -> GraphveilError:
    return GraphveilError(f"{file} cannot be read as a table ({brief(error)}): repair it, or save it again.")


def _kind(file: Path) -> tuple[str, str]:
    """ "links", "nodes" or "" by the name of a file, and the rest of the name."""
    stem = file.name.lower().removesuffix(".gz").rpartition(".")[0]
    parts = [part for part in re.split(r"[ _.\-]+", stem) if part]
    for kind, words in (("links", LINK_FILES), ("nodes", NODE_FILES)):
        if parts and (parts[-1] in words or parts[0] in words):
            rest = parts[:-1] if parts[-1] in words else parts[1:]
            return kind, "_".join(rest)
    return "", stem


def _read_ends(file: Path, reading: ReadOptions, notes: list[str]) -> Ends:
    table = open_table(file, reading.text_encoding, _LINK_WORDS)
    ends = _ends_of(table, reading)
    detected = reading.source is None and reading.target is None and _LINK_WORDS.isdisjoint(map(str.lower, table.names))
    if isinstance(table, TextTable) and table.header and detected and _names_are_ids(ends):
        table = table.without_header()  # its names are ids of nodes, so it is a link
        ends = _ends_of(table, reading)
    _note_layout(table, notes)
    notes.append(f"Links are read from the columns {ends.names[0]!r} and {ends.names[1]!r} of {file.name}.")
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
    typed, detected = isinstance(table, ParquetTable), _named_in_file(table, source=source, target=target)
    return Ends([rows[source], rows[target]], (source, target), table.place, weights, typed, detected)


def _named_in_file(table: Table, **names: str) -> dict[str, str]:
    """The columns that have a name in the file, and not only a number."""
    return {field: name for field, name in names.items() if name not in table.unnamed}


def _names_are_ids(ends: Ends) -> bool:
    """Whether the name of a column is the id of a node."""
    return any(pc.index(column, pa.scalar(name)).as_py() >= 0 for column in ends.ids for name in ends.names)


def _with_nodes(file: Path, ends: Ends, reading: ReadOptions, notes: list[str]) -> Contents:
    table = open_table(file, reading.text_encoding, _NODE_WORDS)
    _note_layout(table, notes)
    name = _pick(table, ID_NAMES, reading.id, "id", 0, ())
    columns = [column for column in table.names if column == name or _is_read(table, column, reading)]
    read = set(columns)
    unread = [column for column in table.names if column not in read]
    if blank := [column for column in unread if column in table.unnamed]:
        notes.append(f"Columns of {file.name} without a name are not read: {list_names(blank)}.")
    rows = table.read(columns, [name])
    known, *both = node_ids.to_common_type(rows[name], *ends.ids)
    ids = node_ids.check_ids(known, name, table.place)
    rows_of = plural(len(ids), "row of", "rows of")
    notes.append(f"Nodes are the {rows_of} {file.name}, with the ids of the column {name!r}.")
    links = Links(node_ids.node_numbers(both, ids, ends.names, ends.place), ends.place, ends.weights)
    rest = {column: rows[column] for column in columns if column != name}
    for column, values in rest.items():
        if column in (*reading.attributes, reading.label) and pa.types.is_null(values.type):
            rest[column] = table.read([column], [column])[column]  # "None" may be a class
    original = _original_type(rows[name], ids, isinstance(table, ParquetTable))
    detected = {**ends.detected, **_named_in_file(table, id=name)}
    return Contents(file.name, original, links, rest, unread=unread, notes=notes, detected=detected)


def _without_nodes(file: Path, ends: Ends, notes: list[str]) -> Contents:
    both = node_ids.to_common_type(*ends.ids)
    ids = node_ids.ids_of_links(both)
    links = Links(node_ids.node_numbers(both, ids, ends.names, ends.place), ends.place, ends.weights)
    notes.append(f"No table of nodes: nodes are the {len(ids):,} ids of the links, sorted.")
    return Contents(file.name, _original_type(ends.ids[0], ids, ends.typed), links, notes=notes, detected=ends.detected)


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
