"""What the verbs share: the application, options, error messages and tables."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Column, Table
from rich.text import Text
from typer.core import TyperGroup

from graphveil import __version__
from graphveil.errors import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphveil.codes import Certificate
    from graphveil.training.score import Score


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


app = typer.Typer(
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


class PlainConsole(Console):
    """Prints every text literally: names of files, columns and classes are neither markup nor control characters."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Render a text of a sentence, a table or a title."""
        plain = "\n".join(map(printable, text.split("\n")))
        return super().render_str(plain, **options | {"markup": False, "emoji": False})

    def status(self, status: Any, **options: Any) -> Status:
        """Show a line while something runs."""
        return super().status(Text(printable(status)), **options)


console = PlainConsole()

GraphName = Annotated[str, typer.Argument(help="A name (see `graphveil data list`), a file or a folder.")]
UtilityName = Annotated[str, typer.Option(help="What to keep: links, labels or a node attribute.")]
SecretNames = Annotated[
    list[str] | None,
    typer.Option("--secret", help="What to hide: labels (default), links or a node attribute; may be repeated."),
]
Objective = Annotated[str, typer.Option(help="How secrets are hidden: codes, club, entropy, minimax or published.")]
Split = Annotated[
    str | None,
    typer.Option(help="paper (default for cora, citeseer and pubmed) or proportional (default for others)."),
]
Root = Annotated[Path | None, typer.Option(help="Read the raw files of a named graph from this folder.")]
AttackJobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1000,
        help="Parallel processes for the attacks (default: one per core, up to 8; one for the quick panel).",
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]


@contextmanager
def exit_on_interrupt(outcome: str | None = None, folder: Path | None = None) -> Iterator[None]:
    """On Ctrl-C, print a sentence and exit with code 130.

    Args:
        outcome: What is left, and what to do; None if nothing is and the command starts over.
        folder: Where something is left; there is nothing if it does not exist.
    """
    try:
        yield
    except KeyboardInterrupt:
        if outcome is None or (folder is not None and not folder.exists()):
            fail("interrupted before anything was finished; the same command starts over.", code=130)
        fail(f"interrupted; {outcome}", code=130)


def fail(sentence: str, code: int = 2) -> NoReturn:
    """Print a sentence on stderr, shortened if it is too long, and exit."""
    PlainConsole(stderr=True, soft_wrap=True).print("graphveil:", printable(shortened(sentence)), highlight=False)
    sys.exit(code)


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


def report_results(source: Path, out: Path) -> None:
    """Write a report and print its path."""
    from graphveil.reporting import report as write_report

    with console.status("Writing the report ..."):
        write_report(source, out)
    console.print(f"report written to {out}", highlight=False, soft_wrap=True)


def show_table(title: str, columns: "Sequence[str]", rows: "Sequence[Sequence[str]]") -> None:
    """Print rows of text as a table."""
    table = Table(*folding(*columns), title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    if console.measure(table, options=console.options.update(width=10_000)).maximum > console.width:
        table.padding = (0, 0, 0, 1)  # less padding, before anything is folded
    console.print(table)


def folding(*names: str) -> list[Column]:
    """Return columns whose text wraps on a narrow terminal instead of being cut."""
    return [Column(name, overflow="fold") for name in names]


def scores_table(title: str, scores: "dict[str, Score]") -> Table:
    """Return a table with the utility and the training's own attack, each with its chance level.

    There is one row for each run and secret.
    """
    first = next(iter(scores.values()))
    several, metrics = len(first.secrets) > 1, {joint.metric for joint in first.secrets}
    attack = f"attack ({first.secrets[0].metric})" if len(metrics) == 1 else "attack"
    table = Table(*folding("run", f"utility ({first.utility_metric})", *(["secret"] if several else []), attack))
    table.title, table.title_justify = title, "left"
    for name, score in scores.items():
        utility = f"{score.utility:.1%} (chance {score.utility_chance:.1%})"
        for joint in score.secrets:
            secret = joint.secret if len(metrics) == 1 else f"{joint.secret} ({joint.metric})"
            table.add_row(
                name, utility, *([secret] if several else []), f"{joint.value:.1%} (chance {joint.chance:.1%})"
            )
    return table


def warn_if_utility_is_lost(utility: str, score: "Score") -> None:
    """Print a warning if the embeddings predict the utility no better than chance."""
    if score.utility <= score.utility_chance:
        console.print(
            f"warning: the embeddings predict {utility} no better than chance. Raise --tradeoff, or choose a utility"
            " that the features and links can predict.",
            style="bold",
            highlight=False,
            soft_wrap=True,
        )


def show_certificates(certificates: "Mapping[str, Certificate | None]") -> None:
    """Print one line for each secret that has a certificate."""
    for secret, certificate in certificates.items():
        if certificate is not None:
            console.print(f"Certificate for {secret}: {certificate.sentence}", highlight=False, soft_wrap=True)


def caution(score: "Score", then: str) -> None:
    """Print what the attack in the table of scores is, and that other attacks may be stronger.

    Args:
        score: The scores of the run.
        then: A sentence to add.
    """
    names = " or the ".join(dict.fromkeys(one.attack for one in score.secrets))
    sentences = (
        f"The attack is the {names}, counted on known secrets."
        " Attackers who also know the graph or the features may learn more."
        if names != "joint adversary"
        else "The attack is the joint adversary, which was trained with the encoder. A new attacker may learn more."
    )
    console.print(f"{sentences} {then}", style="dim", highlight=False, soft_wrap=True)
