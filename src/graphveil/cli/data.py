"""`graphveil data`: the graphs by name, and a look at one's own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from graphveil.cli.graphs import show_reading, takes_graph
from graphveil.cli.shared import GraphName, Root, app, console, folding

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from graphveil.data import ReadOptions

MOST_CLASSES = 12
"""Classes of a target that are shown."""

data = typer.Typer(
    help="The graphs that graphveil knows by name, and a look at your own.",
    epilog="Example:  graphveil data list",
    no_args_is_help=True,
)
app.add_typer(data, name="data")


@data.command("list", epilog="Example:  graphveil data list")
def data_list() -> None:
    """List the graphs by name, with their sizes and whether they are here already."""
    from graphveil.data.datasets.catalog import BUILT_IN, PAPER_GRAPHS, cached_file

    table = Table(*folding("name", "nodes", "links", "features", "classes", "where"))
    for name, size in PAPER_GRAPHS.items():
        where = "in the cache" if cached_file(name).exists() else f"graphveil data fetch {name}"
        sizes = (size.nodes, size.links, size.features, size.classes)
        table.add_row(name, *[f"{count:,}" for count in sizes], where)
    for name, (make, what) in BUILT_IN.items():
        graph = make()
        sizes = (graph.x.size(0), graph.edge_index.size(1) // 2, graph.x.size(1), int(graph.y.max()) + 1)
        table.add_row(name, *[f"{count:,}" for count in sizes], f"built in: {what}")
    console.print(table)


@data.command("fetch", epilog="Example:  graphveil data fetch cora")
def data_fetch(
    name: Annotated[str, typer.Argument(help="cora, citeseer or pubmed.")],
    root: Annotated[
        Path | None, typer.Option(help="Take the raw files from this folder instead of the network.")
    ] = None,
) -> None:
    """Fetch a graph into the cache, so that it works offline from then on."""
    from graphveil.data.datasets.catalog import fetch_into_cache

    with console.status(f"Fetching {name} ..."):
        graph, where = fetch_into_cache(name, root)
    console.print(
        f"{name}: {graph.x.size(0):,} nodes, {graph.edge_index.size(1) // 2:,} links,"
        f" {graph.x.size(1):,} features, {int(graph.y.max()) + 1} classes, in {where}",
        highlight=False,
        soft_wrap=True,
    )


@data.command(
    "show",
    epilog="Examples:  graphveil data show folder/      graphveil data show edges.csv --nodes people.csv"
    " --attribute age --bins age=4",
)
@takes_graph
def data_show(graph: GraphName, reading: "ReadOptions", root: Root = None) -> None:
    """Read a graph as a run would, and show what came of it: sizes, classes, and columns that tell them."""
    from graphveil.data import open_graph
    from graphveil.data.sentences import some

    with console.status("ReadOptions ..."):
        found = open_graph(graph, reading, root)
    kind = "sparse feature" if found.x.is_sparse_csr else "feature"
    sizes = {"node": found.x.size(0), "link": found.edge_index.size(1) // 2, kind: found.x.size(1)}
    console.print(", ".join(some(count, what) for what, count in sizes.items()), highlight=False)
    show_reading(console, found)
    show_targets(found)


def show_targets(graph: "Data") -> None:
    """Classes of every target with their counts, and the columns of features that tell it by themselves."""
    from graphveil.data import find_leaky_columns, node_classes
    from graphveil.data.graph import UNKNOWN, node_attributes
    from graphveil.data.origin import class_names

    names = [*(["labels"] if "y" in graph else []), *node_attributes(graph)]
    table = Table(*folding("target", "classes", "unknown", "columns that tell it alone"))
    for name in names:
        codes = node_classes(graph, name)
        counts = codes[codes != UNKNOWN].bincount().tolist()
        named = list(zip(class_names(graph, name, len(counts)), counts, strict=False))
        classes = ", ".join(f"{word} {count:,}" for word, count in named[:MOST_CLASSES])
        more = f" and {len(named) - MOST_CLASSES:,} more" if len(named) > MOST_CLASSES else ""
        strongest = [
            f"{column} {strength:.0%}" for column, strength in find_leaky_columns(graph, name)[:3] if strength > 0
        ]
        words = (name, classes + more, f"{int((codes == UNKNOWN).sum()):,}", ", ".join(strongest) or "none")
        table.add_row(*words)
    if names:
        console.print(table)
