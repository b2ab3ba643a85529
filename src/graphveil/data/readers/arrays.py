"""Graphs as arrays: SciPy matrices, NumPy arrays of links or adjacencies, and dictionaries of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.data.origin import ReadOptions
from graphveil.data.readers.assemble import RESERVED, Contents
from graphveil.data.readers.columns import are_identifiers
from graphveil.data.readers.links import Links
from graphveil.data.readers.safe_open import MAX_COLUMNS, brief
from graphveil.data.sentences import plural
from graphveil.errors import GraphveilError

MAX_NODES = 1 << 31
"""Pairs of more nodes cannot be numbered in 64 bits."""

MAX_GAPS = 1000
"""How many nodes there may be for each end of a link, if only the links give the number of nodes."""

ADJACENCY_NAMES = ("adjacency", "adj")
EDGE_NAMES = ("edge_index", "edges", "links")
FEATURE_NAMES = ("x", "features", "attr_matrix", "node_feat")
LABEL_NAMES = ("y", "labels", "label", "node_label")
ID_NAMES = ("ids", "id", "node_ids")
WEIGHT_NAMES = ("edge_weight", "weights", "weight")

Arrays = Mapping[str, Any]


def read_arrays(source: Any, reading: ReadOptions, name: str = "the graph") -> Contents:
    """Read a graph from an array of links, an adjacency, or named arrays.

    Args:
        source: Links as whole numbers, (2, n) or (n, 2); an adjacency, square, dense or as a SciPy matrix; or a
            dictionary with "edge_index" or "adjacency", and optionally "x", "y", "ids", "edge_weight" and attributes.
        reading: How to read it.
        name: What messages call the source.
    """
    parts = _parts(source, name)
    existing = ", ".join(parts) or "nothing"
    ends, adjacency = _take(parts, EDGE_NAMES), _take(parts, ADJACENCY_NAMES)
    weights, matrix, ids = _take(parts, WEIGHT_NAMES), _take(parts, FEATURE_NAMES), _take(parts, ID_NAMES)
    if ends is None and adjacency is None:
        raise GraphveilError(f"{name} has neither 'edge_index' nor 'adjacency', only {existing}: add one of them.")
    sizes: dict[str, int] = {}
    if ends is None:
        ends, weights, sizes["an adjacency"] = _from_adjacency(adjacency, name)
    features = None if matrix is None else as_features(matrix, name)
    label = reading.label or next((key for key in LABEL_NAMES if key in parts), None)
    if features is not None:
        sizes["features"] = features.shape[0]
    if ids is not None:
        sizes["ids"] = len(ids)
    if label in parts:
        sizes["labels"] = len(parts[label])
    pairs = _ends(ends, name)
    count = _count(sizes, pairs, name)
    columns, attributes = _columns(parts, label, reading, count)
    notes = [f"{plural(count, 'node')}, " + ("numbered from 0." if ids is None else "with their own ids.")]
    if unread := [key for key in parts if key not in columns]:
        notes.append(f"Not read: {', '.join(unread[:10])}.")
    links = Links(pairs, lambda row: f"{name}, link {row}", _weights(weights, pairs, name))
    node_ids = pa.array(np.arange(count)) if ids is None else _ids(ids, name)
    return Contents(name, node_ids, links, columns, features, label if label in columns else None, attributes, notes)


def check_size(count: int, stored: int, name: str) -> None:
    """Refuse far more nodes than there are stored values, before memory is allocated for them."""
    if not 0 <= count <= MAX_GAPS * (stored + 1000):
        raise GraphveilError(
            f"{name} has {count:,} nodes but stores only {stored:,} values: number the nodes from 0 without large gaps."
        )


def check_ends(pairs: Tensor, count: int, name: str) -> None:
    """Refuse links to missing nodes, and too many nodes."""
    if not pairs.numel():
        return
    low, high = int(pairs.min()), int(pairs.max())
    if low < 0 or high >= count or high >= MAX_NODES:
        worst = low if low < 0 else high
        column = int((pairs == worst).any(dim=0).long().argmax())
        raise GraphveilError(
            f"{name}, link {column}, names node {worst}, but there are nodes 0 to {min(count, MAX_NODES) - 1}: number"
            " them from 0."
        )


def as_features(matrix: Any, name: str) -> Any:
    """Return a matrix of features as float32, dense or CSR, with 0 for values that are not finite."""
    if not sp.issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise GraphveilError(
            f"{name} has features of shape {matrix.shape} and type {matrix.dtype}: expected numbers, one row per node."
        )
    if matrix.shape[1] > MAX_COLUMNS:
        raise GraphveilError(
            f"{name} has {matrix.shape[1]:,} features, and at most {MAX_COLUMNS:,} are supported: drop some."
        )
    with np.errstate(over="ignore"):  # values beyond float32 become infinite, and so missing
        if sp.issparse(matrix):
            matrix = sp.csr_matrix(matrix, dtype=np.float32)
            matrix.data = np.nan_to_num(matrix.data, nan=0.0, posinf=0.0, neginf=0.0)
            return matrix
        return np.nan_to_num(matrix.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)


def node_column(values: Any) -> pa.ChunkedArray | None:
    """Return one value per node as a column; negative integers become null. None if the array has another shape."""
    if sp.issparse(values):
        return None
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.kind not in "biufUS":
        return None
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    missing = values < 0 if values.dtype.kind == "i" else None
    return pa.chunked_array([pa.array(values, mask=missing)])


def _columns(
    parts: Arrays, label: str | None, reading: ReadOptions, count: int
) -> tuple[dict[str, pa.ChunkedArray], tuple[str, ...]]:
    """The arrays to read as columns: labels, requested ones and obvious classes; and which are unrequested classes."""
    requested = {label, *reading.attributes, *(reading.features or ())}
    columns, attributes = {}, []
    for key, values in parts.items():
        column = node_column(values)
        if column is None or len(column) != count:
            if key in requested:
                raise GraphveilError(
                    f"{key!r} has shape {values.shape}: expected one value for each of {count:,} nodes."
                )
            continue
        classes = key not in RESERVED and not pa.types.is_floating(column.type) and not are_identifiers(column)
        if key in requested or classes:
            columns[key] = column
        if key not in requested and classes:
            attributes.append(key)
    return columns, tuple(attributes)


def _parts(source: Any, name: str) -> dict[str, Any]:
    """Arrays by their names."""
    if isinstance(source, Mapping):
        return _gathered({str(key): _plain(value) for key, value in source.items()}, name)
    array = _plain(source)
    return {_kind(array, name): array}


def _take(parts: dict[str, Any], names: Sequence[str]) -> Any:
    """Remove and return the first of these arrays that exists."""
    return next((parts.pop(key) for key in names if key in parts), None)


def _count(sizes: Mapping[str, int], pairs: Tensor, name: str) -> int:
    """The number of nodes, on which all arrays must agree."""
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{part} of {size:,}" for part, size in sizes.items())
        raise GraphveilError(f"{name} has {listed} rows: expected one row per node in each.")
    highest = int(pairs.max()) + 1 if pairs.numel() else 0
    count = next(iter(sizes.values()), highest)
    if not sizes:
        check_size(count, pairs.numel(), name)
    check_ends(pairs, count, name)
    return count


def _kind(value: Any, name: str) -> str:
    """Whether a single array holds links or an adjacency."""
    if sp.issparse(value):
        return "adjacency"
    if value.ndim == 2 and value.shape[0] == value.shape[1] != 2:
        return "adjacency"
    if value.ndim == 2 and 2 in value.shape and value.shape != (2, 2) and value.dtype.kind in "iu":
        return "edge_index"
    raise GraphveilError(
        f"{name} has shape {value.shape} and type {value.dtype}: expected links (2, n) of whole numbers, a square"
        " adjacency, or a dictionary with 'edge_index'."
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return _plain_tensor(value.detach().cpu())
    return value if sp.issparse(value) else np.asarray(value)


def _plain_tensor(value: Tensor) -> Any:
    """A tensor as an array or as a SciPy matrix. Indices are checked, since torch trusts those of a file."""
    if value.layout == torch.strided:
        return value.numpy()
    shape = tuple(value.shape)
    if value.layout == torch.sparse_coo and len(shape) == 2 == value.sparse_dim():
        values, indices = value._values().numpy(), value._indices().numpy()
        check_size(shape[0], len(values), "a sparse tensor")
        return sp.coo_matrix((values, tuple(indices)), shape=shape).tocsr()
    if value.layout == torch.sparse_csr and len(shape) == 2:
        parts = (value.values().numpy(), value.col_indices().numpy(), value.crow_indices().numpy())
        check_compressed(*parts, shape)
        return sp.csr_matrix(parts, shape=shape)
    raise GraphveilError(f"a tensor has layout {value.layout} and shape {shape}: make it dense, or CSR.")


def _gathered(parts: dict[str, Any], name: str) -> dict[str, Any]:
    """Build matrices from SciPy's parts: of one adjacency, or of `adj_...` and `attr_...`."""
    if "shape" in parts and "format" in parts:
        return {"adjacency": _matrix(parts, "", name)}
    for prefix, whole in (("adj_", "adjacency"), ("attr_", "x")):
        if f"{prefix}shape" in parts:
            matrix = _matrix(parts, prefix, name)
            used = {f"{prefix}{part}" for part in ("data", "indices", "indptr", "shape", "row", "col")}
            parts = {key: value for key, value in parts.items() if key not in used} | {whole: matrix}
    return parts


