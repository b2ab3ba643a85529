"""The values of a column, as numbers or as text."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphveil.data.graph import UNKNOWN
from graphveil.data.readers.dates import days
from graphveil.data.readers.text import MISSING
from graphveil.errors import GraphveilError

FEW_CATEGORIES = 50
"""How many categories a feature column may have in a table of any size."""

MAX_CATEGORIES = 1000
"""How many categories a feature column may have in a large table, up to a tenth of its rows."""


def numbers(column: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """Return a column of numbers, or of dates in days, with NaN for missing and infinite values; None if it is text."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return days(column)
    values = np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def words(column: pa.ChunkedArray, name: str, missing: Sequence[str] = MISSING) -> pa.ChunkedArray:
    """Return a column as text, with null for missing values and for the texts in `missing`."""
    try:
        text = pc.cast(column, pa.string())
    except pa.ArrowException as error:
        raise GraphveilError(
            f"the column {name!r} holds {column.type}: expected numbers or text; use --drop to exclude the column."
        ) from error
    is_missing = pc.is_in(text, value_set=pa.array(missing))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), text)


def are_identifiers(column: pa.ChunkedArray) -> bool:
    """Return whether values identify nodes instead of grouping them into classes."""
    if pa.types.is_nested(column.type):
        return True
    known = pc.drop_null(column)
    different = len(known.unique())
    return different > max(2 if different == len(known) else FEW_CATEGORIES, min(MAX_CATEGORIES, len(known) // 2))


def class_codes(text: pa.ChunkedArray, names: Sequence[str]) -> Tensor:
    """Return the index of each value in `names`, `UNKNOWN` if it is not among them."""
    codes = pc.fill_null(pc.index_in(text, value_set=pa.array(names, pa.string()), skip_nulls=True), UNKNOWN)
    return torch.from_numpy(np.array(codes.to_numpy(), dtype=np.int64))
