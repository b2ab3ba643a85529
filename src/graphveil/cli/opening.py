"""Open the graph of a verb, and say what was read before anything is done with it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.cli.graphs import show_reading
from graphveil.cli.shared import console

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from graphveil.data.origin import ReadOptions

TELLING = 0.5
"""How much of the way from guessing to certainty a column alone must lead to be named."""


@dataclass(frozen=True)
class Opened:
    """A graph, and what it takes to open it again from anywhere.

    Args:
        reading: with the names of columns that were guessed; None for a graph by name.
    """

    graph: "Data"
    name: str
    reading: "ReadOptions | None"

    @property
    def title(self) -> str:
        """The name, without the folders above it."""
        return Path(self.name).name if self.reading is not None else self.name

    @property
    def default_split(self) -> str:
        """The paper's graphs are split as in the paper."""
        return "paper" if self.reading is None else "proportional"

    @property
    def source(self) -> dict[str, Any]:
        """For a run's record."""
        return {"graph": self.name, "reading": None if self.reading is None else asdict(self.reading)}


def open_and_show(
    name: str, reading: "ReadOptions", root: Path | None, targets: Sequence[str], secrets: Sequence[str]
) -> Opened:
    """A graph by name, a file or a folder; columns that are targets are taken as such and not as features.

    Args:
        secrets: those of the targets to look for in single columns.
    """
    from graphveil.data import find_leaky_columns
    from graphveil.data.datasets.catalog import is_named, open_graph
    from graphveil.data.origin import origin_of

    with console.status(f"ReadOptions {name} ..."):
        if is_named(name):
            return Opened(open_graph(name, reading, root), name, None)
        nodes = None if reading.nodes is None else str(Path(reading.nodes).expanduser().resolve())
        reading = replace(reading.wanting(*targets), nodes=nodes)
        graph = open_graph(name, reading, root)
        opened = Opened(graph, str(Path(name).expanduser().resolve()), origin_of(graph).reading)
        told = [
            (secret, column, strength)
            for secret in secrets
            if secret != "links"
            for column, strength in find_leaky_columns(graph, secret)
            if strength >= TELLING
        ]
    show_reading(console, graph)
    for secret, column, strength in told:
        console.print(
            f"{column!r} alone tells {secret!r}: {strength:.0%} of the way from guessing to certainty. The secret is in"
            f" the features; leave the column out with --drop {column!r} if it need not be there.",
            style="yellow",
            highlight=False,
            soft_wrap=True,
        )
    return opened