def _matrix(parts: Mapping[str, Any], prefix: str, name: str) -> Any:
    """A sparse matrix from its arrays, checked."""
    try:
        height, width = (int(size) for size in np.asarray(parts[f"{prefix}shape"]).ravel())
        data = parts[f"{prefix}data"]
        check_size(max(height, width), len(data), name)
        kind = str(np.asarray(parts.get(f"{prefix}format", "csr")).astype(str)[()])
        if f"{prefix}row" in parts:
            matrix = sp.coo_matrix((data, (parts[f"{prefix}row"], parts[f"{prefix}col"])), shape=(height, width))
        else:
            build = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}[kind]
            indices, starts = parts[f"{prefix}indices"], parts[f"{prefix}indptr"]
            check_compressed(data, indices, starts, (height, width) if kind == "csr" else (width, height))
            matrix = build((data, indices, starts), shape=(height, width))
        return matrix.tocsr()
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise GraphveilError(f"{name} holds an invalid sparse matrix ({brief(error)}): save it again.") from error


def check_compressed(data: Any, indices: Any, starts: Any, shape: tuple[int, int]) -> None:
    """Refuse inconsistent arrays of a CSR matrix: if indptr ends in 0, SciPy checks nothing and its C code crashes."""
    whole = all(part.ndim == 1 and part.dtype.kind in "iu" for part in (indices, starts))
    if not (whole and data.ndim == 1 and data.dtype.kind in "biuf" and len(data) == len(indices)):
        raise ValueError("data, indices and indptr are not vectors of numbers of matching lengths")
    if len(starts) != shape[0] + 1 or starts[0] != 0 or starts[-1] != len(data) or (starts[1:] < starts[:-1]).any():
        raise ValueError("indptr does not match shape and data")
    if len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]:
        raise ValueError("an index is outside the shape")


