"""How a verb takes a graph of somebody's own: the same options of reading for every verb, and what came of them."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from graphveil.errors import GraphveilError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from graphveil.data import Reading


def _option(kind: Any, help_: str, default: Any = None, *names: str) -> tuple[Any, Any]:
    return Annotated[kind, typer.Option(*names, help=help_, rich_help_panel="How the graph is read")], default


_OPTIONS: Mapping[str, tuple[Any, Any]] = {
    "nodes": _option(str | None, "The table of nodes, where it is not found beside the links."),
    "source": _option(str | None, "The column of the links that names where they start."),
    "target": _option(str | None, "The column of the links that names where they end."),
    "weight": _option(str | None, "The column of the links that has their weight."),
    "id": _option(str | None, "The column of the nodes that has their id."),
    "label": _option(str | None, "The column of the nodes that has their label."),
    "attribute": _option(list[str] | None, "A node column to keep or to hide; may be repeated."),
    "features": _option(str | None, "Node columns to take as features, with commas (default: all that are left)."),
    "drop": _option(list[str] | None, "A node column to leave out; may be repeated."),
    "bins": _option(list[str] | None, "Cut a numeric attribute into classes of equal size: --bins age=4"),
    "missing": _option(str, "Where there are no features: degree, or embedding (learned).", "degree"),
    "direction": _option(str, "A link counts from either direction, or has to be mutual.", "either"),
    "min_weight": _option(float | None, "Leave out links that weigh less."),
    "loops": _option(str, "Links of a node to itself: drop or refuse.", "drop"),
    "duplicates": _option(str, "Links that are there twice: drop or refuse.", "drop"),
    "text_encoding": _option(str | None, "How CSV files are written, such as latin-1 (default: UTF-8)."),
}


def takes_graph(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb with an argument `reading` all options of reading in its place, which then come as one `Reading`."""

    @functools.wraps(verb)
    def with_reading(*args: Any, **given: Any) -> None:
        options = {name: given.pop(name) for name in _OPTIONS}
        verb(*args, **given, reading=_reading(options))

    own = inspect.signature(verb).parameters
    kept = [own[name] for name in own if name != "reading"]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _OPTIONS.items()
    ]
    with_reading.__signature__ = inspect.Signature([*kept, *added])  # type: ignore[attr-defined]
    with_reading.__annotations__ = {part.name: part.annotation for part in (*kept, *added)}
    return with_reading


def show_reading(console: Console, graph: "Data") -> None:
    """Say how a graph was read, if it was."""
    from graphveil.data.origin import origin_of

    for note in origin_of(graph).notes:
        console.print(f"  {printable(note)}", style="dim", markup=False, highlight=False, soft_wrap=True)


def printable(text: str) -> str:
    """Without characters that would steer a terminal."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _reading(options: Mapping[str, Any]) -> "Reading":
    from graphveil.data import Reading

    plain = {name: value for name, value in options.items() if name not in ("attribute", "features", "drop", "bins")}
    return Reading(
        **plain,
        attributes=tuple(options["attribute"] or ()),
        features=None if options["features"] is None else _names(options["features"]),
        drop=tuple(options["drop"] or ()),
        bins=_bins(options["bins"] or ()),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _bins(given: Sequence[str]) -> dict[str, int]:
    bins = {}
    for text in given:
        name, _, count = text.rpartition("=")
        if not name or not count.isdecimal() or len(count) > 9:
            raise GraphveilError(f"--bins {text!r} is not understood: say a column and a number, as in --bins age=4.")
        bins[name] = int(count)
    return bins
