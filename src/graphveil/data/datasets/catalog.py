"""Graphs by name: the paper's three, fetched once and then read from a safe cache, and two that are built in."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch_geometric.data import Data

from graphveil.data.datasets.fetch import fetch, from_folder
from graphveil.data.datasets.planetoid import RawGraph
from graphveil.data.datasets.synthetic import generate
from graphveil.data.graph import UNKNOWN
from graphveil.data.origin import Encoding, ReadOptions
from graphveil.data.readers import read_graph
from graphveil.data.sparse import csr
from graphveil.errors import GraphveilError, unknown
from graphveil.files import hold_lock, write_tensors

LOCK_TIMEOUT = 600


@dataclass(frozen=True)
class Statistics:
    """The paper's Table 1, and the distinct undirected links behind its edge count."""

    nodes: int
    edges: int
    features: int
    classes: int
    links: int


PAPER_GRAPHS: Mapping[str, Statistics] = {
    "cora": Statistics(2708, 5429, 1433, 7, links=5278),
    "citeseer": Statistics(3327, 4732, 3703, 6, links=4552),
    "pubmed": Statistics(19717, 44338, 500, 3, links=44324),
}


def karate() -> Data:
    """Zachary's karate club, 34 members and 78 friendships, as PyG has it: no features but the member's own name."""
    from torch_geometric.datasets import KarateClub  # noqa: PLC0415 - slow to import

    club = KarateClub()[0]
    return Data(x=club.x, edge_index=club.edge_index, y=club.y)


BUILT_IN: Mapping[str, tuple[Callable[[], Data], str]] = {
    "karate": (karate, "34 members of a karate club; for first steps"),
    "synthetic": (generate, "2,000 generated nodes with a planted secret"),
}


def load(name: str, root: str | Path | None = None) -> Data:
    """A graph by its name, as `torch_geometric.data.Data` with sparse `x`, undirected `edge_index` and `y`.

    Args:
        name: "cora", "citeseer", "pubmed" (fetched on first use, offline afterwards), "karate" or "synthetic".
        root: a folder of the raw published files, to read instead of the cache and the network.
    """
    if name in BUILT_IN:
        if root is not None:
            raise GraphveilError(f"{name} is built in and has no raw files: leave out root.")
        return BUILT_IN[name][0]()
    if name not in PAPER_GRAPHS:
        raise unknown("graph", name, [*PAPER_GRAPHS, *BUILT_IN])
    if root is not None:
        return _checked(name, from_folder(name, Path(root)))
    file = cached_file(name)
    graph = _read(file)
    if graph is None:
        busy = f"another process has been fetching into {file.parent} for {LOCK_TIMEOUT} s: end it and try again."
        with hold_lock(file.parent / "fetch.lock", LOCK_TIMEOUT, busy):
            graph = _read(file)  # another process may have fetched it while we waited
            if graph is None:
                graph = _checked(name, fetch(name, file.parent))
                _write(file, graph)
    return graph


def is_named(name: str) -> bool:
    """Whether a graph goes by this name."""
    return name in PAPER_GRAPHS or name in BUILT_IN


def open_graph(
    name_or_path: str, reading: ReadOptions | None = None, root: Path | None = None, encoding: Encoding | None = None
) -> Data:
    """A graph by its name, or one of somebody's own from a file or a folder.

    Args:
        name_or_path: names come first: a folder that is called like one is meant by ./cora.
        reading, encoding: how to read a file or a folder.
        root: a folder of the raw published files of a named graph.
    """
    if is_named(name_or_path):
        if reading is not None and replace(reading, attributes=()) != ReadOptions():
            raise GraphveilError(
                f"{name_or_path} is a graph by name, which is read in one way: leave out the options of reading, or say"
                f" ./{name_or_path} for a folder of that name."
            )
        return load(name_or_path, root)
    if root is not None:
        raise GraphveilError(f"{name_or_path!r} is no graph by name, and only those have raw files: leave out root.")
    if not os.path.lexists(name_or_path) and "/" not in name_or_path:
        sentence = str(unknown("graph", name_or_path, [*PAPER_GRAPHS, *BUILT_IN])).replace(
            "choose one of", "give a file, a folder or one of"
        )
        raise GraphveilError(sentence)
    return read_graph(name_or_path, reading, encoding)


def fetch_into_cache(name: str, root: str | Path | None = None) -> tuple[Data, Path]:
    """Make sure that a graph lies in the cache, from `root` or the network, and say where."""
    if name in BUILT_IN:
        raise GraphveilError(f"{name} is built in: there is nothing to fetch.")
    graph = load(name, root)
    if root is not None:
        _write(cached_file(name), graph)
    return graph, cached_file(name)


def cached_file(name: str) -> Path:
    """Where the converted graph lies once it has been fetched."""
    return cache_folder() / f"{name}.safetensors"


def cache_folder() -> Path:
    """`GRAPHVEIL_CACHE` if it is set, else the platform's own cache folder."""
    if given := os.environ.get("GRAPHVEIL_CACHE"):
        return Path(given)
    from platformdirs import user_cache_path  # noqa: PLC0415 - not needed where the variable is set

    return user_cache_path("graphveil", appauthor=False)


def _checked(name: str, raw: RawGraph) -> Data:
    """Assert the paper's Table 1 on what was read."""
    graph = raw.graph()
    classes = torch.unique(raw.labels[raw.labels != UNKNOWN]).numel()
    links = graph.edge_index.size(1) // 2
    came = Statistics(graph.x.size(0), raw.num_edges, graph.x.size(1), classes, links)
    if came != PAPER_GRAPHS[name]:
        raise GraphveilError(f"these files are not {name}: expected {PAPER_GRAPHS[name]}, found {came}.")
    return graph


def _write(file: Path, graph: Data) -> None:
    x = graph.x
    tensors = {
        "x_crow": x.crow_indices(),
        "x_col": x.col_indices(),
        "x_values": x.values(),
        "x_shape": torch.tensor(x.shape),
        "edge_index": graph.edge_index,
        "y": graph.y,
    }
    write_tensors(file, tensors)


def _read(file: Path) -> Data | None:
    """The graph in the cache, or None where there is none that can be read."""
    if not file.exists():
        return None
    try:
        part: dict[str, Tensor] = load_file(file)
        rows, columns = part["x_shape"].tolist()
        x = csr(part["x_crow"], part["x_col"], part["x_values"], (rows, columns))
        return Data(x=x, edge_index=part["edge_index"], y=part["y"])
    except (SafetensorError, OSError, KeyError, RuntimeError, ValueError):
        return None
