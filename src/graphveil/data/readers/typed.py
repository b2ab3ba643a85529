"""Tables whose columns have types: Parquet files, and tables in memory from pandas, polars, pyarrow and others."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphveil.data.readers.safe_open import MAX_COLUMNS, brief, check_expansion, check_file
from graphveil.data.sentences import data_row
from graphveil.errors import GraphveilError

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file whose schema is known and whose rows have not been read."""

    file: Path
    names: Sequence[str]
    schema: pa.Schema
    rows: int
    unnamed: frozenset[str] = frozenset()
    header: str = "the schema"
    delimiter: str = ","

    def read(self, columns: Sequence[str], texts: Sequence[str] = ()) -> pa.Table:
        """Read columns; all of them, also `texts`, have the type that the file declares."""
        del texts
        tables = list(self.stream(columns))
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def stream(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read columns batch by batch."""
        size, taken = check_file(self.file), 0
        try:
            with pq.ParquetFile(self.file) as parquet:
                for batch in parquet.iter_batches(columns=list(columns)):
                    taken += batch.nbytes  # a long text and a million references to it are a small file
                    check_expansion(self.file, size, taken)
                    table = pa.Table.from_batches([batch.select(list(columns))])
                    table.validate(full=True)
                    yield table
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise _bad_table(self.file, error) from error

    def place(self, row: int) -> str:
        """Where a row is in the file, for messages."""
        return f"{self.file}, {self.where(row)}"

    def where(self, row: int) -> str:
        """The number of a row."""
        return data_row(row)


@dataclass(frozen=True)
class MemoryTable:
    """A table in memory.

    Args:
        file: What messages call it.
        rows: The table.
    """

    file: Path
    rows: pa.Table
    header: str = "the schema"
    delimiter: str = ","

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        return list(self.rows.column_names)

    @property
    def unnamed(self) -> frozenset[str]:
        """The columns without a name, such as the index of pandas."""
        return _unnamed(self.names)

    def read(self, columns: Sequence[str], texts: Sequence[str] = ()) -> pa.Table:
        """Return columns; all of them, also `texts`, have the type that the table declares."""
        del texts
        return self.rows.select(list(columns))

    def place(self, row: int) -> str:
        """Where a row is, for messages."""
        return f"{self.file}, {self.where(row)}"

    def where(self, row: int) -> str:
        """The number of a row."""
        return data_row(row)


def is_table_object(source: Any) -> bool:
    """Return whether an object is a table: of pandas, or one with the PyCapsule interface of Arrow."""
    return hasattr(source, "__arrow_c_stream__") or type(source).__module__.startswith("pandas.")


def memory_table(source: Any, name: str) -> MemoryTable:
    """Take a table from memory; the object is not changed.

    Args:
        source: A DataFrame of pandas or polars, a pyarrow Table, or another object with `__arrow_c_stream__`.
        name: What messages call it.
    """
    try:
        # the texts of polars are views, which an older pyarrow cannot convert; its own method has converted them
        rows = source.to_arrow() if hasattr(source, "to_arrow") else pa.table(source)
        rows = rows.cast(pa.schema([pa.field(field.name, _plain(field.type)) for field in rows.schema]))
        rows.validate(full=True)
    except (pa.ArrowException, ValueError, TypeError) as error:
        kind = type(source).__name__
        raise GraphveilError(
            f"{name} is a {kind} that cannot be used as a table ({brief(error)}): give columns of one type each."
        ) from error
    check_names(name, rows.column_names)
    return MemoryTable(Path(name), rows)


def open_parquet(file: Path) -> ParquetTable:
    """Open a Parquet file and read its schema."""
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
    check_names(str(file), names)
    check_expansion(file, size, max(declared, rows * len(names)))
    return ParquetTable(file, names, schema, rows, _unnamed(names))


def check_names(table: str, names: Sequence[str]) -> None:
    """Refuse too many columns, and two of the same name.

    Args:
        table: What messages call the table.
        names: The names of its columns.
    """
    if len(names) > MAX_COLUMNS:
        raise GraphveilError(
            f"{table} has {len(names):,} columns, and at most {MAX_COLUMNS:,} are supported: remove some."
        )
    if len(set(names)) < len(names):
        raise GraphveilError(f"{table} has two columns with the same name: rename one.")


def _unnamed(names: Sequence[str]) -> frozenset[str]:
    return frozenset(name for name in names if _PANDAS_INDEX.fullmatch(name))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type that other readers have for the same values."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        return pa.large_string()
    return kind


def _bad_table(file: Path, error: Exception) -> GraphveilError:
    return GraphveilError(f"{file} cannot be read as a table ({brief(error)}): repair it, or save it again.")
