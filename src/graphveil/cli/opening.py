"""Open the graph of a verb and print what was read."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphveil.cli.console import console
from graphveil.cli.graph_options import show_notes
from graphveil.target import without_links

if TYPE_CHECKING:
    from graphveil.data.origin import ReadOptions
    from graphveil.runs.opening import OpenedGraph

LEAKY = 0.5
"""There is a warning about a column that alone closes this share of the gap between chance level and certainty."""


def open_and_show(
    name: str, reading: "ReadOptions", root: Path | None, targets: Sequence[str], secrets: Sequence[str]
) -> "OpenedGraph":
    """Open a graph, print the notes about it, and warn about columns that alone predict a secret.

    Args:
        name: The name of a graph, a file or a folder.
        reading: How to read it.
        root: A folder with the raw files of a named graph.
        targets: Columns to read as targets instead of features.
        secrets: The targets that single columns must not predict.
    """
    from graphveil.data import find_leaky_columns
    from graphveil.runs.opening import open_source

    with console.status(f"Reading {name} ..."):
        opened = open_source(name, reading, root, targets)
        if opened.reading is None:
            return opened
        leaks = [
            (secret, column, skill)
            for secret in without_links(secrets)
            for column, skill in find_leaky_columns(opened.graph, secret)
            if skill >= LEAKY
        ]
    show_notes(console, opened.graph)
    for secret, column, skill in leaks:
        console.print(
            f"warning: the column {column!r} alone predicts {secret!r} with a skill of {skill:.0%} (0% = chance"
            f" level, 100% = perfect). The secret is in the features; use --drop {column!r} if you do not need it.",
            style="yellow",
            highlight=False,
            soft_wrap=True,
        )
    return opened
