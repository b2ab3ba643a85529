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


def _option(kind: Any, help_: str) -> Any:
    return Annotated[kind, typer.Option(help=help_, rich_help_panel="How the graph is read")]


# All are None by themselves: `embed` must tell a default that was asked for from an option that was not given.
_OPTIONS: Mapping[str, Any] = {
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
    "missing": _option(str | None, "Where there are no features: degree (the default), or embedding (learned)."),
    "direction": _option(str | None, "A link counts from either direction (the default), or has to be mutual."),
    "min_weight": _option(float | None, "Leave out links that weigh less."),
    "loops": _option(str | None, "Links of a node to itself: drop (the default) or refuse."),
    "duplicates": _option(str | None, "Links that are there twice: drop (the default) or refuse."),
    "text_encoding": _option(str | None, "How CSV files are written, such as latin-1 (default: UTF-8)."),
}


def takes_graph(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb with an argument `reading` all options of reading in its place, which then come as one `ReadOptions`.

    A verb with an argument `otherwise` gets the fields of a `ReadOptions` that were given, and no others.
    """
    own = inspect.signature(verb).parameters

    @functools.wraps(verb)
    def with_reading(*args: Any, **given: Any) -> None:
        from graphveil.data import ReadOptions

        values = {name: given.pop(name) for name in _OPTIONS}
        fields = _fields({name: value for name, value in values.items() if value not in (None, [])})
        verb(*args, **given, **({"reading": ReadOptions(**fields)} if "reading" in own else {"otherwise": fields}))

    kept = [own[name] for name in own if name not in ("reading", "otherwise")]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OPTIONS.items()
    ]
    with_reading.__signature__ = inspect.Signature([*kept, *added])  # type: ignore[attr-defined]
    with_reading.__annotations__ = {part.name: part.annotation for part in (*kept, *added)}
    return with_reading


def show_reading(console: Console, graph: "Data") -> None:
    """Say how a graph was read, if it was."""
    from graphveil.data.origin import origin_of

    for note in origin_of(graph).notes:
        console.print(f"  {note}", style="dim", highlight=False, soft_wrap=True)


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the command line as fields of a `ReadOptions`."""
    made: Mapping[str, Callable[[Any], Any]] = {"attribute": tuple, "features": _names, "drop": tuple, "bins": _bins}
    fields = {name: made[name](value) if name in made else value for name, value in options.items()}
    return fields if "attribute" not in fields else fields | {"attributes": fields.pop("attribute")}


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
