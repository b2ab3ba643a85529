"""From the columns of a table to features, and from a newer table to the same ones.

Numbers are standardised, words get a column a category, lists of numbers and counts of words stay as they are. What
was chosen is kept as the `Column`s of an `Encoding`, by which a newer table is encoded alike.
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
from graphveil.data.readers.columns import FEW_CATEGORIES, MOST_CATEGORIES, coded, numbers, words
from graphveil.data.readers.dates import are_dates
from graphveil.data.readers.safe_open import MOST_BYTES, MOST_COLUMNS
from graphveil.data.sentences import list_names, plural
from graphveil.data.sparse import csr
from graphveil.errors import GraphveilError

MANY = 50
"""Columns of counts from which on they are taken for words of a text."""

SPARSE = 0.1
"""Share of values other than zero below which features are stored sparse."""

Matrix = Any
"""A NumPy array of two dimensions, or a SciPy CSR matrix, which has no types of its own."""


@dataclass
class Pieces:
    """Features as they are put together: how each column is encoded, and what came of it."""

    columns: list[Column] = field(default_factory=list)
    parts: list[Matrix] = field(default_factory=list)

    def add(self, column: Column, part: Matrix) -> None:
        """One more."""
        self.columns.append(column)
        self.parts.append(part)


def features_of(table: Mapping[str, pa.ChunkedArray], rows: int, notes: list[str]) -> Pieces:
    """Encode columns as features, in their order; `notes` get to know what was left out, and why."""
    pieces = Pieces()
    numeric = {name: values for name, column in table.items() if (values := numbers(column)) is not None}
    bag = [name for name, values in numeric.items() if _is_count(values)] if len(numeric) > MANY else []
    if len(bag) > MANY:
        notes.append(f"{len(bag):,} columns of counts are taken as they are, for words of a text.")
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
                notes.append(f"The values of {name!r} are dates: counted in days.")
        elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or is_fixed(column.type):
            part = _matrix(column, name)
            pieces.add(Column(name, "matrix", part.shape[1]), part)
        else:
            _add_words(pieces, name, column, rows, notes)
    return pieces


def features_like(
    table: Mapping[str, pa.ChunkedArray | Matrix], columns: Sequence[Column], rows: int, notes: list[str]
) -> Pieces:
    """Encode columns as those of an earlier graph were."""
    pieces = Pieces()
    wanted = [name for column in columns for name in sources_of(column)]
    if missing := [name for name in wanted if name not in table]:
        notes.append(f"Known to the encoder, but not there, and filled with 0: {list_names(missing)}.")
    for column in columns:
        if column.kind == "matrix" and column.categories:
            parts = [_number_like(table.get(name), name, rows, notes, missing=0.0) for name in column.categories]
            pieces.add(column, _stacked(parts))
        elif column.name not in table:
            pieces.add(column, sp.csr_matrix((rows, column.width), dtype=np.float32))
        elif column.kind == "number":
            values = _number_like(table[column.name], column.name, rows, notes, missing=np.nan)
            standard = (values - column.mean) / column.deviation
            pieces.add(column, np.nan_to_num(standard).astype(np.float32)[:, None])
        elif column.kind == "category":
            text = words(table[column.name], column.name)
            codes = coded(text, column.categories)
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
    """The columns of a table that a column of features comes from."""
    return column.categories if column.kind == "matrix" and column.categories else [column.name]


def new_values(count: int, name: str) -> str:
    """The beginning of a sentence on values of a column that an earlier graph did not have."""
    one, several = "is new to the encoder and counts", "are new to the encoder and count"
    return plural(count, f"value of {name!r} {one}", f"values of {name!r} {several}")


def check_width(name: str, came: int, expected: int) -> None:
    """Refuse a matrix of another width than the encoder knows."""
    if came != expected:
        raise GraphveilError(
            f"{name!r} has {came:,} columns and the encoder was trained on {expected:,}: give as many."
        )


def together(parts: Sequence[Matrix], rows: int) -> Tensor:
    """Features as one float32 matrix: CSR where nearly all of it is zero, else dense."""
    width = sum(part.shape[1] for part in parts)
    if width > MOST_COLUMNS:
        raise GraphveilError(f"{width:,} columns of features, and at most {MOST_COLUMNS:,} are taken: drop some.")
    filled = sum(part.nnz if sp.issparse(part) else np.count_nonzero(part) for part in parts)
    fits = 4 * rows * width <= MOST_BYTES
    if not fits and 12 * filled > MOST_BYTES:
        raise GraphveilError(
            f"{rows:,} rows of {width:,} features do not fit into {MOST_BYTES >> 30} GiB: drop columns."
        )
    if not fits or (width > MANY and filled < SPARSE * rows * width):
        return as_csr(sp.hstack([sp.csr_matrix(part) for part in parts], format="csr"))
    dense = [part.toarray() if sp.issparse(part) else part for part in parts]
    return torch.from_numpy(np.ascontiguousarray(np.concatenate(dense, axis=1), dtype=np.float32))


def as_csr(matrix: Any) -> Tensor:
    """A SciPy matrix as a CSR tensor."""
    matrix = sp.csr_matrix(matrix, dtype=np.float32)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    crow, col = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    return csr(crow, col, torch.from_numpy(matrix.data), matrix.shape)


def is_fixed(kind: pa.DataType) -> bool:
    """Whether a column holds lists of one length."""
    return bool(pa.types.is_fixed_size_list(kind))


def _is_count(values: NDArray[np.float64]) -> bool:
    """Whole, never negative, and mostly zero: how often a word is in a text."""
    if np.count_nonzero(values) > len(values) / 2:  # NaN is not zero
        return False
    filled = values[values != 0]
    return bool((filled > 0).all() and (filled == np.rint(filled)).all())


def _stacked(columns: Sequence[NDArray[np.float64]]) -> Matrix:
    """Columns as one matrix, which is made from what is not zero."""
    rows = [np.flatnonzero(values) for values in columns]
    ends = np.cumsum([0, *map(len, rows)])
    data = [values[at] for values, at in zip(columns, rows, strict=True)]
    shape = (len(columns[0]), len(columns))
    parts = (np.concatenate(data).astype(np.float32), np.concatenate(rows), ends)
    return sp.csc_matrix(parts, shape=shape).tocsr()


def _add_number(pieces: Pieces, name: str, values: NDArray[np.float64], notes: list[str]) -> None:
    known = values[~np.isnan(values)]
    with np.errstate(over="ignore"):  # then it is not finite, and the column is left out
        mean, deviation = (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
    if not np.isfinite(mean) or not np.isfinite(deviation) or deviation <= 1e-12 * abs(mean):
        alike = "all its numbers are the same" if np.isfinite(deviation) else "its numbers are too large"
        notes.append(f"{name!r} is no feature: {alike if len(known) else 'it is empty'}.")
        return
    if count := len(values) - len(known):
        one, several = "is missing or infinite, and stands", "are missing or infinite, and stand"
        notes.append(plural(count, f"number of {name!r} {one}", f"numbers of {name!r} {several}") + " as its mean.")
    part = np.nan_to_num((values - mean) / deviation).astype(np.float32)[:, None]
    pieces.add(Column(name, "number", 1, mean, deviation), part)


def _add_words(pieces: Pieces, name: str, column: pa.ChunkedArray, rows: int, notes: list[str]) -> None:
    try:
        text = words(column, name)
    except GraphveilError:
        notes.append(f"{name!r} is no feature: it holds {column.type}.")
        return
    names = sorted(value for value in pc.unique(text).to_pylist() if value is not None)
    if len(names) > 2 and len(names) == rows - text.null_count:
        notes.append(f"{name!r} is no feature: every word is another.")
    elif len(names) > max(FEW_CATEGORIES, min(MOST_CATEGORIES, rows // 10)):
        notes.append(f"{name!r} is no feature: it has {len(names):,} different words.")
    elif len(names) < 2 and not text.null_count:
        notes.append(f"{name!r} is no feature: all its words are the same.")
    elif not names:
        notes.append(f"{name!r} is no feature: it is empty.")
    else:
        pieces.add(Column(name, "category", len(names), categories=names), _one_hot(coded(text, names), len(names)))


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
            f"the lists of {name!r} have from {min(lengths)} to {max(lengths)} values: give one length."
        )
    width = lengths[0] if lengths else 0
    if width > MOST_COLUMNS or 4 * width * len(lists) > MOST_BYTES:
        raise GraphveilError(f"the lists of {name!r} have {width:,} values each, which is too many: drop the column.")
    values = numbers(pa.chunked_array([pc.list_flatten(lists)]))
    if values is None:
        raise GraphveilError(f"{name!r} holds {column.type}, but lists of numbers are expected: drop the column.")
    part = np.zeros((len(lists), width), dtype=np.float32)
    part[np.asarray(lists.is_valid())] = np.nan_to_num(values).reshape(-1, width)
    return part


def _number_like(
    column: pa.ChunkedArray | None, name: str, rows: int, notes: list[str], missing: float
) -> NDArray[np.float64]:
    """A column as numbers, or `missing` where it is not there, or no number."""
    values = None if column is None else numbers(column)
    if values is None:
        if column is not None and not pa.types.is_null(column.type):
            notes.append(f"{name!r} was numbers and is words now: all of it counts as missing.")
        return np.full(rows, missing)
    return np.where(np.isnan(values), missing, values)
