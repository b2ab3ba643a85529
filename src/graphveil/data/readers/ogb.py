"""Folders of the Open Graph Benchmark: `raw/edge.csv.gz` and other tables without headers, and `mapping/`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from graphveil.data.origin import ReadOptions
from graphveil.data.readers.arrays import as_features, check_ends, check_size, node_column
from graphveil.data.readers.assemble import Contents
from graphveil.data.readers.columns import numbers
from graphveil.data.readers.ids import check_ids, to_common_type
from graphveil.data.readers.links import Links
from graphveil.data.readers.text import TextTable, open_text
from graphveil.data.sentences import plural
from graphveil.errors import GraphveilError


def is_ogb(folder: Path) -> bool:
    """Return whether a folder has the layout of OGB."""
    return _file(folder / "raw", "edge") is not None


def read_ogb(folder: Path, reading: ReadOptions) -> Contents:
    """Read the single graph of a folder."""
    raw = folder / "raw"
    links = _table(raw, "edge")
    if links is None:
        raise GraphveilError(f"{raw} has no edge.csv.gz: expected an OGB folder.")
    ends = _matrix(links)
    if ends.shape[1] != 2 or not _whole(ends):
        raise GraphveilError(f"{links.file} has {ends.shape[1]} columns of numbers: expected two columns of integers.")
    nodes, features, labels = (_table(raw, name) for name in ("num-node-list", "node-feat", "node-label"))
    matrix = None if features is None else as_features(_matrix(features), str(features.file))
    count = _count(nodes, matrix, ends)
    if matrix is None:
        check_size(count, ends.size, str(folder))
    pairs = torch.from_numpy(np.ascontiguousarray(ends.T).astype(np.int64))
    check_ends(pairs, count, str(links.file))
    if matrix is not None and len(matrix) != count:
        raise GraphveilError(
            f"{features and features.file} has {plural(len(matrix), 'row')} for {plural(count, 'node')}: expected one"
            " per node."
        )
    columns: dict[str, pa.ChunkedArray] = {}
    notes = [f"{plural(count, 'node')} from an OGB folder."]
    if labels is not None:
        classes = _matrix(labels)
        if len(classes) != count:
            raise GraphveilError(
                f"{labels.file} has {plural(len(classes), 'row')} for {plural(count, 'node')}: expected one per node."
            )
        if classes.shape[1] == 1:
            columns["y"] = node_column(np.where(classes[:, 0] < 0, np.nan, classes[:, 0]))
        else:
            notes.append(f"{labels.file.name} has {classes.shape[1]} labels per node and is not read.")
    ids, id_notes = _ids(folder / "mapping", count, reading)
    return Contents(
        str(folder),
        ids,
        Links(pairs, links.place, _weights(raw, len(ends))),
        columns,
        matrix,
        "y" if columns else None,
        notes=[*notes, *id_notes],
    )


def _file(folder: Path, name: str) -> Path | None:
    return next((file for end in (".csv.gz", ".csv") if (file := folder / f"{name}{end}").is_file()), None)


def _table(folder: Path, name: str) -> TextTable | None:
    """Open a table without a header."""
    file = _file(folder, name)
    if file is None:
        return None
    table = open_text(file, None, lambda _: False)
    if table.header:
        raise GraphveilError(f"{file}, line 1, is not a row of numbers: OGB files have no header.")
    return table


def _matrix(table: TextTable) -> NDArray[np.float64]:
    rows = table.read(table.names)
    columns = []
    for name in table.names:
        values = numbers(rows[name])
        if values is None:
            raise GraphveilError(f"{table.file}, {name}, holds text: expected numbers.")
        columns.append(values)
    return np.stack(columns, axis=1)


def _whole(values: NDArray[np.float64]) -> bool:
    """Whether all values are whole numbers that float64 represents exactly."""
    return bool(((values == np.rint(values)) & (np.abs(values) < 2**53)).all())


def _count(table: TextTable | None, matrix: NDArray[np.float32] | None, ends: NDArray[np.float64]) -> int:
    if table is None:
        return len(matrix) if matrix is not None else int(ends.max(initial=-1)) + 1
    sizes = _matrix(table)
    if sizes.shape != (1, 1) or not _whole(sizes) or not 0 < sizes[0, 0] < 2**31:
        raise GraphveilError(f"{table.file} has shape {sizes.shape}: expected the number of nodes of a single graph.")
    return int(sizes[0, 0])


def _weights(raw: Path, rows: int) -> NDArray[np.float64] | None:
    table = _table(raw, "edge-weight")
    if table is None:
        return None
    values = _matrix(table)
    if values.shape != (rows, 1):
        raise GraphveilError(f"{table.file} has shape {values.shape}: expected one weight for each of {rows:,} links.")
    return values[:, 0]


def _ids(folder: Path, count: int, reading: ReadOptions) -> tuple[pa.Array, Sequence[str]]:
    """The ids of the nodes from `mapping/nodeidx2....csv.gz` if it exists, else their numbers; and notes."""
    node_numbers = pa.array(np.arange(count))
    files = sorted(folder.glob("nodeidx2*.csv*")) if folder.is_dir() else []
    if len(files) != 1:
        return node_numbers, ()
    (file,) = files
    table = open_text(file, reading.text_encoding, lambda _: True)
    if len(table.names) != 2:
        return node_numbers, (f"{file.name} has {len(table.names)} columns instead of 2 and is not read.",)
    rows = table.read(table.names, table.names[1:])
    place = numbers(rows[table.names[0]])
    if place is None or not np.array_equal(np.sort(place), np.arange(count)):
        raise GraphveilError(f"{file} does not number the {count:,} nodes from 0 without gaps: correct its numbers.")
    (ids,) = to_common_type(rows[table.names[1]])
    ordered = check_ids(ids, table.names[1], table.place).take(pa.array(np.argsort(place)))
    return ordered, (f"Ids are read from {file.name}.",)
