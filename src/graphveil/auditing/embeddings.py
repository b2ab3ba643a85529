"""Embeddings from anybody: read from a file, refused in one sentence if they cannot be what they should be."""

import hashlib
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import safetensors.torch
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError

from graphveil.auditing.learners import Rows
from graphveil.auditing.metrics import Integers
from graphveil.errors import GraphveilError
from graphveil.formats.audit import Flag

ID_COLUMNS = ("id", "node", "node_id", "index")
LISTS = (pyarrow.types.is_list, pyarrow.types.is_large_list, pyarrow.types.is_fixed_size_list)
MOST_BITS = 16
"""Of a value on a grid; `graphveil.models.grid` takes 7 or 8, and more where a column has values far out."""
MOST_STEPS = 62
"""Bits of a number of steps."""
UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, MemoryError, BadZipFile, zlib.error)


def read_embeddings(path: Path, ids: pa.Array) -> NDArray[Any]:
    """(num_nodes, channels) from .npy, .npz, .parquet, .csv or .safetensors, in the order of the graph's nodes.

    The values are those of the file, bit for bit, because a secret can hide in the last of them. A column called id,
    node, node_id or index says which node a row is; without one the rows are in order.

    Args:
        ids: the nodes' own.
    """
    kinds = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".csv": _csv, ".safetensors": _safetensors}
    if path.suffix not in kinds:
        raise GraphveilError(f"{path} ends in {path.suffix or 'nothing'}: expected one of {', '.join(kinds)}.")
    if not path.is_file():
        raise GraphveilError(f"{path} is not a file: give the file of the embeddings.")
    try:
        array = kinds[path.suffix](path, ids)
    except (*UNREADABLE, SafetensorError, pyarrow.ArrowException) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise GraphveilError(f"{path} cannot be read as embeddings ({reason}): write it again.") from error
    check_embeddings(array, len(ids), str(path))
    return array


def check_embeddings(z: Any, num_nodes: int, name: str = "z") -> Rows:
    """One row a node in float64, scaled as a whole by a power of two to numbers of about 1: not a bit is lost."""
    array = exact(z)
    if array.dtype.kind not in "fiub":
        raise GraphveilError(f"{name} holds {array.dtype}: expected numbers.")
    if array.ndim != 2 or array.shape[1] == 0:
        raise GraphveilError(f"{name} has shape {array.shape}: expected one row a node and at least one column.")
    if len(array) != num_nodes:
        raise GraphveilError(f"{name} has {len(array)} rows and the graph has {num_nodes} nodes: give one row a node.")
    given, array = array, array.astype(np.float64)
    finite = np.isfinite(array)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise GraphveilError(
            f"{name} holds {array[row, column]} in row {row}, column {column}: expected finite numbers."
        )
    if given.dtype.itemsize >= array.dtype.itemsize and (array.astype(given.dtype) != given).any():
        raise GraphveilError(
            f"{name} holds {given.dtype} numbers that float64 has not the bits for: write it as float64 or less."
        )
    if (array == array[:1]).all():
        return np.zeros(array.shape)
    _, exponent = np.frexp(np.abs(array).max())
    rows: Rows = np.ldexp(array, -exponent)
    return rows


def exact(z: Any) -> NDArray[Any]:
    """The values as they are given, as an array of numpy's."""
    if isinstance(z, torch.Tensor):
        z = (z.double() if z.is_floating_point() else z).detach().cpu().numpy()
    return np.asarray(z)


def rows_digest(rows: Rows) -> str:
    """What an audit says it is of: a SHA-256 of what `check_embeddings` gave."""
    return hashlib.sha256(rows.tobytes()).hexdigest()


def shape_flags(z: Rows, discrete: bool = False) -> list[Flag]:
    """Dimensions that never change, those that repeat another, and finer values than a use needs.

    One row for all nodes is a collapse.

    Args:
        discrete: whether z has few distinct rows, which are counted however fine their values are.
    """
    flags = []
    dead = np.ptp(z, axis=0) == 0
    if dead.all():
        return [Flag("collapsed", "every node has the same row, which says nothing about any secret or any use")]
    if dead.any():
        flags.append(Flag("dead dimensions", f"{dead.sum()} of {z.shape[1]} never change"))
    alive = z[:, ~dead].astype(np.float64)
    alive = np.ldexp(alive, -np.frexp(np.abs(alive).max(axis=0))[1])  # beside a huge column squares would be 0
    unit = alive - alive.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=0)
    alike = np.abs(unit.T @ unit) > 1 - 1e-9
    repeated = int(np.triu(alike, 1).any(axis=0).sum())
    if repeated:
        flags.append(Flag("duplicated dimensions", f"{repeated} of {z.shape[1]} repeat another"))
    bits = np.array([value_bits(column) for column in alive.T])
    if not discrete and (bits > MOST_BITS).any():
        flags.append(
            Flag(
                "not on a grid",
                f"{(bits > MOST_BITS).sum()} of {z.shape[1]} dimensions have values of up to {bits.max():.0f} bits."
                " A use needs about 8: a secret can hide in the rest, and no search of them is complete;"
                " round the file with `graphveil grid` and audit what it wrote",
            )
        )
    return flags


