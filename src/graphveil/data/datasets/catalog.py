"""Named graphs: the paper's three, downloaded once and then read from a cache, and two built-in ones."""

import os
from collections.abc import Callable, Mapping, Sequence
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
from graphveil.target import LABELS

LOCK_TIMEOUT = 600


@dataclass(frozen=True)
class Statistics:
    """The paper's Table 1, and the number of distinct undirected links."""

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


CLASS_NAMES: Mapping[str, Sequence[str]] = {
    "cora": (
        "Case Based",
        "Genetic Algorithms",
        "Neural Networks",
        "Probabilistic Methods",
        "Reinforcement Learning",
        "Rule Learning",
        "Theory",
    ),
    "citeseer": ("AI", "ML", "IR", "DB", "Agents", "HCI"),
}
"""The names of the labels 0, 1, ...; the published files have numbers only, which the sizes of the classes identify."""


def karate() -> Data:
    """Return Zachary's karate club as in PyG: 34 members, 78 friendships, and one-hot ids as features."""
    from torch_geometric.datasets import KarateClub  # noqa: PLC0415 - slow to import

    club = KarateClub()[0]
    return Data(x=club.x, edge_index=club.edge_index, y=club.y)


BUILT_IN: Mapping[str, tuple[Callable[[], Data], str]] = {
    "karate": (karate, "34 members of a karate club; for first steps"),
    "synthetic": (generate, "2,000 generated nodes with a planted secret"),
}


def load(name: str, root: str | Path | None = None) -> Data:
    """Load a graph by its name.

    Args:
        name: "cora", "citeseer", "pubmed" (downloaded on first use, offline afterwards), "karate" or "synthetic".
        root: A folder with the raw published files, to read instead of the cache and the network.

    Returns:
        PyG's `Data` with sparse `x` (num_nodes, features), undirected `edge_index` (2, 2 * links) and `y` (num_nodes,).
    """
    if name in BUILT_IN:
        if root is not None:
            raise GraphveilError(f"{name} is built in and has no raw files: omit --root.")
        return BUILT_IN[name][0]()
    if name not in PAPER_GRAPHS:
        raise unknown("graph", name, [*PAPER_GRAPHS, *BUILT_IN])
    if root is not None:
        return _with_names(name, _checked(name, from_folder(name, Path(root))))
    file = cached_file(name)
    graph = _read(file)
    if graph is None:
        busy = f"another process has been downloading into {file.parent} for {LOCK_TIMEOUT} s: end it and try again."
        with hold_lock(file.parent / "fetch.lock", LOCK_TIMEOUT, busy):
            graph = _read(file)  # another process may have fetched it while we waited
            if graph is None:
                graph = _checked(name, fetch(name, file.parent))
                _write(file, graph)
    return _with_names(name, graph)


def _with_names(name: str, graph: Data) -> Data:
    """Add the names of the classes, if they are known."""
    if name in CLASS_NAMES:
        graph.class_names = {LABELS: CLASS_NAMES[name]}
    return graph


def is_named(name: str) -> bool:
    """Return whether there is a graph of this name."""
    return name in PAPER_GRAPHS or name in BUILT_IN


def default_split(name: str) -> str:
    """Return the kind of split to use by default: the paper's for the graphs of the paper."""
    return "paper" if name in PAPER_GRAPHS else "proportional"


def open_graph(
    name_or_path: str, reading: ReadOptions | None = None, root: Path | None = None, encoding: Encoding | None = None
) -> Data:
    """Open a graph by its name, or your own from a file or a folder.

    Args:
        name_or_path: A name takes precedence over a path; use ./cora for a folder of that name.
        reading: How to read a file or a folder.
        root: A folder with the raw published files of a named graph.
        encoding: The encoding of an earlier graph, to encode a file or a folder in the same way.
    """
    if is_named(name_or_path):
        if reading is not None and replace(reading, attributes=()) != ReadOptions():
            raise GraphveilError(
                f"{name_or_path} is a named graph; reading options do not apply: omit them, or use"
                f" ./{name_or_path} for a folder of that name."
            )
        return load(name_or_path, root)
    if root is not None:
        raise GraphveilError(f"{name_or_path!r} is not a named graph: omit --root.")
    if not os.path.lexists(name_or_path) and "/" not in name_or_path:
        sentence = str(unknown("graph", name_or_path, [*PAPER_GRAPHS, *BUILT_IN])).replace(
            "choose one of", "give a file, a folder or one of"
        )
        raise GraphveilError(sentence)
    return read_graph(name_or_path, reading, encoding)


def fetch_into_cache(name: str, root: str | Path | None = None) -> tuple[Data, Path]:
    """Put a graph into the cache, from `root` or the network; returns it and its file."""
    if name in BUILT_IN:
        raise GraphveilError(f"{name} is built in: it need not be fetched.")
    graph = load(name, root)
    if root is not None:
        _write(cached_file(name), graph)
    return graph, cached_file(name)


def cached_file(name: str) -> Path:
    """Return the file of a graph in the cache."""
    return cache_folder() / f"{name}.safetensors"


def cache_folder() -> Path:
    """Return `GRAPHVEIL_CACHE` if it is set, else the cache folder of the platform."""
    if folder := os.environ.get("GRAPHVEIL_CACHE"):
        return Path(folder)
    from platformdirs import user_cache_path  # noqa: PLC0415 - not needed if the variable is set

    return user_cache_path("graphveil", appauthor=False)


def _checked(name: str, raw: RawGraph) -> Data:
    """Compare a graph with the paper's Table 1."""
    graph = raw.graph()
    classes = torch.unique(raw.labels[raw.labels != UNKNOWN]).numel()
    links = graph.edge_index.size(1) // 2
    came = Statistics(graph.x.size(0), raw.num_edges, graph.x.size(1), classes, links)
    if came != PAPER_GRAPHS[name]:
        raise GraphveilError(
            f"these files are not {name}: expected {PAPER_GRAPHS[name]}, found {came}; use the published files."
        )
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
    """The graph in the cache, or None if the file is missing or cannot be read."""
    if not file.exists():
        return None
    try:
        part: dict[str, Tensor] = load_file(file)
        rows, columns = part["x_shape"].tolist()
        x = csr(part["x_crow"], part["x_col"], part["x_values"], (rows, columns))
        return Data(x=x, edge_index=part["edge_index"], y=part["y"])
    except (SafetensorError, OSError, KeyError, RuntimeError, ValueError):
        return None
