"""Encode a column as the classes of a target, and a newer column as the same classes."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphveil.data.graph import UNKNOWN
from graphveil.data.readers.columns import NUMBER, BadCells, class_codes, mostly_numbers, numbers, text_numbers, words
from graphveil.data.readers.dates import are_dates, date_name, like_dates
from graphveil.errors import GraphveilError

NOTHING = ("",)
"""Texts that mean an unknown class. "None" is not one: in a column `illness` it means healthy, which is a class."""

MAX_NUMBERS = 20
"""How many different numbers can be classes without bins."""

MAX_CLASSES = 10_000
"""How many classes a target may have; above `MAX_NUMBERS`, at most half of the nodes may be alone in their class."""

Masked = np.ma.MaskedArray[Any, np.dtype[Any]]
"""Numbers, masked where they are unknown."""


@dataclass(frozen=True)
class Classes:
    """A column as classes.

    Args:
        codes: (rows,) int64, `UNKNOWN` where there is no value.
        names: The names of the classes 0, 1, ...
        cuts: The inner borders of the bins, if numbers were binned.
        lost: How many values belong to none of the classes.
    """

    codes: Tensor
    names: Sequence[str]
    cuts: Sequence[float] | None = None
    lost: int = 0


def encode_classes(
    column: pa.ChunkedArray,
    name: str,
    bins: int | None,
    notes: list[str],
    cells: BadCells,
    numeric_labels: bool = False,
) -> Classes:
    """Encode values as classes 0, 1, ... in the order of their names, or of the numbers.

    With bins, a value that is no number in a column of numbers is treated as in a feature. Without bins it is a class,
    as in a column of words.

    Args:
        column: The values.
        name: The name of the column.
        bins: The number of classes of about equal size to cut numbers into.
        notes: What was noticed is added to them.
        cells: What happens to values that are no numbers.
        numeric_labels: Whether whole numbers are classes, however many there are.
    """
    if bins is not None:
        values = _to_cut(column, name, notes, cells)
        if values is None:
            raise GraphveilError(
                f"{name!r} cannot be cut into {bins} bins, because it holds text{_example(column, name, cells)}: omit"
                " its bins, or correct the values that are not numbers or dates."
            )
        return _binned(values, bins, date_name if are_dates(column) else _short_name)
    values = _exact_numbers(column)
    if values is None:
        return _classes_of_words(column, name, notes, cells, numeric_labels)
    dates = are_dates(column)
    different = np.unique(values.compressed())
    if _are_many(different, numeric_labels and not dates):
        raise _many(name, f"{len(different):,} different {'dates' if dates else 'numbers'}")
    name_of = date_name if dates else number_name
    return _checked(Classes(_nearest(values, different), [name_of(value) for value in different]), name)


def encode_classes_like(
    column: pa.ChunkedArray,
    name: str,
    names: Sequence[str],
    cuts: Sequence[float] | None,
    notes: list[str],
    cells: BadCells,
) -> Classes:
    """Encode values as the classes of an earlier graph; values of no such class are unknown.

    If its classes are numbers or bins of numbers, a value that is no number is treated as in a feature.
    """
    if cuts is not None:
        values = _to_cut(column, name, notes, cells)
        if values is None:
            raise GraphveilError(
                f"{name!r} held numbers, which were cut into bins, and holds text now"
                f"{_example(column, name, cells)}: give numbers."
            )
        return Classes(_cut(values, np.asarray(cuts)), names, cuts)
    values = _exact_numbers(column)
    text = words(column, name, NOTHING) if values is None else _written(values, are_dates(column))
    codes = class_codes(text, names)
    if values is None and _lost(codes, text) and all(re.fullmatch(NUMBER, known) for known in names):
        found = mostly_numbers(column, name, notes, cells)
        if found is not None:  # the text "1.0" is of the class "1"
            written = _written(np.ma.masked_invalid(found), dates=False)
            text = pc.if_else(pa.array((codes != UNKNOWN).numpy()), text, written)
            codes = class_codes(text, names)
    return Classes(codes, names, lost=_lost(codes, text))


def number_name(value: np.number[Any]) -> str:
    """Return a number as the name of a class, with all its digits: different numbers have different names."""
    whole = isinstance(value, np.floating) and value.is_integer() and abs(int(value)) < 2**53
    return str(int(value) if whole else value)


def _exact_numbers(column: pa.ChunkedArray) -> Masked | None:
    """Numbers in their own type, or dates in days, masked where they are missing or infinite; None if it is text.

    Above 2^53, float64 has one value for several whole numbers, which would become one class.
    """
    if pa.types.is_integer(column.type):
        return np.ma.array(pc.fill_null(column, 0).to_numpy(), mask=np.asarray(column.is_null()))
    values = numbers(column)
    if values is None:
        return None
    kind = column.type.to_pandas_dtype() if pa.types.is_floating(column.type) else np.float64
    return np.ma.masked_invalid(values.astype(kind))


def _to_cut(column: pa.ChunkedArray, name: str, notes: list[str], cells: BadCells) -> NDArray[np.float64] | None:
    """A column of numbers or dates, or without any value; None if it holds text."""
    values = numbers(column)
    if values is None:
        values = mostly_numbers(column, name, notes, cells)
    if values is None and words(column, name).null_count == len(column):
        return np.full(len(column), np.nan)
    return values


def _example(column: pa.ChunkedArray, name: str, cells: BadCells) -> str:
    """A value for a message about a column of text: the first that is neither a number nor like a date."""
    found = text_numbers(column, name, cells)
    if found is None or not len(found.bad):
        return ""
    others = found.bad[~np.asarray(like_dates(found.text))[found.bad]]
    return f", such as {found.value((others if len(others) else found.bad)[0])}"


def _classes_of_words(
    column: pa.ChunkedArray, name: str, notes: list[str], cells: BadCells, numeric_labels: bool
) -> Classes:
    """Each value as a class; what is no number in a column of numbers is noted, and too many numbers are refused."""
    found = text_numbers(column, name, cells)
    if found is not None and found.mostly and (len(found.bad) or found.commas):
        different = np.unique(found.values[~np.isnan(found.values)])
        if _are_many(different, numeric_labels):
            besides = f", besides {found.value(found.bad[0])}" if len(found.bad) else ""
            raise _many(name, f"{len(different):,} different numbers{besides}")
        if len(found.bad):
            notes.append(f"{found.note('a class', 'classes')}; leave a cell empty if its value is unknown.")
    text = words(column, name, NOTHING)
    names = sorted(value for value in pc.unique(text).to_pylist() if value is not None)
    return _checked(Classes(class_codes(text, names), names), name)


def _are_many(different: NDArray[Any], numeric_labels: bool) -> bool:
    """Whether numbers are too many to be classes; `numeric_labels` as in `encode_classes`."""
    whole = bool((different == np.rint(different)).all())
    return len(different) > MAX_NUMBERS and not (numeric_labels and whole)


def _many(name: str, what: str) -> GraphveilError:
    return GraphveilError(
        f"{name!r} has {what}: cut it into bins of equal size, as in --bins {name}=4 (in Python: bins={{{name!r}: 4}}),"
        " or replace them by classes."
    )


def _written(values: Masked, dates: bool) -> pa.ChunkedArray:
    """Numbers or dates as the names of classes."""
    different = np.unique(values.compressed())
    name_of = date_name if dates else number_name
    place = pa.array(_nearest(values, different).numpy(), mask=np.ma.getmaskarray(values))
    return pa.chunked_array([pa.array([name_of(value) for value in different], pa.string()).take(place)])


def _lost(codes: Tensor, text: pa.ChunkedArray) -> int:
    """How many values belong to no class."""
    return int((codes == UNKNOWN).sum()) - int(text.null_count)


def _checked(classes: Classes, name: str) -> Classes:
    """Refuse values that identify nodes instead of grouping them."""
    sizes = torch.bincount(classes.codes[classes.codes != UNKNOWN])
    count, alone, known = len(classes.names), int((sizes == 1).sum()), int(sizes.sum())
    if count > MAX_CLASSES or (count > MAX_NUMBERS and 2 * alone > known):
        raise GraphveilError(
            f"{name!r} has {count:,} different values for {known:,} nodes, which are identifiers rather than classes:"
            " use another column, or cut numbers and dates into bins, as in --bins age=4."
        )
    return classes


def _nearest(values: Masked, different: NDArray[Any]) -> Tensor:
    codes = np.searchsorted(different, values.data)
    return torch.from_numpy(np.where(np.ma.getmaskarray(values), UNKNOWN, codes).astype(np.int64))


def _binned(values: NDArray[np.float64], bins: int, name_of: Callable[[np.float64], str]) -> Classes:
    known = values[~np.isnan(values)]
    if not len(known):
        return Classes(torch.full((len(values),), UNKNOWN), [])
    cuts = np.unique(np.quantile(known, np.arange(1, bins) / bins, method="higher"))
    cuts = cuts[cuts > known.min()]
    codes = _cut(values, cuts)
    names = []
    for code in range(len(cuts) + 1):
        inside = values[codes.numpy() == code]
        low, high = name_of(inside.min()), name_of(inside.max())
        names.append(low if low == high else f"{low} to {high}")
    return Classes(codes, names, cuts.tolist())


def _short_name(value: np.float64) -> str:
    """A number in the name of a bin; six digits are enough, since `Classes.cuts` decides which values it has."""
    return number_name(value) if value.is_integer() else f"{value:g}"


def _cut(values: NDArray[np.float64], cuts: NDArray[np.float64]) -> Tensor:
    codes = np.searchsorted(cuts, values, side="right")
    return torch.from_numpy(np.where(np.isnan(values), UNKNOWN, codes).astype(np.int64))