def _from_adjacency(adjacency: Any, name: str) -> tuple[Any, Any, int]:
    if sp.issparse(adjacency):
        check_size(adjacency.shape[0], adjacency.nnz, name)
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1] or adjacency.dtype.kind not in "biuf":
        raise GraphveilError(
            f"{name} has an adjacency of shape {adjacency.shape} and type {adjacency.dtype}: expected a square one of"
            " numbers."
        )
    matrix = sp.coo_matrix(adjacency)
    matrix.eliminate_zeros()
    return np.stack([matrix.row, matrix.col]), matrix.data, matrix.shape[0]


def _ends(ends: Any, name: str) -> Tensor:
    if sp.issparse(ends) or ends.ndim != 2 or 2 not in ends.shape or ends.dtype.kind not in "iu":
        shape = getattr(ends, "shape", ())
        raise GraphveilError(f"{name} has links of shape {shape} and type {ends.dtype}: expected (2, n) whole numbers.")
    if ends.dtype == np.uint64 and ends.size and ends.max() >= MAX_NODES:
        raise GraphveilError(f"{name} names node {ends.max()}: number the nodes from 0.")
    ends = ends if ends.shape[0] == 2 else ends.T
    return torch.from_numpy(np.array(ends, dtype=np.int64))


def _weights(weights: Any, pairs: Tensor, name: str) -> Any:
    if weights is None:
        return None
    if sp.issparse(weights) or weights.dtype.kind not in "biuf" or weights.size != pairs.size(1):
        raise GraphveilError(f"{name} has weights of shape {weights.shape}: expected {pairs.size(1):,} numbers.")
    return weights.astype(np.float64).reshape(-1)


def _ids(ids: Any, name: str) -> pa.Array:
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.dtype.kind not in "iuUS":
        raise GraphveilError(
            f"{name} has ids of shape {ids.shape} and type {ids.dtype}: expected one number or text per node."
        )
    column = pa.array(np.char.decode(ids, "utf-8", "replace") if ids.dtype.kind == "S" else ids)
    if len(column.unique()) < len(column):
        raise GraphveilError(f"{name} has duplicate ids: give every node a unique id.")
    return column
