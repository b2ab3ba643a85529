"""`graphveil data`: list, fetch and inspect graphs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from graphveil.cli.console import console
from graphveil.cli.graph_options import show_notes, takes_graph
from graphveil.cli.shared import GraphName, Root, folding
from graphveil.cli.verbs import Verbs, app, examples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch_geometric.data import Data

    from graphveil.data import ReadOptions
    from graphveil.formats.results import NamedGraph, TargetRecord

MAX_CLASSES = 12
"""How many classes of a target are shown."""

data = Verbs(
    help="List and fetch the named graphs, and inspect your own.",
    epilog="Example:  graphveil data list",
    no_args_is_help=True,
)
app.add_typer(data, name="data")


@data.command("list", epilog="Example:  graphveil data list")
def data_list() -> None:
    """List the named graphs, with their sizes and whether they are in the cache."""
    from graphveil.data.datasets.catalog import BUILT_IN, PAPER_GRAPHS, cached_file
    from graphveil.formats.results import GraphsRecord, NamedGraph

    graphs = [
        NamedGraph(name, size.nodes, size.links, size.features, size.classes, cached_file(name).exists())
        for name, size in PAPER_GRAPHS.items()
    ]
    graphs += [named_graph(name, build(), None) for name, (build, _) in BUILT_IN.items()]
    table = Table(*folding("name", "nodes", "links", "features", "classes", "where"))
    for one in graphs:
        if one.cached is None:
            where = f"built in: {BUILT_IN[one.name][1]}"
        else:
            where = "in the cache" if one.cached else f"graphveil data fetch {one.name}"
        sizes = (one.nodes, one.links, one.features, one.classes)
        table.add_row(one.name, *[f"{count:,}" for count in sizes], where)
    console.print(table)
    console.result(GraphsRecord(tuple(graphs)))


@data.command("fetch", epilog="Example:  graphveil data fetch cora")
def data_fetch(
    name: Annotated[str, typer.Argument(help="cora, citeseer or pubmed.")],
    root: Annotated[
        Path | None, typer.Option(help="Read the raw files from this folder instead of downloading them.")
    ] = None,
) -> None:
    """Download a graph into the cache, for use without a network."""
    from graphveil.data.datasets.catalog import fetch_into_cache
    from graphveil.formats.results import GraphsRecord

    with console.status(f"Fetching {name} ..."):
        graph, cached = fetch_into_cache(name, root)
    one = named_graph(name, graph, True)
    console.print(
        f"{name}: {one.nodes:,} nodes, {one.links:,} links, {one.features:,} features, {one.classes} classes, in"
        f" {cached}",
        highlight=False,
        soft_wrap=True,
    )
    console.result(GraphsRecord((one,)))


def named_graph(name: str, graph: "Data", cached: bool | None) -> "NamedGraph":
    """The sizes of a named graph."""
    from graphveil.formats.results import NamedGraph

    nodes, links = graph.x.size(0), graph.edge_index.size(1) // 2
    return NamedGraph(name, nodes, links, graph.x.size(1), int(graph.y.max()) + 1, cached)


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
    from graphveil.data.origin import origin_of
    from graphveil.data.sentences import plural
    from graphveil.formats.results import GraphRecord

    with console.status(f"Reading {graph} ..."):
        opened = open_graph(graph, reading, root)
    kind = "sparse feature" if opened.x.is_sparse_csr else "feature"
    nodes, links, features = opened.x.size(0), opened.edge_index.size(1) // 2, opened.x.size(1)
    sizes = {"node": nodes, "link": links, kind: features}
    console.print(", ".join(plural(count, noun) for noun, count in sizes.items()), highlight=False)
    show_notes(console, opened)
    targets = targets_of(opened)
    show_targets(targets)
    console.result(GraphRecord(graph, nodes, links, features, tuple(origin_of(opened).notes), targets))


def targets_of(graph: "Data") -> "dict[str, TargetRecord]":
    """The classes of every target with their counts, and the skill of single feature columns."""
    from graphveil.data import find_leaky_columns, node_classes
    from graphveil.data.graph import UNKNOWN, class_targets
    from graphveil.data.origin import class_names
    from graphveil.formats.results import TargetRecord

    found = {}
    for name in class_targets(graph):
        codes = node_classes(graph, name)
        counts = codes[codes != UNKNOWN].bincount().tolist()
        classes = dict(zip(class_names(graph, name, len(counts)), counts, strict=False))
        strongest = {column: skill for column, skill in find_leaky_columns(graph, name)[:3] if skill > 0}
        found[name] = TargetRecord(classes, int((codes == UNKNOWN).sum()), strongest)
    return found


def show_targets(targets: "Mapping[str, TargetRecord]") -> None:
    """Print a table of targets."""
    table = Table(*folding("target", "classes", "unknown", "skill of single columns"))
    for name, target in targets.items():
        named = list(target.classes.items())
        classes = ", ".join(f"{class_name} {count:,}" for class_name, count in named[:MAX_CLASSES])
        more = f" and {len(named) - MAX_CLASSES:,} more" if len(named) > MAX_CLASSES else ""
        strongest = [f"{column} {skill:.0%}" for column, skill in target.columns.items()]
        table.add_row(name, classes + more, f"{target.unknown:,}", ", ".join(strongest) or "none")
    if targets:
        console.print(table)
