"""`read_graph`: your own graph from files, folders and objects of many formats."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from graphveil.data.origin import Encoding, ReadOptions, origin_of
from graphveil.data.readers.arrays import read_arrays
from graphveil.data.readers.assemble import Contents, assemble
from graphveil.data.readers.find import PARQUET, TEXT, check_spreadsheet, find_nodes, find_tables, plain_suffix
from graphveil.data.readers.mapped import with_mapped
from graphveil.data.readers.npz import read_array_file
from graphveil.data.readers.ogb import is_ogb, read_ogb
from graphveil.data.readers.pyg import read_pyg, read_pyg_file
from graphveil.data.readers.safe_open import brief, check_file, unreadable
from graphveil.data.readers.stores import are_stores, read_stores
from graphveil.data.readers.tables import read_tables
from graphveil.data.readers.typed import is_table_object, memory_table
from graphveil.errors import LONGEST, GraphveilError, shortened, unknown

__all__ = ["read_graph"]

log = logging.getLogger(__name__)


def read_graph(
    source: Any, /, reading: ReadOptions | None = None, encoding: Encoding | None = None, **options: Any
) -> Data:
    """Read your own graph from a file, a folder or an object.

    Args:
        source: A table of links or a folder with one (CSV, TSV, Parquet), a GraphML, GEXF, GML, SciPy or PyG file, or
            an OGB folder; or a table of links in memory (a DataFrame of pandas or polars, a pyarrow Table, or any
            object with `__arrow_c_stream__`), a NetworkX graph, a PyG `Data`, PyG's `(FeatureStore, GraphStore)`, a
            SciPy matrix, an array of links, a dictionary of arrays.
        reading: How to read it.
        encoding: The encoding of an earlier graph, to encode the columns in the same way.
        **options: Single fields of `ReadOptions`, which override those of `reading`. With a table of links in memory,
            `nodes` may be a table in memory, too.

    Returns:
        PyG's `Data` with `x` (num_nodes, features), `edge_index` (2, 2 * links), `y` (num_nodes,) if there are labels,
        and a class tensor (num_nodes,) for each attribute. `graph.origin.notes` lists what was detected, dropped and
        encoded, and `graph.origin.ids` has the ids of the nodes.

    Raises:
        GraphveilError: If the source is not a graph, or an option does not fit it.
    """
    names = [field.name for field in fields(ReadOptions)]
    for name in options:
        if name not in names:
            raise unknown("option", name, names)
    nodes = options.pop("nodes") if is_table_object(options.get("nodes")) else None
    reading = replace(reading or ReadOptions(), **options)
    try:
        graph = assemble(_read(source, reading, nodes), reading, encoding)
    except GraphveilError as error:
        unnamed = isinstance(source, str | Path) and str(source).isprintable() and Path(source).name not in str(error)
        sentence = f"{_shown(source)}: {error}" if unnamed else str(error)
        longest = LONGEST - 100 + len(_shown(source))  # a path is never shortened
        raise type(error)(shortened(sentence, longest)) from error
    except MemoryError as error:
        raise GraphveilError(
            f"{_shown(source)} does not fit into memory: drop columns, or read a part of it."
        ) from error
    except Exception as error:  # a bad file can cause any error in a library
        raise GraphveilError(
            f"{_shown(source)} cannot be read ({type(error).__name__}: {brief(error)}): check its contents."
        ) from error
    nodes, links = graph.x.size(0), graph.edge_index.size(1) // 2
    log.info("Read %s: %s nodes, %s links, %s features.", _shown(source), nodes, links, graph.x.size(1))
    for note in origin_of(graph).notes:
        log.debug(note)
    return graph


def _read(source: Any, reading: ReadOptions, nodes: Any) -> Contents:
    """Read a file, a folder or an object with the reader for its kind.

    Args:
        source: As in `read_graph`.
        reading: How to read it.
        nodes: A table of nodes in memory, or None.
    """
    if is_table_object(source):
        table = memory_table(source, "the table of links")
        if nodes is not None:
            return read_tables(table, memory_table(nodes, "the table of nodes"), reading)
        return read_tables(table, None if reading.nodes is None else Path(reading.nodes).expanduser(), reading)
    if nodes is not None:
        raise GraphveilError(
            f"nodes is a {type(nodes).__name__}, but the links are not a table in memory: give both as tables, or both"
            " as files."
        )
    if isinstance(source, str | Path):
        return _from_path(Path(source).expanduser(), reading)
    if isinstance(source, BaseData) or are_stores(source):  # a `Data` is a store, too
        return (read_pyg if isinstance(source, BaseData) else read_stores)(source, reading)
    if type(source).__module__.partition(".")[0] == "networkx" or hasattr(source, "is_multigraph"):
        from graphveil.data.readers.networkx import read_networkx  # noqa: PLC0415 - slow to import

        return read_networkx(source, reading)
    if isinstance(source, np.ndarray | Tensor | Mapping) or sp.issparse(source):
        return read_arrays(source, reading)
    raise GraphveilError(
        f"a {type(source).__name__} is not a graph: give a path, a table, a PyG Data, PyG's stores, a NetworkX graph,"
        " a SciPy matrix, an array of links, or a dictionary with 'edge_index'."
    )


def _from_path(path: Path, reading: ReadOptions) -> Contents:
    try:
        folder = path.is_dir()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if folder:
        return _from_folder(path, reading)
    check_file(path)
    check_spreadsheet(path)
    suffix = plain_suffix(path)
    if suffix not in READERS:
        raise GraphveilError(
            f"{path} ends in {suffix!r}, which is not a supported format: expected one of {' '.join(READERS)}."
        )
    return READERS[suffix](path, reading)


def _from_folder(folder: Path, reading: ReadOptions) -> Contents:
    try:
        if is_ogb(folder):
            return read_ogb(folder, reading)
        links, nodes = find_tables(folder, reading.nodes)
    except OSError as error:
        raise unreadable(folder, error) from error
    return with_mapped(read_tables(links, nodes, reading), folder, reading)


def _read_table_file(path: Path, reading: ReadOptions) -> Contents:
    return read_tables(path, find_nodes(path, reading.nodes), reading)


def _read_networkx_file(path: Path, reading: ReadOptions) -> Contents:
    from graphveil.data.readers.networkx import read_networkx_file  # noqa: PLC0415 - slow to import

    return read_networkx_file(path, plain_suffix(path), reading)


READERS: Mapping[str, Callable[[Path, ReadOptions], Contents]] = {
    **dict.fromkeys((*TEXT, *PARQUET), _read_table_file),
    **dict.fromkeys((".graphml", ".gexf", ".gml"), _read_networkx_file),
    **dict.fromkeys((".npz", ".npy"), read_array_file),
    **dict.fromkeys((".pt", ".pth"), read_pyg_file),
}
"""The readers of files, by suffix; `.gz` after it is allowed."""


def _shown(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else f"the {type(source).__name__}"
