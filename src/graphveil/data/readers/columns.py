"""The values of a column, as numbers or as words."""

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
"""Categories that a column may have in any table."""

MOST_CATEGORIES = 1000
"""Categories that a column may have in a large one, up to a tenth of its rows."""


def numbers(column: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """The values of a column of numbers, or of dates in days, NaN where there is none that is finite; else None."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return days(column)
    values = np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def words(column: pa.ChunkedArray, name: str, missing: Sequence[str] = MISSING) -> pa.ChunkedArray:
    """The values of a column as text, null where there is none, or one of the words `missing`."""
    try:
        text = pc.cast(column, pa.string())
    except pa.ArrowException as error:
        raise GraphveilError(
            f"the column {name!r} holds {column.type}, which is neither a number nor a word."
        ) from error
    none = pc.is_in(text, value_set=pa.array(missing))
    return pc.if_else(none, pa.scalar(None, pa.string()), text)


def are_names(column: pa.ChunkedArray) -> bool:
    """Whether values tell nodes apart rather than put them into classes."""
    if pa.types.is_nested(column.type):
        return True
    known = pc.drop_null(column)
    different = len(known.unique())
    return different > max(2 if different == len(known) else FEW_CATEGORIES, min(MOST_CATEGORIES, len(known) // 2))


def coded(text: pa.ChunkedArray, names: Sequence[str]) -> Tensor:
    """The place of each value among the names, `UNKNOWN` where it is none of them."""
    found = pc.fill_null(pc.index_in(text, value_set=pa.array(names, pa.string()), skip_nulls=True), UNKNOWN)
    return torch.from_numpy(np.array(found.to_numpy(), dtype=np.int64))
