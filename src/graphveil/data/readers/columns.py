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
from graphveil.data.sentences import plural
from graphveil.errors import GraphveilError, shortened

FEW_CATEGORIES = 50
"""How many categories a feature column may have in a table of any size."""

MAX_CATEGORIES = 1000
"""How many categories a feature column may have in a large table, up to a tenth of its rows."""


MOSTLY = 0.9
"""The share of known values that must be numbers, so that the others are errors and not words."""
NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"


def numbers(column: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """Return a column of numbers, or of dates in days, with NaN for missing and infinite values; None if it is text."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return days(column)
    values = np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def mostly_numbers(
    column: pa.ChunkedArray, name: str, notes: list[str], bad_values: str = "missing"
) -> NDArray[np.float64] | None:
    """Return a column of text whose known values are mostly numbers as numbers, with NaN for the others; else None.

    A number may have a decimal comma. What was read in this way, and which values are no numbers, is added to `notes`.

    Args:
        column: The column.
        name: Its name.
        notes: What was noticed.
        bad_values: Whether values that are not numbers count as "missing", or "refuse" the column.
    """
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    text = pc.utf8_trim_whitespace(words(column, name))
    comma = pc.fill_null(pc.match_substring_regex(text, r"^[+-]?\d+,\d+$"), False)
    plain = pc.if_else(comma, pc.replace_substring(text, ",", "."), text)
    is_number = pc.fill_null(pc.match_substring_regex(plain, NUMBER), False)
    known = len(text) - text.null_count
    count = pc.sum(is_number).as_py() or 0
    if count < MOSTLY * known or count < 2:
        return None
    if commas := pc.sum(comma).as_py():
        notes.append(f"{plural(commas, 'value')} of {name!r} with a decimal comma: read as numbers.")
    if count < known:
        bad = pc.and_(pc.invert(is_number), pc.is_valid(text)).to_numpy(zero_copy_only=False).nonzero()[0]
        first = f"{shortened(str(text[int(bad[0])].as_py()), 40)!r} in row {bad[0] + 1:,}"
        if bad_values == "refuse":
            raise GraphveilError(
                f"{first} of {name!r} is not a number, but {plural(count, 'other value')} of this column are: correct"
                " it, drop the column, or let such values count as missing (--bad-values missing)."
            )
        singular, several = "is not a number and counts as missing", "are not numbers and count as missing"
        which = plural(len(bad), f"value of {name!r} {singular}", f"values of {name!r} {several}")
        notes.append(f"{which}: {'' if len(bad) == 1 else 'the first is '}{first}.")
    values = pc.cast(pc.if_else(is_number, plain, pa.scalar(None, plain.type)), pa.float64())
    return np.asarray(values.to_numpy(), dtype=np.float64)


def missing_words(column: pa.ChunkedArray) -> list[str]:
    """Return the texts of a column that mean a missing value, without the empty one."""
    found = pc.unique(column).to_pylist()
    return [word for word in MISSING if word and word in found]


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
