"""Features in a file of their own beside the tables, which are mapped and not read into memory.

`features.npy` is mapped as it is. `features.parquet` is first copied batch by batch into a temporary file of the same
form, since Parquet is compressed. Row i belongs to the i-th node: to row i of the table of nodes or, without one, to
the node with the number i.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphveil.data.origin import ReadOptions
from graphveil.data.readers.assemble import LABEL_NAMES, Contents, detect_label
from graphveil.data.readers.find import MAPPED
from graphveil.data.readers.safe_open import MAX_COLUMNS, brief, unreadable
from graphveil.data.readers.tables import ID_NAMES
from graphveil.data.sentences import list_names
from graphveil.errors import GraphveilError

ROWS_AT_ONCE = 2**16
KINDS = ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64")
"""The types of numbers that torch computes with."""


def with_mapped(contents: Contents, folder: Path, reading: ReadOptions) -> Contents:
    """Return what a reader found in a folder, with the features of the mapped file if the folder has one.

    Of the other columns, only the label and the attributes are then read: a feature more would mean a copy of all.
    """
    found = [folder / name for name in MAPPED if (folder / name).exists()]
    files = [file for file in found if not _is_table_of_nodes(file, folder, reading)]
    if not files:
        return contents
    if len(files) > 1:
        raise GraphveilError(f"{folder} holds {list_names(MAPPED)}: remove one of them.")
    _check_names(files[0], contents, reading)
    matrix = map_features(files[0])
    if len(matrix) != len(contents.ids):
        raise GraphveilError(
            f"{files[0]} has {len(matrix):,} rows, and the graph has {len(contents.ids):,} nodes: give one row for each"
            " node, in the order of the table of nodes."
        )
    label = reading.label or contents.label or detect_label(contents, notes=[])
    targets = {*reading.attributes, *contents.attributes, label}
    kept = {name: column for name, column in contents.columns.items() if name in targets}
    note = f"Features are the {matrix.shape[1]:,} columns of {files[0].name}, which is mapped and not read into memory."
    unread = [*contents.unread, *(name for name in contents.columns if name not in kept)]
    return replace(contents, columns=kept, matrix=matrix, unread=unread, notes=[*contents.notes, note])


def map_features(file: Path) -> NDArray[np.generic]:
    """Return the features in a file, (rows, columns) of numbers, which are read when they are used."""
    try:
        if not file.is_file():
            raise GraphveilError(f"{file} is not a regular file: save the features as a file.")
        matrix = _from_parquet(file) if file.suffix == ".parquet" else _mapped(file)
    except OSError as error:
        raise unreadable(file, error) from error
    except (ValueError, pa.ArrowException, SyntaxError) as error:
        raise GraphveilError(f"{file} cannot be read as features ({brief(error)}): save it again.") from error
    if matrix.ndim != 2 or matrix.dtype not in KINDS or not matrix.flags.c_contiguous:
        raise GraphveilError(
            f"{file} has shape {matrix.shape} and type {matrix.dtype}: expected one row for each node, in C order, of"
            f" {', '.join(KINDS)}."
        )
    if not 0 < matrix.shape[1] <= MAX_COLUMNS:
        raise GraphveilError(f"{file} has {matrix.shape[1]:,} columns: expected 1 to {MAX_COLUMNS:,}.")
    return matrix


def temporary_matrix(rows: int, columns: int, source: object) -> NDArray[np.float32]:
    """Return a mapped temporary file for the features of a source, which ends with the process.

    Its space is reserved at once: writing to a mapped file on a full disk would end the program.
    """
    try:
        return _temporary(rows, columns)
    except OSError as error:
        raise GraphveilError(
            f"{source} has features of shape {(rows, columns)}, and no temporary file can hold them ({brief(error)}):"
            " free some space, or set TMPDIR to another folder."
        ) from error


def _temporary(rows: int, columns: int) -> NDArray[np.float32]:
    with tempfile.TemporaryFile(suffix=".features") as temporary:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(temporary.fileno(), 0, 4 * rows * columns)
        return np.memmap(temporary, np.float32, "r+" if hasattr(os, "posix_fallocate") else "w+", shape=(rows, columns))


def _is_table_of_nodes(file: Path, folder: Path, reading: ReadOptions) -> bool:
    """Whether a file is the table of nodes, which may have the name of a file of features."""
    if reading.nodes is None:
        return False
    given = Path(reading.nodes).expanduser()
    return any(path.exists() and path.samefile(file) for path in (given, folder / given))


def _check_names(file: Path, contents: Contents, reading: ReadOptions) -> None:
    """Refuse a file of features with a column that must not be a feature."""
    if file.suffix != ".parquet" or not file.is_file():
        return
    try:
        names = pq.read_schema(file).names
    except (OSError, ValueError, pa.ArrowException):
        return  # `map_features` says what is wrong
    excluded = {*reading.attributes, *reading.drop, reading.label, reading.id, contents.detected.get("id")}
    for name in names:
        if name in excluded or name.lower() in (*LABEL_NAMES, *ID_NAMES):
            raise GraphveilError(
                f"{file} has the column {name!r}, which must not be a feature, and all columns of this file are"
                " features: remove it from the file."
            )


def _mapped(file: Path) -> NDArray[np.generic]:
    matrix: NDArray[np.generic] = np.load(file, mmap_mode="c", allow_pickle=False)
    return matrix


def _from_parquet(file: Path) -> NDArray[np.generic]:
    """Copy a table of numbers, or of one column of lists, into a temporary file that ends with the process."""
    table = pq.ParquetFile(file)
    rows, place = table.metadata.num_rows, 0
    matrix: NDArray[np.float32] | None = None
    for batch in table.iter_batches(ROWS_AT_ONCE):
        part = _numbers(batch.columns, file)
        if matrix is None:
            matrix = temporary_matrix(rows, part.shape[1], file)
        matrix[place : place + len(part)] = part
        place += len(part)
    if matrix is None:
        raise GraphveilError(f"{file} has no rows: expected one for each node.")
    return matrix


def _numbers(columns: Sequence[pa.Array], file: Path) -> NDArray[np.float32]:
    kinds = [column.type for column in columns]
    if len(columns) == 1 and pa.types.is_fixed_size_list(kinds[0]) and not columns[0].null_count:
        values, width = columns[0].flatten(), kinds[0].list_size
        kinds, columns = [values.type], [values]
    else:
        width = len(columns)
    if not all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        raise GraphveilError(
            f"{file} has columns of {', '.join(sorted({str(kind) for kind in kinds})[:5])}: expected numbers, or one"
            " column of lists of a fixed size."
        )
    if any(column.null_count for column in columns):
        raise GraphveilError(f"{file} has missing values: fill them first.")
    parts = [pc.cast(column, pa.float32(), safe=False).to_numpy(zero_copy_only=False) for column in columns]
    return parts[0].reshape(-1, width) if len(parts) == 1 else np.stack(parts, axis=1)
