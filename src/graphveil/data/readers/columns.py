"""The values of a column, as numbers or as text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

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


MOST_BAD_CELLS = 0.1
"""The largest share of the known values of a column of numbers that may be no numbers; else the column holds words."""

FEWEST_NUMBERS = 3
"""As many numbers make a column one of numbers in spite of a single other value, whatever the share of that value."""

NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"

DECIMAL_COMMA = r"^[+-]?\d+,\d+$"

THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+$"
"""Commas that may separate thousands. The comma of 1,234 may also be a decimal comma, but not if 1,5 is beside it."""


def numbers(column: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """Return a column of numbers, or of dates in days, with NaN for missing and infinite values; None if it is text."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return days(column)
    values = np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


@dataclass(frozen=True)
class BadCells:
    """What happens to values that are no numbers in a column of numbers.

    Args:
        choice: "missing" counts them as missing values, and "refuse" refuses the column.
        where: Where a row is, for messages: "in line 8 of nodes.csv".
    """

    choice: Literal["missing", "refuse"]
    where: Callable[[int], str]


@dataclass(frozen=True)
class TextNumbers:
    """A column of text as numbers.

    Args:
        name: The name of the column.
        text: The values, null where they are missing.
        values: (rows,), NaN where a value is missing or no number.
        bad: The rows with a value that is no number.
        commas: How many numbers have a comma.
        ambiguous: The first row whose comma may separate decimals or thousands, if no value shows which.
        where: As in `BadCells`.
    """

    name: str
    text: pa.ChunkedArray
    values: NDArray[np.float64]
    bad: NDArray[np.intp]
    commas: int
    ambiguous: int | None
    where: Callable[[int], str]

    @property
    def count(self) -> int:
        """How many values are numbers."""
        return len(self.text) - int(self.text.null_count) - len(self.bad)

    @property
    def mostly(self) -> bool:
        """Whether this is a column of numbers, so that its other values are errors and not words.

        At most a tenth of the known values are others; in a short column it may be one value beside three numbers.
        """
        few = len(self.bad) <= MOST_BAD_CELLS * (self.count + len(self.bad))
        return self.count >= 2 and (few or (len(self.bad) == 1 and self.count >= FEWEST_NUMBERS))

    def value(self, row: int) -> str:
        """Return the value of a row and where it is: "'x7' in line 8 of nodes.csv"."""
        return f"{shortened(str(self.text[int(row)]), 40)!r} {self.where(int(row))}"

    def note(self, singular: str, several: str) -> str:
        """Return a note about the values that are no numbers: what one counts as, and what several count as."""
        number, numbers = f"is not a number and counts as {singular}", f"are not numbers and count as {several}"
        which = plural(len(self.bad), f"value of {self.name!r} {number}", f"values of {self.name!r} {numbers}")
        return f"{which}: {'' if len(self.bad) == 1 else 'the first is '}{self.value(self.bad[0])}"


def text_numbers(column: pa.ChunkedArray, name: str, cells: BadCells) -> TextNumbers | None:
    """Return a column of text as numbers, which may have commas; None if it is of another type."""
    if not is_text(column.type):
        return None
    text = pc.utf8_trim_whitespace(words(column, name))
    comma, thousands = (
        pc.fill_null(pc.match_substring_regex(text, form), False) for form in (DECIMAL_COMMA, THOUSANDS)
    )
    ambiguous = None
    if pc.any(comma).as_py() and not pc.any(pc.and_not(comma, thousands)).as_py():
        ambiguous, comma = pc.index(comma, True).as_py(), thousands
    plain = pc.if_else(comma, pc.replace_substring(text, ",", "." if ambiguous is None else ""), text)
    is_number = pc.fill_null(pc.match_substring_regex(plain, NUMBER), False)
    values = pc.cast(pc.if_else(is_number, plain, pa.scalar(None, plain.type)), pa.float64())
    bad = np.flatnonzero(pc.and_(pc.invert(is_number), pc.is_valid(text)))
    commas = pc.sum(comma).as_py() or 0
    return TextNumbers(name, text, np.asarray(values.to_numpy(), dtype=np.float64), bad, commas, ambiguous, cells.where)


def mostly_numbers(column: pa.ChunkedArray, name: str, notes: list[str], cells: BadCells) -> NDArray[np.float64] | None:
    """Return a column of text that holds numbers as numbers, with NaN for its other values; else None.

    What was read in this way, and which values are no numbers, is added to `notes`.
    """
    found = text_numbers(column, name, cells)
    if found is None or not found.mostly:
        return None
    if found.ambiguous is not None:
        number = found.text[found.ambiguous].as_py()
        meanings = f"{number.replace(',', '')} or {number.replace(',', '.')}"
        raise GraphveilError(
            f"{found.value(found.ambiguous)} may mean {meanings}, since every comma in {name!r} is followed by exactly"
            " three digits: write the numbers of this column without commas, or drop it."
        )
    if found.commas:
        notes.append(f"{plural(found.commas, 'value')} of {name!r} with a decimal comma: read as numbers.")
    if len(found.bad) and cells.choice == "refuse":
        raise GraphveilError(
            f"{found.value(found.bad[0])} is not a number, but {plural(found.count, 'other value')} of {name!r} are:"
            " correct it, drop the column, or let such values count as missing (--bad-values missing)."
        )
    if len(found.bad):
        notes.append(f"{found.note('missing', 'missing')}.")
    return found.values


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is that of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


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
