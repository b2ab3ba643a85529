"""NetworkX graphs, and the files that NetworkX reads: GraphML, GEXF and GML.

XML entities can expand without limit, so a file that defines any (in a DOCTYPE) is refused before it is parsed.
"""

import io
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat

import networkx as nx
import numpy as np
import pyarrow as pa
import torch

from graphveil.data.origin import ReadOptions
from graphveil.data.readers.assemble import Contents
from graphveil.data.readers.links import Links
from graphveil.data.readers.safe_open import MAX_COLUMNS, as_utf8, brief, read_bytes
from graphveil.data.sentences import plural
from graphveil.errors import GraphveilError

MAX_BYTES = 1 << 30
"""The largest file: NetworkX needs some hundred bytes of memory for each link."""

Graph = Any
"""A NetworkX graph of any of its four classes, which have no type annotations."""


def read_networkx_file(file: Path, suffix: str, reading: ReadOptions) -> Contents:
    """Read a GraphML, GEXF or GML file."""
    data = read_bytes(file)
    if len(data) > MAX_BYTES:
        raise GraphveilError(f"{file} has {len(data):,} bytes, and at most {MAX_BYTES:,} are read: save it as tables.")
    if suffix == ".gml":
        text = as_utf8(file, data, reading.text_encoding).decode("utf-8")
        data = text.encode("ascii", "xmlcharrefreplace")  # NetworkX takes ASCII only, and turns these back
    else:
        _check_xml(file, data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about missing types; such values are text
            graph = _PARSERS[suffix](io.BytesIO(data))
    except Exception as error:  # NetworkX has no error class for bad files
        raise GraphveilError(
            f"{file} cannot be read as {suffix[1:]} ({brief(error)}): repair it, or save it again."
        ) from error
    return read_networkx(graph, reading, str(file))


def read_networkx(graph: Graph, reading: ReadOptions, name: str = "the graph") -> Contents:
    """Read a NetworkX graph; nodes keep its order, and node attributes are columns."""
    nodes = list(graph.nodes)
    number = {node: place for place, node in enumerate(nodes)}
    ends = torch.tensor([[number[u], number[v]] for u, v in graph.edges()], dtype=torch.long).reshape(-1, 2).t()
    pairs = list(graph.edges())
    notes = [f"{'A directed' if graph.is_directed() else 'An undirected'} graph of {plural(len(nodes), 'node')}."]
    links = Links(
        ends,
        lambda row: f"{name}, link {_short(pairs[row])}",
        _weights(graph, reading.weight, name),
        graph.is_directed(),
    )
    ids, columns = _ids(nodes, name), _columns(graph, name)
    if reading.id is not None:
        if reading.id not in columns:
            raise GraphveilError(
                f"{name} has no node attribute {reading.id!r} for --id: choose one of {_joined(columns)}."
            )
        ids = _ids(columns.pop(reading.id).to_pylist(), name)
    return Contents(name, ids, links, columns, notes=notes)


def _gml(data: io.BytesIO) -> Graph:
    try:
        return nx.read_gml(data)
    except nx.NetworkXError:  # labels are duplicate or missing
        data.seek(0)
        return nx.read_gml(data, label="id")


_PARSERS: Mapping[str, Callable[[io.BytesIO], Graph]] = {
    ".graphml": nx.read_graphml,
    ".gexf": nx.read_gexf,
    ".gml": _gml,
}


def _check_xml(file: Path, data: bytes) -> None:
    """Refuse a DOCTYPE. It can only come before the first element, where this stops."""

    class FirstElement(Exception):  # noqa: N818 - it is not an error
        pass

    def refuse(*_: object) -> None:
        raise GraphveilError(f"{file} has a DOCTYPE, which is not allowed because it can define entities: remove it.")

    def stop(*_: object) -> None:
        raise FirstElement

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = stop
    try:
        parser.Parse(data, True)
    except FirstElement:
        return
    except LookupError as error:
        raise GraphveilError(f"{file} has an unknown encoding ({brief(error)}): save it as UTF-8.") from error
    except expat.ExpatError as error:
        raise GraphveilError(
            f"{file}, line {error.lineno}, column {error.offset + 1}, is not XML ({expat.ErrorString(error.code)}):"
            " save it again."
        ) from error


def _ids(nodes: list[Any], name: str) -> pa.Array:
    """Whole numbers if all nodes are, else text."""
    if all(type(node) is int and abs(node) < 2**63 for node in nodes):
        ids = pa.array(nodes, pa.int64())
    else:
        ids = pa.array([_text(node) for node in nodes], pa.string())
    if len(ids.unique()) < len(ids):
        raise GraphveilError(f"{name} has two nodes with the same id as text: give every node a unique id.")
    return ids


def _columns(graph: Graph, name: str) -> dict[str, pa.ChunkedArray]:
    keys: dict[str, None] = {}
    for _, values in graph.nodes(data=True):
        keys.update(dict.fromkeys(values))
        if len(keys) > MAX_COLUMNS:
            raise GraphveilError(f"{name} has more than {MAX_COLUMNS:,} node attributes: remove some.")
    return {
        str(key): pa.chunked_array([_array([values.get(key) for _, values in graph.nodes(data=True)])]) for key in keys
    }


def _array(values: list[Any]) -> pa.Array:
    """Values of one type as an array of this type, mixed ones as text."""
    plain = [value.tolist() if isinstance(value, np.generic | np.ndarray) else value for value in values]
    try:
        array = pa.array(plain)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([None if value is None else _text(value) for value in plain], pa.string())
    return array


def _text(value: Any) -> str:
    return str(value).encode("utf-8", "replace").decode("utf-8")


def _weights(graph: Graph, attribute: str | None, name: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]] | None":
    values = [weight for _, _, weight in graph.edges(data=attribute or "weight")]
    if all(value is None for value in values):
        if attribute is not None and values:
            raise GraphveilError(f"no link of {name} has the attribute {attribute!r}: name another with --weight.")
        return None
    try:
        return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise GraphveilError(
            f"a weight of {name} is not a number ({brief(error)}): name another attribute with --weight."
        ) from error


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def _joined(names: Iterable[str]) -> str:
    return ", ".join(list(names)[:20]) or "none"
