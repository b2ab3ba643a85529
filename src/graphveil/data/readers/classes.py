"""Encode a column as the classes of a target, and a newer column as the same classes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphveil.data.graph import UNKNOWN
from graphveil.data.readers.columns import class_codes, numbers, words
from graphveil.data.readers.dates import are_dates, date_name
from graphveil.errors import GraphveilError

NOTHING = ("",)
"""Texts that mean an unknown class. "None" is not one: in a column `illness` it means healthy, which is a class."""

MAX_NUMBERS = 20
"""How many different numbers can be classes without bins."""

MAX_CLASSES = 10_000
"""How many classes a target may have; above `MAX_NUMBERS`, at most half of the nodes may be alone in their class."""


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


def encode_classes(column: pa.ChunkedArray, name: str, bins: int | None, numeric_labels: bool = False) -> Classes:
    """Encode values as classes 0, 1, ... in the order of their names, or of the numbers.

    Args:
        column: The values.
        name: The name of the column.
        bins: The number of classes of about equal size to cut numbers into.
        numeric_labels: Whether whole numbers are classes, however many there are.
    """
    values = numbers(column)
    if values is None:
        if bins is not None:
            raise GraphveilError(
                f"{name!r} cannot be cut into {bins} bins, because its values are text: omit its bins."
            )
        text = words(column, name, NOTHING)
        names = sorted(value for value in pc.unique(text).to_pylist() if value is not None)
        return _checked(Classes(class_codes(text, names), names), name)
    dates = are_dates(column)
    name_of = date_name if dates else number_name
    if bins is not None:
        return _binned(values, bins, name_of)
    different = np.unique(values[~np.isnan(values)])
    whole = bool((different == np.rint(different)).all())
    if len(different) > MAX_NUMBERS and not (numeric_labels and whole and not dates):
        raise GraphveilError(
            f"{name!r} has {len(different):,} different {'dates' if dates else 'numbers'}: cut it into bins of equal"
            f" size, as in --bins {name}=4 (in Python: bins={{{name!r}: 4}}), or replace them by classes."
        )
    return _checked(Classes(_nearest(values, different), [name_of(value) for value in different]), name)


def encode_classes_like(
    column: pa.ChunkedArray, name: str, names: Sequence[str], cuts: Sequence[float] | None
) -> Classes:
    """Encode values as the classes of an earlier graph; values of no such class are unknown."""
    values = numbers(column)
    if cuts is not None:
        if values is None and words(column, name).null_count < len(column):
            raise GraphveilError(f"{name!r} held numbers, which were cut into bins, and holds text now: give numbers.")
        values = np.full(len(column), np.nan) if values is None else values
        return Classes(_cut(values, np.asarray(cuts)), names, cuts)
    if values is None:
        text = words(column, name, NOTHING)
    else:
        different, place = np.unique(values, return_inverse=True)
        name_of = date_name if are_dates(column) else number_name
        written = pa.array([None if np.isnan(value) else name_of(value) for value in different], pa.string())
        text = pa.chunked_array([written.take(pa.array(place))])
    codes = class_codes(text, names)
    return Classes(codes, names, lost=int((codes == UNKNOWN).sum()) - text.null_count)


def number_name(value: float) -> str:
    """Return a number as the name of a class."""
    return str(int(value)) if value == np.rint(value) and abs(value) < 2**53 else f"{value:g}"


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


def _nearest(values: NDArray[np.float64], different: NDArray[np.float64]) -> Tensor:
    codes = np.searchsorted(different, values)
    return torch.from_numpy(np.where(np.isnan(values), UNKNOWN, codes).astype(np.int64))


def _binned(values: NDArray[np.float64], bins: int, name_of: Callable[[float], str]) -> Classes:
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


def _cut(values: NDArray[np.float64], cuts: NDArray[np.float64]) -> Tensor:
    codes = np.searchsorted(cuts, values, side="right")
    return torch.from_numpy(np.where(np.isnan(values), UNKNOWN, codes).astype(np.int64))
