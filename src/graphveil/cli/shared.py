"""What the verbs have in common: the application, options, and how faults and tables are shown."""

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


class InOrder(TyperGroup):
    """The verbs in the order in which one needs them; Ctrl-C is one sentence in all of them."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """While the command line is read."""
        with answer_interrupts():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """While a verb is at work; those that can go on where they were say so themselves."""
        with answer_interrupts():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Those that are named here first."""
        first = ("demo", "data", "protect", "audit", "report", "export", "embed", "grid", "sweep", "reproduce")
        return sorted(super().list_commands(ctx), key=lambda name: first.index(name) if name in first else len(first))


app = typer.Typer(
    name="graphveil",
    cls=InOrder,
    epilog="Start with:  graphveil demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class PlainConsole(Console):
    """Takes every text as it is: names of files, columns and classes are neither markup nor orders to a terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Wherever a text is shown: in a sentence, a table, a title."""
        plain = "\n".join(map(printable, text.split("\n")))
        return super().render_str(plain, **options | {"markup": False, "emoji": False})

    def status(self, status: Any, **options: Any) -> Status:
        """A line while one waits."""
        return super().status(Text(printable(status)), **options)


console = PlainConsole()

GraphName = Annotated[str, typer.Argument(help="A graph by name (see `graphveil data list`), a file or a folder.")]
UtilityName = Annotated[str, typer.Option(help="What to keep: links, labels or a node attribute.")]
SecretNames = Annotated[
    list[str] | None,
    typer.Option("--secret", help="What to hide: labels (default), links or a node attribute; may be repeated."),
]
Objective = Annotated[str, typer.Option(help="How the secret is hidden: codes, club, entropy, minimax or published.")]
Root = Annotated[Path | None, typer.Option(help="Read the graph's raw files from this folder.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]


@contextmanager
def answer_interrupts() -> Iterator[None]:
    """Ctrl-C is a sentence and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        fail("interrupted before anything was finished; the same command starts over.", code=130)


def fail(sentence: str, code: int = 2) -> NoReturn:
    """Print a sentence on stderr and leave; of one that quotes something endless, both ends."""
    PlainConsole(stderr=True, soft_wrap=True).print("graphveil:", printable(shortened(sentence)), highlight=False)
    sys.exit(code)


def _version(asked: bool) -> None:
    if asked:
        console.print(f"graphveil {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and leave.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say what is fetched and read.")] = False,
) -> None:
    """Train node embeddings that keep one task and hide another, and see what still leaks."""
    del version  # its callback has answered already
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="%(message)s")


def report_results(source: Path, out: Path) -> None:
    """Write a report, and say where it is."""
    from graphveil.reporting import report as write_report

    with console.status("Writing the report ..."):
        write_report(source, out)
    console.print(f"a report of it all: {out}", highlight=False, soft_wrap=True)


def show_table(title: str, columns: "Sequence[str]", rows: "Sequence[Sequence[str]]") -> None:
    """Print words as a table."""
    table = Table(*folding(*columns), title=title, title_justify="left")
    for words in rows:
        table.add_row(*words)
    if console.measure(table, options=console.options.update(width=10_000)).maximum > console.width:
        table.padding = (0, 0, 0, 1)  # rather than to fold it
    console.print(table)


def folding(*names: str) -> list[Column]:
    """Columns whose words go on in the next line where a terminal is narrow, and are not cut."""
    return [Column(name, overflow="fold") for name in names]


def scores_table(title: str, scores: "dict[str, Score]") -> Table:
    """Utility and the attack that belongs to the training, a row a run and a secret, each beside guessing."""
    first = next(iter(scores.values()))
    several, metrics = len(first.secrets) > 1, {joint.metric for joint in first.secrets}
    attack = f"attack ({first.secrets[0].metric})" if len(metrics) == 1 else "attack"
    table = Table(*folding("run", f"utility ({first.utility_metric})", *(["secret"] if several else []), attack))
    table.title, table.title_justify = title, "left"
    for name, score in scores.items():
        kept = f"{score.utility:.1%} (guessing {score.utility_chance:.1%})"
        for joint in score.secrets:
            secret = joint.secret if len(metrics) == 1 else f"{joint.secret} ({joint.metric})"
            table.add_row(
                name, kept, *([secret] if several else []), f"{joint.value:.1%} (guessing {joint.chance:.1%})"
            )
    return table


def warn_if_nothing_is_kept(utility: str, score: "Score") -> None:
    """Whoever hides everything has hidden the secret too."""
    if score.utility <= score.utility_chance:
        console.print(
            f"warning: {utility} is not kept: the embeddings are no better for it than guessing. Raise --tradeoff, or"
            " keep something that the graph tells.",
            style="bold",
            highlight=False,
            soft_wrap=True,
        )


def show_certificates(certificates: "Mapping[str, Certificate | None]") -> None:
    """One line for each secret that has a certificate."""
    for secret, found in certificates.items():
        if found is not None:
            console.print(f"Certificate for {secret}: {found.sentence}", highlight=False, soft_wrap=True)


def caution(objective: str, then: str) -> None:
    """What the attack in the table is, and what it does not say."""
    said = (
        "The attack is a rule that was counted from the codes of nodes with known secrets; no adversary is trained."
        " Attackers who also hold the graph or the features may learn more;"
        if objective == "codes"
        else "The attack is the adversary that was trained with the encoder; a fresh attacker may learn more;"
    )
    console.print(f"{said} {then}", style="dim", highlight=False, soft_wrap=True)
