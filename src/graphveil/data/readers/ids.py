"""Ids of nodes: of any type, in the order of the source, and looked up in the links."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from graphveil.errors import GraphveilError

MERGED = 2**20
"""Ids of links that are merged with those before at once, at least."""
Place = Callable[[int], str]
"""Where a row is in its source, for messages."""


def to_common_type(*columns: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """Convert columns of ids to their common type."""
    kind = common_type([column.type for column in columns], lambda: columns)
    return [to_type(column, kind) for column in columns]


def common_type(types: Iterable[pa.DataType], columns: Callable[[], Iterable[pa.ChunkedArray]]) -> pa.DataType:
    """Return the type of columns of ids: int64 or uint64 if all ids fit, else text.

    Text is converted to numbers only if every id is written as the number is: "007" is not 7.

    Args:
        types: The types of the columns; if they suffice, no column is read.
        columns: A function that reads the columns, each whole or in parts; it may be called twice.
    """
    narrow = (pa.types.is_signed_integer, pa.types.is_uint8, pa.types.is_uint16, pa.types.is_uint32)
    if all(any(fits(kind) for fits in narrow) for kind in types):
        return pa.int64()
    for kind in (pa.int64(), pa.uint64()):
        if all(_whole(_plain(column), kind) is not None for column in columns()):
            return kind
    return pa.large_string()


def to_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Convert ids to the type that `common_type` returned for all of them."""
    return pc.cast(_plain(column), kind)


def check_ids(column: pa.ChunkedArray, name: str, place: Place) -> pa.Array:
    """Return ids as one array, after checking that every node has a unique id."""
    ids = _combined(column)
    if ids.null_count:
        row = pc.index(pc.is_null(ids), True).as_py()
        raise GraphveilError(f"{place(row)}, column {name!r}, has no id: give every node one.")
    if len(pc.unique(ids)) < len(ids):
        codes = np.asarray(ids.dictionary_encode().indices)
        order = codes.argsort(kind="stable")
        row = int(order[1:][codes[order][1:] == codes[order][:-1]].min())
        raise GraphveilError(
            f"{place(row)}, column {name!r}, repeats the id {_shown(ids[row])}: give every node a unique id."
        )
    return ids


def ids_of_links(ends: Iterable[pa.ChunkedArray], kind: pa.DataType) -> pa.Array:
    """Return every id in the links, in ascending order.

    Args:
        ends: Columns of ids or parts of them.
        kind: Their type.
    """
    parts, rows = [pa.array([], kind)], 0
    for end in ends:
        parts.append(pc.unique(end))
        rows += len(parts[-1])
        if rows > 2 * len(parts[0]) + MERGED:
            parts = [pc.unique(pa.chunked_array(parts, kind))]
            rows = len(parts[0])
    ids = pc.drop_null(pc.unique(pa.chunked_array(parts, kind)))
    return ids.take(pc.sort_indices(ids))


def node_numbers(ends: Sequence[pa.ChunkedArray], ids: pa.Array, names: Sequence[str], place: Place) -> Tensor:
    """Return the ends of links as numbers of nodes, (2, rows)."""
    both = pa.chunked_array([chunk for end in ends for chunk in end.chunks], ends[0].type)
    numbers = pc.index_in(both, value_set=ids)  # once for both ends, since each call builds a table of all ids
    if numbers.null_count:
        first = pc.index(pc.is_null(numbers), True).as_py()
        side, row = divmod(first, len(ends[0]))
        raise _unknown_node(ends[side][row], f"{place(row)}, column {names[side]!r},")
    return torch.from_numpy(np.asarray(numbers.to_numpy(), dtype=np.int64).reshape(2, -1))


def _unknown_node(value: pa.Scalar, where: str) -> GraphveilError:
    if value.as_py() is None:
        return GraphveilError(f"{where} is empty: give the ids of both ends of a link.")
    return GraphveilError(
        f"{where} has the id {_shown(value)}, which is not in the table of nodes: add the node, or remove the link."
    )


def _shown(value: pa.Scalar) -> str:
    text = repr(value.as_py())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids as numbers or text, without a dictionary encoding; an empty text and NaN are null, since they are no ids."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = pc.cast(column, kind.value_type), kind.value_type
    if pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        raise GraphveilError(f"ids have the type {kind}: expected whole numbers or text.")
    if pa.types.is_integer(kind):
        return column
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        words = [[None if value is None else value.hex() for value in chunk.to_pylist()] for chunk in column.chunks]
        column = pa.chunked_array(words, pa.string())
    elif not pa.types.is_string(kind):
        column = pc.cast(column, pa.large_string())
    empty = pa.scalar("", column.type)
    if pc.index(column, empty).as_py() < 0:
        return column
    return pc.if_else(pc.equal(column, empty), pa.scalar(None, column.type), column)


def _whole(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Ids as integers of a type, or None if one of them is not written as such an integer."""
    written = not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type))
    chunks = []
    for chunk in column.chunks:
        try:
            number = pc.cast(chunk, kind)
        except pa.ArrowException:
            return None
        if written and not pc.all(pc.equal(pc.cast(number, chunk.type), chunk), min_count=0).as_py():
            return None
        chunks.append(number)
    return pa.chunked_array(chunks, kind)


def _combined(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_string(column.type) and column.nbytes >= 2**31:
        column = pc.cast(column, pa.large_string())
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else combined.chunk(0)
