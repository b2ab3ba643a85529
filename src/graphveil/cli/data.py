"""`graphveil data`: list, fetch and inspect graphs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from graphveil.cli.graph_options import show_notes, takes_graph
from graphveil.cli.shared import GraphName, Root, app, console, examples, folding

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from graphveil.data import ReadOptions

MAX_CLASSES = 12
"""How many classes of a target are shown."""

data = typer.Typer(
    help="List and fetch the named graphs, and inspect your own.",
    epilog="Example:  graphveil data list",
    no_args_is_help=True,
)
app.add_typer(data, name="data")


@data.command("list", epilog="Example:  graphveil data list")
def data_list() -> None:
    """List the named graphs, with their sizes and whether they are in the cache."""
    from graphveil.data.datasets.catalog import BUILT_IN, PAPER_GRAPHS, cached_file

    table = Table(*folding("name", "nodes", "links", "features", "classes", "where"))
    for name, size in PAPER_GRAPHS.items():
        where = "in the cache" if cached_file(name).exists() else f"graphveil data fetch {name}"
        sizes = (size.nodes, size.links, size.features, size.classes)
        table.add_row(name, *[f"{count:,}" for count in sizes], where)
    for name, (build, description) in BUILT_IN.items():
        graph = build()
        sizes = (graph.x.size(0), graph.edge_index.size(1) // 2, graph.x.size(1), int(graph.y.max()) + 1)
        table.add_row(name, *[f"{count:,}" for count in sizes], f"built in: {description}")
    console.print(table)


@data.command("fetch", epilog="Example:  graphveil data fetch cora")
def data_fetch(
    name: Annotated[str, typer.Argument(help="cora, citeseer or pubmed.")],
    root: Annotated[
        Path | None, typer.Option(help="Read the raw files from this folder instead of downloading them.")
    ] = None,
) -> None:
    """Download a graph into the cache, for use without a network."""
    from graphveil.data.datasets.catalog import fetch_into_cache

    with console.status(f"Fetching {name} ..."):
        graph, cached = fetch_into_cache(name, root)
    console.print(
        f"{name}: {graph.x.size(0):,} nodes, {graph.edge_index.size(1) // 2:,} links,"
        f" {graph.x.size(1):,} features, {int(graph.y.max()) + 1} classes, in {cached}",
        highlight=False,
        soft_wrap=True,
    )


@data.command(
    "show",
    epilog=examples(
        "graphveil data show folder/", "graphveil data show edges.csv --nodes people.csv --attribute age --bins age=4"
    ),
)
@takes_graph
def data_show(graph: GraphName, reading: "ReadOptions", root: Root = None) -> None:
    """Read a graph as a run would, and show its sizes, its classes, and the feature columns that predict them."""
    from graphveil.data import open_graph
    from graphveil.data.sentences import plural

    with console.status(f"Reading {graph} ..."):
        opened = open_graph(graph, reading, root)
    kind = "sparse feature" if opened.x.is_sparse_csr else "feature"
    sizes = {"node": opened.x.size(0), "link": opened.edge_index.size(1) // 2, kind: opened.x.size(1)}
    console.print(", ".join(plural(count, noun) for noun, count in sizes.items()), highlight=False)
    show_notes(console, opened)
    show_targets(opened)


def show_targets(graph: "Data") -> None:
    """Print the classes of every target with their counts, and the skill of single feature columns."""
    from graphveil.data import find_leaky_columns, node_classes
    from graphveil.data.graph import UNKNOWN, class_targets
    from graphveil.data.origin import class_names

    names = class_targets(graph)
    table = Table(*folding("target", "classes", "unknown", "skill of single columns"))
    for name in names:
        codes = node_classes(graph, name)
        counts = codes[codes != UNKNOWN].bincount().tolist()
        named = list(zip(class_names(graph, name, len(counts)), counts, strict=False))
        classes = ", ".join(f"{class_name} {count:,}" for class_name, count in named[:MAX_CLASSES])
        more = f" and {len(named) - MAX_CLASSES:,} more" if len(named) > MAX_CLASSES else ""
        strongest = [f"{column} {skill:.0%}" for column, skill in find_leaky_columns(graph, name)[:3] if skill > 0]
        unknown = f"{int((codes == UNKNOWN).sum()):,}"
        table.add_row(name, classes + more, unknown, ", ".join(strongest) or "none")
    if names:
        console.print(table)
