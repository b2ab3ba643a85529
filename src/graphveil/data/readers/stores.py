"""Graphs in PyG's stores: a `FeatureStore` and a `GraphStore`, or one object that is both.

Links and classes are read into memory. Features are copied block by block into a temporary file, which is mapped: a
store may be a database or another machine, and training reads random rows in every round.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import FeatureStore, GraphStore, TensorAttr

from graphveil.data.origin import ReadOptions
from graphveil.data.readers.arrays import FEATURE_NAMES, LABEL_NAMES, read_arrays
from graphveil.data.readers.assemble import Contents
from graphveil.data.readers.mapped import ROWS_AT_ONCE, temporary_matrix
from graphveil.errors import GraphveilError

NAME = "the store"


def are_stores(source: Any) -> bool:
    """Return whether an object is a pair of stores, in any order, or a store of both kinds."""
    return _stores(source) is not None


def read_stores(source: Any, reading: ReadOptions) -> Contents:
    """Read a graph from stores of one type of node and one type of link.

    Args:
        source: A `FeatureStore` and a `GraphStore`, or an object that is both.
        reading: How to read it.
    """
    stores = _stores(source)
    assert stores is not None
    features, links = stores
    attrs = {attr.attr_name: attr for attr in features.get_all_tensor_attrs()}
    groups = sorted({str(attr.group_name) for attr in features.get_all_tensor_attrs()})
    if len(groups) > 1:
        raise GraphveilError(
            f"{NAME} has nodes of {len(groups)} types ({', '.join(groups)}): give a store of one type."
        )
    name = next((name for name in FEATURE_NAMES if name in attrs), None)
    matrix = None if name is None else _copied(features, attrs.pop(name))
    parts: dict[str, Any] = {"edge_index": _links(links)}
    for other, attr in attrs.items():
        wanted = other in (*LABEL_NAMES, reading.label, *reading.attributes)
        if wanted or len(features.get_tensor_size(attr) or ()) == 1:
            parts[other] = _rows(features, attr, None)
    if matrix is None:
        return read_arrays(parts, reading, NAME)
    contents = read_arrays(parts | {"ids": np.arange(len(matrix))}, reading, NAME)
    return Contents(**vars(contents) | {"matrix": matrix})


def _stores(source: Any) -> tuple[FeatureStore, GraphStore] | None:
    pair = tuple(source) if isinstance(source, tuple | list) and len(source) == 2 else (source, source)
    for features, links in (pair, pair[::-1]):
        if isinstance(features, FeatureStore) and isinstance(links, GraphStore):
            return features, links
    return None


def _links(store: GraphStore) -> Tensor:
    rows, columns, _ = store.coo()
    if isinstance(rows, Tensor):  # links without a type
        return torch.stack([rows, columns])
    if len(rows) != 1:
        raise GraphveilError(f"{NAME} has links of {len(rows)} types: give a store with one type.")
    (kind,) = rows
    return torch.stack([rows[kind], columns[kind]])


def _copied(store: FeatureStore, attr: TensorAttr) -> NDArray[np.float32]:
    """The features as a mapped temporary file, which ends with the process."""
    size = store.get_tensor_size(attr)
    if size is None or len(size) != 2 or 0 in size:
        raise GraphveilError(f"{NAME} has features of shape {size and tuple(size)}: expected one row for each node.")
    matrix = temporary_matrix(size[0], size[1], NAME)
    for first in range(0, len(matrix), ROWS_AT_ONCE):
        rows = torch.arange(first, min(first + ROWS_AT_ONCE, len(matrix)))
        matrix[first : first + len(rows)] = _rows(store, attr, rows)
    return matrix


def _rows(store: FeatureStore, attr: TensorAttr, rows: Tensor | None) -> NDArray[Any]:
    """Some rows of a tensor in a store, or all of them."""
    tensor = store.get_tensor(group_name=attr.group_name, attr_name=attr.attr_name, index=rows)
    values: NDArray[Any] = tensor.detach().cpu().numpy() if isinstance(tensor, Tensor) else np.asarray(tensor)
    return values
