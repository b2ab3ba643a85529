"""Open the graph of a run by its name or path, and remember how, so that it can be opened again from any folder."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from graphveil.data.datasets.catalog import default_split, is_named, open_graph
from graphveil.data.origin import ReadOptions, origin_of


@dataclass(frozen=True)
class OpenedGraph:
    """A graph, and what is needed to open it again from any folder.

    Args:
        graph: The graph.
        name: Its name, or the absolute path of its file or folder.
        reading: The options that it was read with, including the columns that were detected; None for a graph that has
            a name.
    """

    graph: Data
    name: str
    reading: ReadOptions | None

    @property
    def title(self) -> str:
        """The name, or the last part of the path."""
        return Path(self.name).name if self.reading is not None else self.name

    @property
    def default_split(self) -> str:
        """The kind of split to use by default: the paper's for the graphs of the paper."""
        return default_split(self.name)

    @property
    def source(self) -> dict[str, Any]:
        """What run.json records about the graph."""
        return {"graph": self.name, "reading": None if self.reading is None else asdict(self.reading)}


def open_source(
    name: str, reading: ReadOptions | None, root: Path | None = None, targets: Sequence[str] = ()
) -> OpenedGraph:
    """Open a graph.

    Args:
        name: The name of a graph, a file or a folder.
        reading: How to read it.
        root: A folder with the raw files of a named graph.
        targets: Columns to read as targets instead of features.
    """
    reading = reading or ReadOptions()
    if is_named(name):
        return OpenedGraph(open_graph(name, reading, root), name, None)
    nodes = None if reading.nodes is None else str(Path(reading.nodes).expanduser().resolve())
    graph = open_graph(name, replace(reading.with_targets(*targets), nodes=nodes), root)
    return OpenedGraph(graph, str(Path(name).expanduser().resolve()), origin_of(graph).reading)
