"""Encode the columns of a table as features, and a newer table as the same features.

Numbers are standardised, text is one-hot encoded, and lists of numbers and word counts are used without scaling. The
choices are saved as the `Column`s of an `Encoding`, with which a newer table is encoded in the same way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphveil.data.graph import UNKNOWN
from graphveil.data.origin import Column
from graphveil.data.readers.columns import (
    FEW_CATEGORIES,
    MAX_CATEGORIES,
    BadCells,
    class_codes,
    missing_words,
    mostly_numbers,
    numbers,
    words,
)
from graphveil.data.readers.dates import are_dates
from graphveil.data.readers.safe_open import MAX_BYTES, MAX_COLUMNS
from graphveil.data.sentences import list_names, plural
from graphveil.data.sparse import csr
from graphveil.errors import GraphveilError

MANY = 50
"""More columns of counts than this are a bag of words."""

SPARSE = 0.1
"""Features are stored sparse if the share of their nonzero values is below this."""

Matrix = Any
"""A NumPy array of two dimensions, or a SciPy CSR matrix, which has no type annotations."""


@dataclass
class Pieces:
    """Features during encoding: how each column is encoded, and its encoded values."""

    columns: list[Column] = field(default_factory=list)
    parts: list[Matrix] = field(default_factory=list)

    def add(self, column: Column, part: Matrix) -> None:
        """Append a column."""
        self.columns.append(column)
        self.parts.append(part)


def encode_features(table: Mapping[str, pa.ChunkedArray], rows: int, notes: list[str], cells: BadCells) -> Pieces:
    """Encode columns as features, in their order; which columns are excluded, and why, is added to `notes`."""
    pieces = Pieces()
    read = {name: _numbers(column, name, notes, cells) for name, column in table.items()}
    numeric = {name: values for name, values in read.items() if values is not None}
    bag = [name for name, values in numeric.items() if _is_count(values)] if len(numeric) > MANY else []
    if len(bag) > MANY:
        notes.append(f"{len(bag):,} columns of counts are used without scaling, as a bag of words.")
    else:
        bag = []
    counted = set(bag)
    for name, column in table.items():
        if name in counted:
            if name == bag[0]:
                pieces.add(Column("counts", "matrix", len(bag), categories=bag), _stacked([numeric[n] for n in bag]))
        elif name in numeric:
            _add_number(pieces, name, numeric[name], notes)
            if are_dates(column):
                notes.append(f"The dates of {name!r} are converted to days.")
        elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or is_fixed(column.type):
            part = _matrix(column, name)
            pieces.add(Column(name, "matrix", part.shape[1]), part)
        else:
            _add_words(pieces, name, column, rows, notes)
    return pieces


def encode_like(
    table: Mapping[str, pa.ChunkedArray | Matrix],
    columns: Sequence[Column],
    rows: int,
    notes: list[str],
    cells: BadCells,
) -> Pieces:
    """Encode columns in the same way as those of an earlier graph."""
    pieces = Pieces()
    expected = [name for column in columns for name in sources_of(column)]
    if missing := [name for name in expected if name not in table]:
        notes.append(f"Columns that the encoder expects are missing and filled with 0: {list_names(missing)}.")
    for column in columns:
        if column.kind == "matrix" and column.categories:
            parts = [_number_like(table.get(name), name, rows, notes, cells, missing=0.0) for name in column.categories]
            pieces.add(column, _stacked(parts))
        elif column.name not in table:
            pieces.add(column, sp.csr_matrix((rows, column.width), dtype=np.float32))
        elif column.kind == "number":
            values = _number_like(table[column.name], column.name, rows, notes, cells, missing=np.nan)
            standard = (values - column.mean) / column.deviation
            pieces.add(column, np.nan_to_num(standard).astype(np.float32)[:, None])
        elif column.kind == "category":
            text = words(table[column.name], column.name)
            codes = class_codes(text, column.categories)
            if unseen := int((codes == UNKNOWN).sum()) - text.null_count:
                notes.append(f"{new_values(unseen, column.name)} as missing.")
            pieces.add(column, _one_hot(codes, len(column.categories)))
        else:
            part = table[column.name]
            part = _matrix(part, column.name) if isinstance(part, pa.ChunkedArray) else part
            check_width(column.name, part.shape[1], column.width)
            pieces.add(column, part)
    return pieces


def sources_of(column: Column) -> Sequence[str]:
    """Return the columns of the table that an encoded column comes from."""
    return column.categories if column.kind == "matrix" and column.categories else [column.name]


def new_values(count: int, name: str) -> str:
    """Return the beginning of a note about values of a column that the earlier graph did not have."""
    singular, several = "is new to the encoder and counts", "are new to the encoder and count"
    return plural(count, f"value of {name!r} {singular}", f"values of {name!r} {several}")


def check_width(name: str, came: int, expected: int) -> None:
    """Refuse a matrix whose width is not the one that the encoder was trained on."""
    if came != expected:
        raise GraphveilError(
            f"{name!r} has {came:,} columns, but the encoder was trained on {expected:,}: give the same columns."
        )


def stack_features(parts: Sequence[Matrix], rows: int) -> Tensor:
    """Return features as one float32 matrix (rows, features): CSR if nearly all values are zero, else dense."""
    width = sum(part.shape[1] for part in parts)
    if width > MAX_COLUMNS:
        raise GraphveilError(f"there are {width:,} features, and at most {MAX_COLUMNS:,} are supported: drop columns.")
    if len(parts) == 1 and isinstance(parts[0], np.memmap):
        return torch.from_numpy(parts[0])  # never a copy
    filled = sum(part.nnz if sp.issparse(part) else np.count_nonzero(part) for part in parts)
    fits = 4 * rows * width <= MAX_BYTES
    if not fits and 12 * filled > MAX_BYTES:
        raise GraphveilError(
            f"{rows:,} rows of {width:,} features do not fit into {MAX_BYTES >> 30} GiB: drop columns."
        )
    if not fits or (width > MANY and filled < SPARSE * rows * width):
        return as_csr(sp.hstack([sp.csr_matrix(part) for part in parts], format="csr"))
    dense = [part.toarray() if sp.issparse(part) else part for part in parts]
    return torch.from_numpy(np.ascontiguousarray(np.concatenate(dense, axis=1), dtype=np.float32))


def as_csr(matrix: Any) -> Tensor:
    """Return a SciPy matrix as a CSR tensor."""
    matrix = sp.csr_matrix(matrix, dtype=np.float32)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    crow, col = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    return csr(crow, col, torch.from_numpy(matrix.data), matrix.shape)


def is_fixed(kind: pa.DataType) -> bool:
    """Return whether a column holds lists of one fixed length."""
    return bool(pa.types.is_fixed_size_list(kind))


def _numbers(column: pa.ChunkedArray, name: str, notes: list[str], cells: BadCells) -> NDArray[np.float64] | None:
    """A column of numbers, or of text that is mostly numbers; None for words."""
    values = numbers(column)
    return mostly_numbers(column, name, notes, cells) if values is None else values


def _is_count(values: NDArray[np.float64]) -> bool:
    """Whether values are whole, not negative and mostly zero, as counts of words are."""
    if np.count_nonzero(values) > len(values) / 2:  # NaN is not zero
        return False
    filled = values[values != 0]
    return bool((filled > 0).all() and (filled == np.rint(filled)).all())


def _stacked(columns: Sequence[NDArray[np.float64]]) -> Matrix:
    """Columns as one sparse matrix, built from the nonzero values."""
    rows = [np.flatnonzero(values) for values in columns]
    ends = np.cumsum([0, *map(len, rows)])
    data = [values[at] for values, at in zip(columns, rows, strict=True)]
    shape = (len(columns[0]), len(columns))
    parts = (np.concatenate(data).astype(np.float32), np.concatenate(rows), ends)
    return sp.csc_matrix(parts, shape=shape).tocsr()


def _add_number(pieces: Pieces, name: str, values: NDArray[np.float64], notes: list[str]) -> None:
    known = values[~np.isnan(values)]
    with np.errstate(over="ignore"):  # then it is not finite, and the column is excluded
        mean, deviation = (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
    if not np.isfinite(mean) or not np.isfinite(deviation) or deviation <= 1e-12 * abs(mean):
        reason = "all its values are equal" if np.isfinite(deviation) else "its values are too large"
        notes.append(f"{name!r} is not used as a feature: {reason if len(known) else 'it is empty'}.")
        return
    if count := len(values) - len(known):
        singular, several = "is missing or infinite and is replaced", "are missing or infinite and are replaced"
        notes.append(plural(count, f"value of {name!r} {singular}", f"values of {name!r} {several}") + " by the mean.")
    part = np.nan_to_num((values - mean) / deviation).astype(np.float32)[:, None]
    pieces.add(Column(name, "number", 1, mean, deviation), part)


def _add_words(pieces: Pieces, name: str, column: pa.ChunkedArray, rows: int, notes: list[str]) -> None:
    try:
        text = words(column, name)
    except GraphveilError:
        notes.append(f"{name!r} is not used as a feature: it holds {column.type}.")
        return
    if missing := missing_words(column):
        counts = "counts as missing" if len(missing) == 1 else "count as missing"
        notes.append(f"{list_names(missing)} of {name!r} {counts}.")
    names = sorted(value for value in pc.unique(text).to_pylist() if value is not None)
    if len(names) > 2 and len(names) == rows - text.null_count:
        notes.append(f"{name!r} is not used as a feature: every value is different.")
    elif len(names) > max(FEW_CATEGORIES, min(MAX_CATEGORIES, rows // 10)):
        notes.append(f"{name!r} is not used as a feature: it has {len(names):,} different values.")
    elif len(names) < 2 and not text.null_count:
        notes.append(f"{name!r} is not used as a feature: all its values are equal.")
    elif not names:
        notes.append(f"{name!r} is not used as a feature: it is empty.")
    else:
        pieces.add(
            Column(name, "category", len(names), categories=names), _one_hot(class_codes(text, names), len(names))
        )


def _one_hot(codes: Tensor, width: int) -> Matrix:
    known = np.flatnonzero(codes.numpy() != UNKNOWN)
    ones = np.ones(len(known), dtype=np.float32)
    return sp.csr_matrix((ones, (known, codes.numpy()[known])), shape=(codes.numel(), width))


def _matrix(column: pa.ChunkedArray, name: str) -> Matrix:
    """Lists of numbers, all of one length, as rows; a missing list is zeros."""
    lists = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    lengths = pc.unique(pc.drop_null(pc.list_value_length(lists))).to_pylist()
    if len(lengths) > 1:
        raise GraphveilError(
            f"the lists of {name!r} have from {min(lengths)} to {max(lengths)} values: expected lists of one length."
        )
    width = lengths[0] if lengths else 0
    if width > MAX_COLUMNS or 4 * width * len(lists) > MAX_BYTES:
        raise GraphveilError(f"the lists of {name!r} have {width:,} values each, which is too many: drop the column.")
    values = numbers(pa.chunked_array([pc.list_flatten(lists)]))
    if values is None:
        raise GraphveilError(f"{name!r} holds {column.type}, but lists of numbers are expected: drop the column.")
    part = np.zeros((len(lists), width), dtype=np.float32)
    part[np.asarray(lists.is_valid())] = np.nan_to_num(values).reshape(-1, width)
    return part


def _number_like(
    column: pa.ChunkedArray | None, name: str, rows: int, notes: list[str], cells: BadCells, missing: float
) -> NDArray[np.float64]:
    """A column as numbers, with `missing` for missing values, and for all if the column is missing or holds text."""
    values = None if column is None else _numbers(column, name, notes, cells)
    if values is None:
        if column is not None and not pa.types.is_null(column.type):
            notes.append(f"{name!r} held numbers and holds text now: all its values count as missing.")
        return np.full(rows, missing)
    return np.where(np.isnan(values), missing, values)
