"""Round the values of an embeddings file to a grid, so that low-order bits carry no hidden channel."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import safetensors.numpy
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file

from graphveil.auditing.embeddings import ID_COLUMNS, LISTS, MOST_BITS, UNREADABLE, value_bits
from graphveil.errors import GraphveilError, first_line
from graphveil.files import write_atomically
from graphveil.models.grid import Grid


def round_file(file: Path, out: Path) -> int:
    """Write a copy of a file with every column rounded to a grid.

    Ids and small integers are copied without change.

    Args:
        file: a file of embeddings: .npy, .npz, .parquet, .csv or .safetensors.
        out: a new file of the same format.

    Returns:
        The number of rounded columns.

    Raises:
        GraphveilError: if the file cannot be read, has nothing to round, or `out` cannot be used.
    """
    kinds = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".csv": _csv, ".safetensors": _safetensors}
    if file.suffix not in kinds:
        ending = f"ends in {file.suffix}" if file.suffix else "has no suffix"
        raise GraphveilError(f"{file} {ending}: expected one of {', '.join(kinds)}.")
    if out.suffix != file.suffix:
        raise GraphveilError(f"{out} does not end in {file.suffix}: the copy must have the same format as {file}.")
    if out.exists():
        raise GraphveilError(f"{out} already exists: give the name of a new file.")
    if not file.is_file():
        raise GraphveilError(f"{file} is not a file: give the file of the embeddings.")
    rounded = _Rounding()
    try:
        write = kinds[file.suffix](file, rounded)
    except (*UNREADABLE, SafetensorError, pa.ArrowException) as error:
        raise GraphveilError(f"{file} cannot be read as embeddings ({first_line(error)}): write it again.") from error
    if rounded.columns == 0:
        raise GraphveilError(f"{file} has no column with fractions or large integers: there is nothing to round.")
    write_atomically(out, write)
    return rounded.columns


class _Rounding:
    """Rounds arrays and tables, and counts the rounded columns."""

    columns = 0

    def __call__(self, array: NDArray[Any]) -> NDArray[Any]:
        """Round an array of shape (n,) or (n, columns) to float32; small integers and other types stay unchanged."""
        if array.dtype.kind not in "fiu" or array.ndim not in (1, 2):
            return array
        columns = array.astype(np.float64).reshape(len(array), -1)
        if not np.abs(columns).max(initial=0) < np.finfo(np.float32).max:
            raise ValueError("it contains a number that is not finite, or too large for float32")
        if array.dtype.kind != "f" and all(value_bits(column) <= MOST_BITS for column in columns.T):
            return array
        z = torch.from_numpy(columns)
        self.columns += z.size(1)
        result: NDArray[Any] = Grid.of(z)(z).float().numpy().reshape(array.shape)
        return result

    def all_of(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Round each array except ids."""
        return {name: array if name in ID_COLUMNS else self(array) for name, array in arrays.items()}

    def table(self, table: Any) -> Any:
        """Round each column of numbers or of lists of numbers, except ids."""
        ids = [name for name in ID_COLUMNS if name in table.column_names][:1]
        for place, name in enumerate(table.column_names):
            column = table.column(name).combine_chunks()
            if name in ids:
                continue
            if any(is_list(column.type) for is_list in LISTS):
                rows = self(np.stack([np.asarray(row, dtype=np.float64) for row in column.to_pylist()]))
                flat = pa.array(rows.ravel(), pa.float32())
                table = table.set_column(place, name, pa.FixedSizeListArray.from_arrays(flat, rows.shape[1]))
            elif pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
                table = table.set_column(place, name, pa.array(self(column.to_numpy(zero_copy_only=False))))
        return table


def _npy(file: Path, rounded: _Rounding) -> Any:
    array = rounded(np.load(file, allow_pickle=False))

    def write(path: Path) -> None:
        with path.open("wb") as opened:
            np.save(opened, array)

    return write


def _npz(file: Path, rounded: _Rounding) -> Any:
    with np.load(file, allow_pickle=False) as found:
        arrays = rounded.all_of(dict(found))

    def write(path: Path) -> None:
        with path.open("wb") as opened:
            np.savez(opened, **arrays)  # type: ignore[arg-type]

    return write


def _safetensors(file: Path, rounded: _Rounding) -> Any:
    found = {name: value.double() if value.is_floating_point() else value for name, value in load_file(file).items()}
    arrays = rounded.all_of({name: value.numpy() for name, value in found.items()})
    return lambda path: path.write_bytes(safetensors.numpy.save(arrays))


def _parquet(file: Path, rounded: _Rounding) -> Any:
    table = rounded.table(pq.read_table(file))
    return lambda path: pq.write_table(table, path)


def _csv(file: Path, rounded: _Rounding) -> Any:
    text = {name: pa.string() for name in ID_COLUMNS}
    found = pyarrow.csv.read_csv(file, convert_options=pyarrow.csv.ConvertOptions(column_types=text))
    table = rounded.table(found)
    return lambda path: pyarrow.csv.write_csv(table, path)
