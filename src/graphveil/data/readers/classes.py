"""From a column to the classes of a target, and from a newer column to the same ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphveil.data.graph import UNKNOWN
from graphveil.data.readers.columns import coded, numbers, words
from graphveil.errors import GraphveilError

NOTHING = ("",)
"""All that stands for no class: who has the illness "None" is healthy, and that is a secret like any other."""

MOST_NUMBERS = 20
"""Different numbers that are classes as they are; of more, bins must be made."""

MOST_CLASSES = 10_000
"""Of one target."""


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
        _check_count(len(names), name)
        return Classes(coded(text, names), names)
    if bins is not None:
        return _binned(values, name, bins)
    different = np.unique(values[~np.isnan(values)])
    whole = bool((different == np.rint(different)).all())
    if len(different) > MOST_NUMBERS and not (numeric_labels and whole):
        raise GraphveilError(
            f"{name!r} has {len(different):,} different numbers: cut it into bins of equal size, as in --bins {name}=4"
            f" (or bins={{{name!r}: 4}}), or make words of them."
        )
    _check_count(len(different), name)
    return Classes(_nearest(values, different), [number_name(value) for value in different])


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
        written = pa.array([None if np.isnan(value) else number_name(value) for value in different], pa.string())
        text = pa.chunked_array([written.take(pa.array(place))])
    codes = coded(text, names)
    return Classes(codes, names, lost=int((codes == UNKNOWN).sum()) - text.null_count)


def number_name(value: float) -> str:
    """A number as the name of a class."""
    return str(int(value)) if value == np.rint(value) and abs(value) < 2**53 else f"{value:g}"


def _check_count(count: int, name: str) -> None:
    if count > MOST_CLASSES:
        raise GraphveilError(f"{name!r} has {count:,} different values, which are names rather than classes.")


def _nearest(values: NDArray[np.float64], different: NDArray[np.float64]) -> Tensor:
    codes = np.searchsorted(different, values)
    return torch.from_numpy(np.where(np.isnan(values), UNKNOWN, codes).astype(np.int64))


def _binned(values: NDArray[np.float64], name: str, bins: int) -> Classes:
    known = values[~np.isnan(values)]
    if not len(known):
        return Classes(torch.full((len(values),), UNKNOWN), [])
    cuts = np.unique(np.quantile(known, np.arange(1, bins) / bins, method="higher"))
    cuts = cuts[cuts > known.min()]
    _check_count(len(cuts), name)
    codes = _cut(values, cuts)
    names = []
    for code in range(len(cuts) + 1):
        inside = values[codes.numpy() == code]
        low, high = number_name(inside.min()), number_name(inside.max())
        names.append(low if low == high else f"{low} to {high}")
    return Classes(codes, names, cuts.tolist())


def _cut(values: NDArray[np.float64], cuts: NDArray[np.float64]) -> Tensor:
    codes = np.searchsorted(cuts, values, side="right")
    return torch.from_numpy(np.where(np.isnan(values), UNKNOWN, codes).astype(np.int64))
