"""Open the graph of a verb and print what was read."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.cli.console import console
from graphveil.cli.graph_options import show_notes
from graphveil.target import without_links

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from graphveil.data.origin import ReadOptions

LEAKY = 0.5
"""There is a warning about a column that alone closes this share of the gap between chance level and certainty."""


@dataclass(frozen=True)
class OpenedGraph:
    """A graph, and what is needed to open it again from any folder.

    Args:
        graph: The graph.
        name: Its name, or the absolute path of its file or folder.
        reading: The options that it was read with, including the columns that were detected; None for a graph that has
            a name.
    """

    graph: "Data"
    name: str
    reading: "ReadOptions | None"

    @property
    def title(self) -> str:
        """The name, or the last part of the path."""
        return Path(self.name).name if self.reading is not None else self.name

    @property
    def default_split(self) -> str:
        """The kind of split to use by default: the paper's for the graphs of the paper."""
        from graphveil.data.datasets.catalog import default_split

        return default_split(self.name)

    @property
    def source(self) -> dict[str, Any]:
        """What run.json records about the graph."""
        return {"graph": self.name, "reading": None if self.reading is None else asdict(self.reading)}


def open_and_show(
    name: str, reading: "ReadOptions", root: Path | None, targets: Sequence[str], secrets: Sequence[str]
) -> OpenedGraph:
    """Open a graph, print the notes about it, and warn about columns that alone predict a secret.

    Args:
        name: The name of a graph, a file or a folder.
        reading: How to read it.
        root: A folder with the raw files of a named graph.
        targets: Columns to read as targets instead of features.
        secrets: The targets that single columns must not predict.
    """
    from graphveil.data import find_leaky_columns
    from graphveil.data.datasets.catalog import is_named, open_graph
    from graphveil.data.origin import origin_of

    with console.status(f"Reading {name} ..."):
        if is_named(name):
            return OpenedGraph(open_graph(name, reading, root), name, None)
        nodes = None if reading.nodes is None else str(Path(reading.nodes).expanduser().resolve())
        reading = replace(reading.with_targets(*targets), nodes=nodes)
        graph = open_graph(name, reading, root)
        opened = OpenedGraph(graph, str(Path(name).expanduser().resolve()), origin_of(graph).reading)
        leaks = [
            (secret, column, skill)
            for secret in without_links(secrets)
            for column, skill in find_leaky_columns(graph, secret)
            if skill >= LEAKY
        ]
    show_notes(console, graph)
    for secret, column, skill in leaks:
        console.print(
            f"warning: the column {column!r} alone predicts {secret!r} with a skill of {skill:.0%} (0% = chance"
            f" level, 100% = perfect). The secret is in the features; use --drop {column!r} if you do not need it.",
            style="yellow",
            highlight=False,
            soft_wrap=True,
        )
    return opened
