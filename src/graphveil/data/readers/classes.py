"""From a column to the classes of a target, and from a newer column to the same ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphveil.data.graph import UNKNOWN
from graphveil.data.readers.columns import coded, numbers, words
from graphveil.data.readers.dates import are_dates, date_name
from graphveil.errors import GraphveilError

NOTHING = ("",)
"""All that stands for no class: who has the illness "None" is healthy, and that is a secret like any other."""

MOST_NUMBERS = 20
"""Different numbers that are classes as they are; of more, bins must be made."""

MOST_CLASSES = 10_000
"""Of one target; and from `MOST_NUMBERS` on, at most half of the nodes may be the only one of their class."""


@dataclass(frozen=True)
class Classes:
    """A column as classes.

    Args:
        codes: (rows,) int64, `UNKNOWN` where there is no value.
        names: of the classes 0, 1, ...; cuts: inner borders of bins, where numbers were binned.
        lost: how many values are of no known class.
    """

    codes: Tensor
    names: Sequence[str]
    cuts: Sequence[float] | None = None
    lost: int = 0


def classes_of(column: pa.ChunkedArray, name: str, bins: int | None, numeric_labels: bool = False) -> Classes:
    """Values as classes 0, 1, ... in the order of their names, or of the numbers.

    Args:
        bins: into how many classes of about equal size numbers are cut.
        numeric_labels: whole numbers are names of classes, however many there are.
    """
    values = numbers(column)
    if values is None:
        if bins is not None:
            raise GraphveilError(
                f"{name!r} is to be cut into {bins} bins, but its values are words: leave out its bins."
            )
        text = words(column, name, NOTHING)
        names = sorted(value for value in pc.unique(text).to_pylist() if value is not None)
        return _checked(Classes(coded(text, names), names), name)
    dates = are_dates(column)
    called = date_name if dates else number_name
    if bins is not None:
        return _binned(values, bins, called)
    different = np.unique(values[~np.isnan(values)])
    whole = bool((different == np.rint(different)).all())
    if len(different) > MOST_NUMBERS and not (numeric_labels and whole and not dates):
        raise GraphveilError(
            f"{name!r} has {len(different):,} different {'dates' if dates else 'numbers'}: cut it into bins of equal"
            f" size, as in --bins {name}=4 (or bins={{{name!r}: 4}}), or make {'fewer' if dates else 'words'} of them."
        )
    return _checked(Classes(_nearest(values, different), [called(value) for value in different]), name)


def classes_like(column: pa.ChunkedArray, name: str, names: Sequence[str], cuts: Sequence[float] | None) -> Classes:
    """Values as the classes of an earlier graph; those that it did not have are unknown."""
    values = numbers(column)
    if cuts is not None:
        if values is None and words(column, name).null_count < len(column):
            raise GraphveilError(f"{name!r} was numbers, cut into bins, and is words now: give numbers.")
        values = np.full(len(column), np.nan) if values is None else values
        return Classes(_cut(values, np.asarray(cuts)), names, cuts)
    if values is None:
        text = words(column, name, NOTHING)
    else:
        different, place = np.unique(values, return_inverse=True)
        called = date_name if are_dates(column) else number_name
        written = pa.array([None if np.isnan(value) else called(value) for value in different], pa.string())
        text = pa.chunked_array([written.take(pa.array(place))])
    codes = coded(text, names)
    return Classes(codes, names, lost=int((codes == UNKNOWN).sum()) - text.null_count)


def number_name(value: float) -> str:
    """A number as the name of a class."""
    return str(int(value)) if value == np.rint(value) and abs(value) < 2**53 else f"{value:g}"


def _checked(classes: Classes, name: str) -> Classes:
    """Refuse what tells nodes apart rather than puts them into classes."""
    sizes = torch.bincount(classes.codes[classes.codes != UNKNOWN])
    count, alone, known = len(classes.names), int((sizes == 1).sum()), int(sizes.sum())
    if count > MOST_CLASSES or (count > MOST_NUMBERS and 2 * alone > known):
        raise GraphveilError(
            f"{name!r} has {count:,} different values for {known:,} nodes, which are names rather than classes: take"
            " another column, or make fewer of them; numbers and dates can be cut into bins, as in --bins age=4."
        )
    return classes


def _nearest(values: NDArray[np.float64], different: NDArray[np.float64]) -> Tensor:
    codes = np.searchsorted(different, values)
    return torch.from_numpy(np.where(np.isnan(values), UNKNOWN, codes).astype(np.int64))


def _binned(values: NDArray[np.float64], bins: int, called: Callable[[float], str]) -> Classes:
    known = values[~np.isnan(values)]
    if not len(known):
        return Classes(torch.full((len(values),), UNKNOWN), [])
    cuts = np.unique(np.quantile(known, np.arange(1, bins) / bins, method="higher"))
    cuts = cuts[cuts > known.min()]
    codes = _cut(values, cuts)
    names = []
    for code in range(len(cuts) + 1):
        inside = values[codes.numpy() == code]
        low, high = called(inside.min()), called(inside.max())
        names.append(low if low == high else f"{low} to {high}")
    return Classes(codes, names, cuts.tolist())


def _cut(values: NDArray[np.float64], cuts: NDArray[np.float64]) -> Tensor:
    codes = np.searchsorted(cuts, values, side="right")
    return torch.from_numpy(np.where(np.isnan(values), UNKNOWN, codes).astype(np.int64))
