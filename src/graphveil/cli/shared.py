"""What several verbs share: types of options, tables and sentences."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table

from graphveil.cli.console import console

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from graphveil.auditing import Audit, Utility
    from graphveil.codes import Certificate
    from graphveil.formats.audit import AuditRecord
    from graphveil.training.score import Score

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


def report_results(source: Path, out: Path) -> None:
    """Write a report and print its path."""
    from graphveil.reporting import report as write_report

    with console.status("Writing the report ..."):
        write_report(source, out)
    console.print(f"report written to {out}", highlight=False, soft_wrap=True)


def show_audit(audit: "Audit", missed: "Mapping[str, str]") -> None:
    """Print an audit; the title is that of a missed limit, if there is one for its secret."""
    from graphveil.auditing.show import shown

    console.print(shown(audit, missed.get(audit.secret.name)))


def missed_limits(folder: Path, audits: "Iterable[Audit]") -> "dict[str, str]":
    """What to call audits of a run in place of their verdicts, by secret, if a limit of its search is missed."""
    from graphveil.runs.folder import RunFolder

    limits = RunFolder(folder).limits()
    return {} if limits is None else limits.missed([audit.record() for audit in audits])


def print_audits(files: "Iterable[Path]") -> None:
    """Print audits as the result of the verb, if JSON was requested."""
    from graphveil.formats.results import AuditsRecord

    console.result(AuditsRecord(read_audits(files)))


def read_audits(files: "Iterable[Path]") -> "dict[str, AuditRecord]":
    """Read audit.json files, by their paths."""
    from graphveil.formats.audit import AuditRecord
    from graphveil.formats.store import read

    return {str(file): read(file, AuditRecord) for file in files}


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


def warn_if_utility_is_lost(utility: "Utility", advice: str) -> None:
    """Print a warning with some advice if the embeddings predict the utility no better than chance."""
    if utility.is_at_chance:
        console.print(
            f"warning: on {utility.examples:,} test examples, the embeddings predict {utility.name} not significantly"
            f" better than chance. {advice}",
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
