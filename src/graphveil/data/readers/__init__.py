"""Readers for people's own graphs, behind one function."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from graphveil.data.origin import Encoding, Reading
from graphveil.data.readers.assemble import Found, assemble
from graphveil.data.readers.distrust import brief, check_file, unreadable
from graphveil.data.readers.tables import find_nodes, find_tables, is_table, plain_suffix, read_tables
from graphveil.errors import GraphveilError, unknown

__all__ = ["read_graph"]


def read_graph(source: Any, reading: Reading | None = None, encoding: Encoding | None = None, **options: Any) -> Data:
    """A graph of somebody's own, as PyG's `Data` with `x`, `edge_index`, `y` and a class tensor for each attribute.

    What was guessed, dropped and encoded is told in `graph.origin.notes`; the nodes' own ids are `graph.origin.ids`.

    Args:
        source: a table of links or a folder with one (CSV, TSV, Parquet), a GraphML, GEXF, GML, SciPy or PyG file, or a
            folder of OGB; or a NetworkX graph, a PyG `Data`, a SciPy matrix, an array of links, a dictionary of arrays.
        reading: how to read it; single fields of it can be given as `options`.
        encoding: that of an earlier graph, to encode this one alike.
    """
    names = [field.name for field in fields(Reading)]
    for name in options:
        if name not in names:
            raise unknown("option", name, names)
    reading = replace(reading or Reading(), **options)
    try:
        return assemble(_found(source, reading), reading, encoding)
    except GraphveilError:
        raise
    except MemoryError as error:
        raise GraphveilError(
            f"{_shown(source)} does not fit into memory: leave out columns, or take a part."
        ) from error
    except Exception as error:  # whatever a file can make a library say
        raise GraphveilError(f"{_shown(source)} cannot be read ({type(error).__name__}: {brief(error)}).") from error


def _found(source: Any, reading: Reading) -> Found:
    if isinstance(source, str | Path):
        return _from_path(Path(source).expanduser(), reading)
    raise GraphveilError(f"a {type(source).__name__} is no graph that can be read.")


def _from_path(path: Path, reading: Reading) -> Found:
    try:
        folder = path.is_dir()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if folder:
        links, nodes = find_tables(path)
        return read_tables(links, find_nodes(links, reading.nodes) if reading.nodes else nodes, reading)
    check_file(path)
    if is_table(path):
        return read_tables(path, find_nodes(path, reading.nodes), reading)
    raise GraphveilError(f"{path} ends in {plain_suffix(path)!r}, which is no kind of graph that can be read.")


def _shown(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else f"the {type(source).__name__}"
