"""Read and check embeddings from any source, and flag their shape."""

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
from graphveil.errors import GraphveilError, first_line
from graphveil.formats.audit import Flag

ID_COLUMNS = ("id", "node", "node_id", "index")
LISTS = (pyarrow.types.is_list, pyarrow.types.is_large_list, pyarrow.types.is_fixed_size_list)
MOST_BITS = 16
"""Bits of a value on a grid at most; `graphveil.models.grid` uses 7 or 8, and more in a column with outliers."""
MOST_STEPS = 62
"""Bits of a number of grid steps at most."""
UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, MemoryError, BadZipFile, zlib.error)


def read_embeddings(path: Path, ids: pa.Array) -> NDArray[Any]:
    """Read embeddings from a .npy, .npz, .parquet, .csv or .safetensors file.

    The values are those of the file bit for bit, because low-order bits can carry a secret. A column named id, node,
    node_id or index holds the node of each row; without it, the rows are in the order of the graph's nodes.

    Args:
        path: the file.
        ids: the ids of the graph's nodes, in their order.

    Returns:
        (num_nodes, channels), in the order of `ids`.
    """
    kinds = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".csv": _csv, ".safetensors": _safetensors}
    if path.suffix not in kinds:
        ending = f"ends in {path.suffix}" if path.suffix else "has no suffix"
        raise GraphveilError(f"{path} {ending}: expected one of {', '.join(kinds)}.")
    if not path.is_file():
        raise GraphveilError(f"{path} is not a file: give a file with embeddings.")
    try:
        array = kinds[path.suffix](path, ids)
    except (*UNREADABLE, SafetensorError, pyarrow.ArrowException) as error:
        raise GraphveilError(f"{path} cannot be read as embeddings ({first_line(error)}): write it again.") from error
    check_embeddings(array, len(ids), str(path))
    return array


def check_embeddings(z: Any, num_nodes: int, name: str = "z") -> Rows:
    """Check embeddings, and scale them as a whole by a power of two to values of at most 1, which loses no bit.

    Args:
        z: embeddings as an array or a tensor, (num_nodes, channels).
        num_nodes: the number of nodes of the graph.
        name: the name of the embeddings in error messages.

    Returns:
        (num_nodes, channels) in float64; all 0 if every node has the same row.
    """
    array = exact(z)
    if array.dtype.kind not in "fiub":
        raise GraphveilError(f"{name} holds {array.dtype}: expected numbers.")
    if array.ndim != 2 or array.shape[1] == 0:
        raise GraphveilError(f"{name} has shape {array.shape}: expected one row per node and at least one column.")
    if len(array) != num_nodes:
        raise GraphveilError(
            f"{name} has {len(array)} rows and the graph has {num_nodes} nodes: give one row per node."
        )
    given, array = array, array.astype(np.float64)
    finite = np.isfinite(array)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise GraphveilError(
            f"{name} holds {array[row, column]} in row {row}, column {column}: expected finite numbers."
        )
    if given.dtype.itemsize >= array.dtype.itemsize and (array.astype(given.dtype) != given).any():
        raise GraphveilError(
            f"{name} holds {given.dtype} numbers that float64 cannot represent exactly: save it as float64."
        )
    if (array == array[:1]).all():
        return np.zeros(array.shape)
    _, exponent = np.frexp(np.abs(array).max())
    rows: Rows = np.ldexp(array, -exponent)
    return rows


def exact(z: Any) -> NDArray[Any]:
    """The values as given, as a numpy array."""
    if isinstance(z, torch.Tensor):
        z = (z.double() if z.is_floating_point() else z).detach().cpu().numpy()
    return np.asarray(z)


def rows_digest(rows: Rows) -> str:
    """The digest of embeddings in an audit: the SHA-256 of what `check_embeddings` returned."""
    return hashlib.sha256(rows.ravel().data).hexdigest()


def shape_flags(z: Rows, discrete: bool = False) -> list[Flag]:
    """Flag dimensions that are constant, that repeat another, or that have values of more bits than a utility needs.

    Embeddings with the same row for every node have collapsed.

    Args:
        z: (num_nodes, channels) as `check_embeddings` returns it.
        discrete: whether z has few distinct rows; the bits of their values do not matter.
    """
    flags = []
    dead = np.ptp(z, axis=0) == 0
    if dead.all():
        return [Flag("collapsed", "every node has the same row, so the embeddings have no utility")]
    if dead.any():
        flags.append(Flag("dead dimensions", f"{dead.sum()} of {z.shape[1]} dimensions are constant"))
    alive = z[:, ~dead].astype(np.float64)
    alive = np.ldexp(alive, -np.frexp(np.abs(alive).max(axis=0))[1])  # so that squares do not underflow
    unit = alive - alive.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=0)
    alike = np.abs(unit.T @ unit) > 1 - 1e-9
    repeated = int(np.triu(alike, 1).any(axis=0).sum())
    if repeated:
        flags.append(Flag("duplicated dimensions", f"{repeated} of {z.shape[1]} dimensions repeat another"))
    bits = np.array([value_bits(column) for column in alive.T])
    if not discrete and (bits > MOST_BITS).any():
        flags.append(
            Flag(
                "not on a grid",
                f"{(bits > MOST_BITS).sum()} of {z.shape[1]} dimensions have values of up to {bits.max():.0f} bits."
                " A utility needs about 8. The other bits can carry a secret, and no search of them is complete:"
                " round the file with `graphveil grid`, and audit the rounded file",
            )
        )
    return flags


def value_bits(column: NDArray[Any]) -> float:
    """The bits of the values of a column, on the coarsest grid of a power of two that contains them all."""
    steps = whole_steps(column)
    return 64.0 if steps is None else float(np.log2(float(np.ptp(steps)) + 1))


def whole_steps(column: NDArray[Any]) -> Integers | None:
    """Each value as a multiple of the smallest step of the column; None if that takes more than 62 bits."""
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
    """The array named z or embeddings, or the only two-dimensional one; in the order of the nodes if it has ids."""
    matrices = [name for name in arrays if name in ("z", "embeddings", "embedding")] or [
        name for name, array in arrays.items() if array.ndim == 2
    ]
    if len(matrices) != 1:
        raise ValueError(f"it holds {', '.join(arrays) or 'no arrays'}, not one matrix named z")
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
    """Ids are compared as text, so that integers of another width, or from a text file, are equal."""
    place = pc.index_in(ids.cast(pa.string()), value_set=own.cast(pa.string()))
    if len(own) != len(ids) or len(array) != len(ids) or place.null_count or len(pc.unique(place)) != len(ids):
        raise ValueError(f"expected the ids of the graph's {len(ids)} nodes, {ids[0]} to {ids[-1]}, each once")
    result: NDArray[Any] = array[place.to_numpy()]
    return result