def value_bits(column: NDArray[Any]) -> float:
    """How many bits tell the values of a column apart, on the coarsest grid of a power of two that has them all."""
    steps = whole_steps(column)
    return 64.0 if steps is None else float(np.log2(float(np.ptp(steps)) + 1))


def whole_steps(column: NDArray[Any]) -> Integers | None:
    """How many times the smallest step of the column each value is; None if that takes more than 62 bits."""
    mantissa, exponent = np.frexp(column)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    used = whole != 0
    if not used.any():
        return np.zeros(len(column), dtype=np.int64)
    lowest = (whole & -whole)[used].astype(np.float64)  # the lowest bit that is set
    smallest = int((np.frexp(lowest)[1] + exponent[used]).min()) - 54
    if int(exponent[used].max()) - smallest > MOST_STEPS:
        return None
    steps: Integers = np.ldexp(column, -smallest).astype(np.int64)
    return steps


def _npy(path: Path, ids: pa.Array) -> NDArray[Any]:  # noqa: ARG001 - no ids in an array
    result: NDArray[Any] = np.load(path, allow_pickle=False)
    return result


def _npz(path: Path, ids: pa.Array) -> NDArray[Any]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return _one_of(dict(arrays), ids)


def _safetensors(path: Path, ids: pa.Array) -> NDArray[Any]:
    arrays = {
        key: (value.double() if value.is_floating_point() else value).numpy()
        for key, value in safetensors.torch.load_file(path).items()
    }
    return _one_of(arrays, ids)


def _one_of(arrays: dict[str, NDArray[Any]], ids: pa.Array) -> NDArray[Any]:
    """The only two-dimensional array, or the one called z or embeddings; in order of its ids, where it has some."""
    matrices = [name for name in arrays if name in ("z", "embeddings", "embedding")] or [
        name for name, array in arrays.items() if array.ndim == 2
    ]
    if len(matrices) != 1:
        raise ValueError(f"it holds {', '.join(arrays) or 'no arrays'}, not one matrix called z")
    array = arrays[matrices[0]]
    own = [arrays[name] for name in ID_COLUMNS if name in arrays]
    return _in_order(array, pa.array(own[0]), ids) if own else array


def _parquet(path: Path, ids: pa.Array) -> NDArray[Any]:
    return _from_table(pq.read_table(path), ids)


def _csv(path: Path, ids: pa.Array) -> NDArray[Any]:
    text = {name: pa.string() for name in ID_COLUMNS}  # 007 is not 7
    return _from_table(pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(column_types=text)), ids)


def _from_table(table: Any, ids: pa.Array) -> NDArray[Any]:
    own = [name for name in ID_COLUMNS if name in table.column_names]
    columns = [name for name in table.column_names if name not in own[:1]]
    arrays = []
    for name in columns:
        column = table.column(name).combine_chunks()
        if any(is_list(column.type) for is_list in LISTS):
            arrays.append(np.stack([np.asarray(row, dtype=np.float64) for row in column.to_pylist()]))
        elif pyarrow.types.is_floating(column.type) or pyarrow.types.is_integer(column.type):
            arrays.append(column.to_numpy(zero_copy_only=False)[:, None])
        else:
            raise ValueError(f"column {name!r} holds {column.type}, not numbers")
    if not arrays:
        raise ValueError("it has no column of numbers")
    array = np.concatenate(arrays, axis=1)
    return _in_order(array, table.column(own[0]).combine_chunks(), ids) if own else array


def _in_order(array: NDArray[Any], own: pa.Array, ids: pa.Array) -> NDArray[Any]:
    """Ids are compared as text, so that numbers of another width, or from a file of text, are the same."""
    place = pc.index_in(ids.cast(pa.string()), value_set=own.cast(pa.string()))
    if len(own) != len(ids) or len(array) != len(ids) or place.null_count or len(pc.unique(place)) != len(ids):
        raise ValueError(f"its ids are not the graph's {len(ids)} nodes, {ids[0]} to {ids[-1]}, each once")
    result: NDArray[Any] = array[place.to_numpy()]
    return result
