"""Convert dates to days since 1970, and days to dates."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphveil.data.readers.text import MISSING

_BEGINNING = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def days(column: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """Return a column of dates, with or without times, as days since 1970, with NaN for missing values.

    Text counts as dates if every value has the form 2024-04-30 or 2024-04-30 12:57:00.

    Returns:
        (rows,), or None if the column does not hold dates.
    """
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = _from_words(column)
    kind = column.type
    if pa.types.is_date32(kind):
        whole, a_day = pc.cast(column, pa.int32()), 1
    elif pa.types.is_date64(kind) or pa.types.is_timestamp(kind):
        whole, a_day = pc.cast(column, pa.int64()), _A_DAY["ms" if pa.types.is_date64(kind) else kind.unit]
    else:
        return None
    known = np.asarray(column.is_valid().to_numpy(), dtype=bool)
    counted = np.asarray(pc.fill_null(whole, 0).to_numpy(), dtype=np.float64) / a_day
    return np.where(known, counted, np.nan)


def are_dates(column: pa.ChunkedArray) -> bool:
    """Return whether a column holds dates."""
    return days(column) is not None


def like_dates(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return whether each value begins like a date."""
    return pc.fill_null(pc.match_substring_regex(text, r"^\d{4}-\d{2}-\d{2}"), False)


def date_name(day: float) -> str:
    """Return the date of a number of days, with the time unless it is midnight: 2024-04-30 12:57:00."""
    moment = np.datetime64(round(day * _A_DAY["us"]), "us")
    date, _, time = str(moment).partition("T")
    return date if time == "00:00:00.000000" else f"{date} {time.removesuffix('.000000')}"


def _from_words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as timestamps if all values can be converted, else unchanged."""
    known = pc.if_else(pc.is_in(column, value_set=pa.array(MISSING, column.type)), pa.scalar(None, column.type), column)
    first = pc.index(known.is_valid(), True).as_py()
    if first < 0 or not _BEGINNING.match(known[first].as_py()):
        return column
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return pc.cast(known, kind)
        except pa.ArrowException:
            continue
    return column
