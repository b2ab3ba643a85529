"""The options that say how to read a graph, which every verb with a graph has, and the notes about what was read."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from graphveil.cli.config import merge_with_config
from graphveil.cli.parameters import with_parameters
from graphveil.errors import GraphveilError

if TYPE_CHECKING:
    from torch_geometric.data import Data


def _option(kind: Any, help_: str, callback: Callable[..., Any] | None = None) -> Any:
    return Annotated[kind, typer.Option(help=help_, callback=callback, rich_help_panel="How the graph is read")]


# All default to None: `embed` must distinguish a default that was given from an option that was not given.
_OPTIONS: Mapping[str, Any] = {
    "nodes": _option(str | None, "The table of nodes, if it is not found beside the table of links."),
    "source": _option(str | None, "Link table: column of source ids."),
    "target": _option(str | None, "Link table: column of destination ids."),
    "weight": _option(str | None, "Link table: column of weights."),
    "id": _option(str | None, "Node table: column of ids."),
    "label": _option(str | None, "Node table: column of labels."),
    "attribute": _option(
        list[str] | None, "A node column to read as utility or secret, not as a feature; may be repeated."
    ),
    "features": _option(str | None, "Node columns to use as features, separated by commas (default: all others)."),
    "drop": _option(list[str] | None, "A node column to exclude; may be repeated."),
    "bins": _option(
        list[str] | None, "Cut a numeric attribute into classes of equal size: --bins age=4", merge_with_config
    ),
    "missing": _option(
        str | None, "What to use if the graph has no features: degree (default), or embedding (learned for each node)."
    ),
    "direction": _option(str | None, "Which links count: either (in at least one direction; default) or mutual."),
    "min_weight": _option(float | None, "Exclude links of a lower weight."),
    "loops": _option(str | None, "Links from a node to itself: drop (default) or refuse."),
    "duplicates": _option(str | None, "Duplicate links: drop (default) or refuse."),
    "bad_values": _option(str | None, "Text in a column of numbers: missing (counts as missing; default) or refuse."),
    "text_encoding": _option(str | None, "The encoding of CSV files, such as latin-1 (default: UTF-8)."),
}


def takes_graph(verb: Callable[..., None]) -> Callable[..., None]:
    """Replace the argument `reading` of a verb by all options of reading; the verb gets them as one `ReadOptions`.

    A verb with an argument `overrides` instead gets a dictionary of those fields of `ReadOptions` that were given.
    """
    own = inspect.signature(verb).parameters

    def with_options(**values: Any) -> None:
        from graphveil.data import ReadOptions

        read = {name: values.pop(name) for name in _OPTIONS}
        fields = _fields({name: value for name, value in read.items() if value not in (None, [])})
        read_options = {"reading": ReadOptions(**fields)} if "reading" in own else {"overrides": fields}
        verb(**values, **read_options)

    added = {name: (annotation, None) for name, annotation in _OPTIONS.items()}
    return with_parameters(verb, with_options, added, replaced=("reading", "overrides"))


def show_notes(console: Console, graph: "Data") -> None:
    """Print the notes about how a graph was read from files."""
    from graphveil.data.origin import origin_of

    for note in origin_of(graph).notes:
        console.print(f"  {note}", style="dim", highlight=False, soft_wrap=True)


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the command line as fields of `ReadOptions`."""
    parsers: Mapping[str, Callable[[Any], Any]] = {"attribute": tuple, "features": _names, "drop": tuple, "bins": _bins}
    fields = {name: parsers[name](value) if name in parsers else value for name, value in options.items()}
    return fields if "attribute" not in fields else fields | {"attributes": fields.pop("attribute")}


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _bins(texts: Sequence[str]) -> dict[str, int]:
    bins = {}
    for text in texts:
        name, _, count = text.rpartition("=")
        if not name or not count.isdecimal() or len(count) > 9:
            raise GraphveilError(f"--bins {text!r} is invalid: give a column and a number, as in --bins age=4.")
        bins[name] = int(count)
    return bins
