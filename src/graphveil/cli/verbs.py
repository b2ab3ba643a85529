"""The application, and the options that every verb has: --json, --quiet and --config."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from graphveil import __version__
from graphveil.cli.config import apply_config
from graphveil.cli.console import console, exit_on_interrupt
from graphveil.cli.parameters import with_parameters
from graphveil.errors import GraphveilError
from graphveil.processes import launched

Verb = TypeVar("Verb", bound=Callable[..., Any])
PANEL = "For scripts"
_COMMON = {
    "json": (
        Annotated[
            bool,
            typer.Option(
                "--json",
                help="Print the result as one JSON document on stdout, and all else on stderr.",
                rich_help_panel=PANEL,
            ),
        ],
        False,
    ),
    "quiet": (
        Annotated[bool, typer.Option("--quiet", help="Print only errors.", rich_help_panel=PANEL)],
        False,
    ),
    "config": (
        Annotated[
            Path | None,
            typer.Option(
                is_eager=True,
                callback=apply_config,
                help="A YAML file with options of this verb, such as `seed: 3`; those on the command line take"
                " precedence. `protect` also accepts the run.json of an earlier run.",
                rich_help_panel=PANEL,
            ),
        ],
        None,
    ),
}


class OrderedGroup(TyperGroup):
    """Lists the verbs in the order of use, and turns Ctrl-C into one sentence."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Parse the command line."""
        with exit_on_interrupt():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run a verb. Verbs that can be continued have their own sentence."""
        with exit_on_interrupt():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the verbs in the order of use."""
        first = ("demo", "data", "protect", "audit", "report", "export", "embed", "grid", "tune", "sweep", "reproduce")
        return sorted(super().list_commands(ctx), key=lambda name: first.index(name) if name in first else len(first))


class Verbs(typer.Typer):
    """An application whose verbs all have the common options."""

    def command(self, *args: Any, **settings: Any) -> Callable[[Verb], Verb]:
        """Register a verb; it gets its own parameters only."""
        register = super().command(*args, **settings)

        def add(verb: Verb) -> Verb:
            register(_with_common_options(verb))
            return verb

        return add


def _with_common_options(verb: Callable[..., None]) -> Callable[..., None]:
    def run(**values: Any) -> None:
        json, quiet, _ = (values.pop(name) for name in _COMMON)
        console.start(as_json=json, quiet=quiet)
        if launched().size > 1 and verb.__name__ != "protect":
            raise GraphveilError(
                f"torchrun started {launched().size} processes, which only `protect` uses: leave out torchrun."
            )
        with _log_errors_only() if quiet else nullcontext():
            verb(**values)

    return with_parameters(verb, run, _COMMON)


@contextmanager
def _log_errors_only() -> Iterator[None]:
    """Log errors only, even with --verbose."""
    log = logging.getLogger()
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


app = Verbs(
    name="graphveil",
    cls=OrderedGroup,
    epilog="Start with:  graphveil demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def examples(*commands: str) -> str:
    """The end of the help of a verb: examples, one on a line."""
    return "\n\n".join(["Examples:", *commands])


def _version(requested: bool) -> None:
    if requested:
        console.print(f"graphveil {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and exit.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print what is downloaded and read.")] = False,
) -> None:
    """Train node embeddings that keep one task and hide another, and audit what they leak."""
    del version  # its callback has printed it
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="%(message)s")
