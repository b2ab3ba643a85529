"""`graphveil reproduce` and `graphveil sweep`: many runs, each audited."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli.console import console, exit_on_interrupt, fail
from graphveil.cli.graph_options import takes_graph
from graphveil.cli.opening import open_and_show
from graphveil.cli.shared import (
    Device,
    GraphName,
    Objective,
    SecretNames,
    Split,
    UtilityName,
    report_results,
    show_table,
)
from graphveil.cli.verbs import app, examples
from graphveil.errors import GraphveilError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphveil.data.origin import ReadOptions
    from graphveil.experiments.reproduce import Selection
    from graphveil.experiments.spec import Experiment
    from graphveil.experiments.tables import Row
    from graphveil.formats.results import ExperimentsRecord

Jobs = Annotated[
    int | None,
    typer.Option(min=1, max=1000, help="Parallel trainings, with one thread each (default: one per core)."),
]
Rounds = Annotated[int | None, typer.Option(min=1, help="Training rounds; a small number for a quick trial.")]
Reaudit = Annotated[
    bool, typer.Option("--reaudit", help="Audit the embeddings of finished cells again, without training.")
]

Ray = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Use a Ray cluster: HOST:PORT of its head, auto for the one that runs on this machine, or local for a new"
        " one. Needs the extra ray (in the clone: pip install -c constraints.txt '.\\[ray]').",
    ),
]


@app.command(
    epilog="Example:  graphveil reproduce table2 --dataset cora --encoder gcn --seeds 3 --jobs 2 --out runs/paper"
)
def reproduce(
    what: Annotated[str, typer.Argument(help="table1, table2, table3, figure2, figure3 or all.")],
    dataset: Annotated[list[str] | None, typer.Option(help="cora, citeseer or pubmed; may be repeated.")] = None,
    encoder: Annotated[list[str] | None, typer.Option(help="gcn, gat or hgcn; may be repeated.")] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            help="unprotected, published, minimax, club, codes, matched (codes for a lower class-matched AUC), gap,"
            " gap-class or rr (see docs/codes.md); may be repeated."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Number of seeds: 0, 1, ... (default: 5 for tables, 3 for figures)."),
    ] = None,
    jobs: Jobs = None,
    device: Device = "cpu",
    rounds: Rounds = None,
    out: Annotated[Path, typer.Option(help="The folder of finished cells and tables.")] = Path("runs/paper"),
    results: Annotated[
        Path | None,
        typer.Option(help="A Markdown file: findings and tables replace the text between its begin and end comments."),
    ] = None,
    reaudit: Reaudit = False,
    ray: Ray = None,
) -> None:
    """Reproduce the paper's tables and figures: the published numbers, ours, and the strongest attack.

    Each training and its audit is one cell, saved in one file. After an interruption, the same command runs only the
    missing cells.

    Embeddings are saved, so that a newer version can audit them again without training.

    Writes tables as Markdown, CSV and LaTeX, findings.md and report.html.
    """
    from graphveil.errors import unknown
    from graphveil.experiments import table1
    from graphveil.experiments.cluster import check_address
    from graphveil.experiments.findings import put_between_marks
    from graphveil.experiments.findings import results as as_markdown
    from graphveil.experiments.reproduce import Selection, select
    from graphveil.experiments.spec import NAMES, load_experiment
    from graphveil.files import write_text

    if what not in ("table1", *NAMES, "all"):
        raise unknown("experiment", what, ("table1", *NAMES, "all"))
    check_address(ray)
    selection = Selection(dataset, encoder, variant, seeds, rounds)
    chosen = select({name: load_experiment(name) for name in NAMES if what in (name, "all")}, selection)
    if results is not None:
        if what != "all" or dataset or encoder or variant or rounds:
            raise GraphveilError("--results is for `reproduce all`: omit --dataset, --encoder, --variant and --rounds.")
        put_between_marks(results, None)  # refuse a file without marks before anything runs
    if what in ("table1", "all"):
        show_table("table1", table1.COLUMNS, table1.table1(out, dataset))
    rows, failures = run_experiments(chosen, selection, out, jobs, device, reaudit, ray)
    if rows:
        text = as_markdown(rows, chosen)
        write_text(out / "findings.md", text)
        if results is not None:
            put_between_marks(results, text)
    console.result(experiments_record(out, chosen, table1=what in ("table1", "all")))
    exit_if_failed(failures)


@app.command(
    epilog=examples(
        "graphveil sweep cora --utility links --secret labels --tradeoff 0.5,0.9,1 --out runs/sweep",
        "graphveil sweep people/ --secret gender --secret city --out runs/people",
    )
)
@takes_graph
def sweep(
    graph: GraphName,
    reading: "ReadOptions",
    out: Annotated[Path, typer.Option(help="The folder of finished cells and tables.")],
    utility: UtilityName = "links",
    secret: SecretNames = None,
    encoder: Annotated[str, typer.Option(help="gcn, gat, sage or hgcn.")] = "gcn",
    objective: Objective = "codes",
    tradeoff: Annotated[
        str | None, typer.Option(help="Trade-offs, separated by commas (default: 0, 0.1, ..., 1).")
    ] = None,
    split: Split = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Number of seeds: 0, 1, ...")] = 5,
    jobs: Jobs = None,
    device: Device = "cpu",
    rounds: Rounds = None,
    reaudit: Reaudit = False,
    ray: Ray = None,
) -> None:
    """Train and audit at many trade-offs, to choose one of them.

    Each training and its audits are one cell, saved in one file. After an interruption, the same command runs only the
    missing cells.

    The embeddings at the trade-offs on the Pareto front of utility and leak are kept in OUT/front, one Parquet table
    for each seed.

    Several secrets are hidden at once. Each of them has its own audit, table and curves.

    The page report.html shows secrets of test nodes: share it only with people who may see them.
    """
    from graphveil.experiments.cluster import check_address
    from graphveil.experiments.reproduce import Selection
    from graphveil.experiments.sweep import TRADEOFFS, Settings, as_text, prepare
    from graphveil.formats.experiment import SWEEP

    check_address(ray)
    secrets = secret or ["labels"]
    tradeoffs = as_text(TRADEOFFS) if tradeoff is None else tradeoff
    settings = Settings(utility, secrets, encoder, objective, tradeoffs, split)
    experiment = prepare(graph, out, settings, lambda targets: open_and_show(graph, reading, None, targets, secrets))
    selection = Selection(seeds=seeds, rounds=rounds)
    _, failures = run_experiments({SWEEP: experiment}, selection, out, jobs, device, reaudit, ray)
    console.result(experiments_record(out, [SWEEP]))
    exit_if_failed(failures)


def run_experiments(
    chosen: "dict[str, Experiment]",
    selection: "Selection",
    out: Path,
    jobs: int | None,
    device: str,
    reaudit: bool,
    ray: str | None,
) -> "tuple[dict[str, list[Row]], int]":
    """Run experiments, print their tables and write a report.

    Returns:
        The rows of each experiment by its name, and the number of failed cells.
    """
    from graphveil.experiments import reproduce
    from graphveil.experiments.peers import missing_extra
    from graphveil.experiments.render import brief
    from graphveil.progress import show_cells

    for name, experiment in chosen.items():
        if (sentence := missing_extra(experiment.peers)) is not None:
            console.print(f"{name}: {sentence}", markup=False)
    title = next(iter(chosen)) if len(chosen) == 1 else "experiments"
    processes = jobs or os.cpu_count() or 1
    with exit_on_interrupt(f"run the same command again to continue in {out}."):
        with show_cells(console, title, "cell", processes) as on_done:
            tables, failed = reproduce.run_experiments(
                chosen, selection, out, processes, device, on_done if chosen else None, reaudit, ray
            )
        for name, rows in tables.items():
            show_table(chosen[name].title, *brief(rows))
        for cell, fault in failed:
            console.print(f"failed: {cell}: {fault}", markup=False)
        report_results(out, out / "report.html")
    return tables, len(failed)


def experiments_record(out: Path, names: "Iterable[str]", table1: bool = False) -> "ExperimentsRecord":
    """The result as JSON: the content of the files of experiments."""
    from graphveil.formats.experiment import ExperimentRecord, TableRecord
    from graphveil.formats.results import ExperimentsRecord
    from graphveil.formats.store import read

    experiments = {name: read(out / f"{name}.json", ExperimentRecord) for name in names}
    return ExperimentsRecord(str(out), read(out / "table1.json", TableRecord) if table1 else None, experiments)


def exit_if_failed(failures: int) -> None:
    """Exit with code 1 if a cell failed."""
    from graphveil.data.sentences import plural

    if failures:
        fail(f"{plural(failures, 'cell')} failed; the tables omit them. Run the same command to try again.", code=1)
