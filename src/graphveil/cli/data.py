"""`graphveil data`: the graphs by name."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from graphveil.cli.shared import app, console

data = typer.Typer(
    help="The graphs that graphveil knows by name.", epilog="Example:  graphveil data list", no_args_is_help=True
)
app.add_typer(data, name="data")


@data.command("list", epilog="Example:  graphveil data list")
def data_list() -> None:
    """List the graphs by name, with their sizes and whether they are here already."""
    from graphveil.data.catalog import BUILT_IN, PAPER_GRAPHS, cached_file

    table = Table("name", "nodes", "links", "features", "classes", "where")
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
    from graphveil.data.catalog import fetch_into_cache

    with console.status(f"Fetching {name} ..."):
        graph, where = fetch_into_cache(name, root)
    console.print(
        f"{name}: {graph.x.size(0):,} nodes, {graph.edge_index.size(1) // 2:,} links,"
        f" {graph.x.size(1):,} features, {int(graph.y.max()) + 1} classes, in {where}",
        highlight=False,
        soft_wrap=True,
    )
