"""`graphveil tune`: the most useful embedding within a limit."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli.console import console, exit_on_interrupt, fail
from graphveil.cli.experiments import Jobs, Ray, Rounds
from graphveil.cli.graph_options import takes_graph
from graphveil.cli.opening import open_and_show
from graphveil.cli.shared import (
    Device,
    GraphName,
    SecretNames,
    Split,
    UtilityName,
    missed_limits,
    report_results,
    show_audit,
    show_table,
)
from graphveil.cli.verbs import app, examples

if TYPE_CHECKING:
    from graphveil.data.origin import ReadOptions
    from graphveil.experiments.tune import Tuned

NOT_MET = 3
"""The exit code if no candidate is within the limit."""


@app.command(
    epilog=examples(
        "graphveil tune cora --utility links --secret labels --max-leak +2 --out runs/tuned",
        "graphveil tune people/ --secret gender --min-utility 0.8 --out runs/people",
    )
)
@takes_graph
def tune(
    graph: GraphName,
    reading: "ReadOptions",
    out: Annotated[Path, typer.Option(help="The folder of the candidates and of the chosen run.")],
    utility: UtilityName = "links",
    secret: SecretNames = None,
    max_leak: Annotated[
        str | None,
        typer.Option(
            help="The highest attack accuracy or AUC to accept: +2 is two points above the chance level, 0.6 is 60 %"
            " (default: +2)."
        ),
    ] = None,
    min_utility: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Instead of --max-leak: find the least leak with at least this utility, from 0 to 1."
        ),
    ] = None,
    encoder: Annotated[
        list[str] | None, typer.Option(help="gcn, gat or hgcn; may be repeated (default: all three).")
    ] = None,
    split: Split = None,
    seed: Annotated[int, typer.Option(help="Decides the split and every random number.")] = 0,
    jobs: Jobs = None,
    device: Device = "cpu",
    rounds: Rounds = None,
    ray: Ray = None,
) -> None:
    """Find the most useful embedding that leaks at most as much as you accept, and audit it.

    Trains codes with several encoders, trade-offs and seeds, and chooses on the validation part. The test part is used
    for the audit of the chosen run only, which is an ordinary run folder: OUT/chosen. It keeps the limit, and `export`
    applies it.

    Writes tune.json and report.html, which has a slider over the candidates that no other one beats in both utility and
    leak. Both files contain the number of nodes with each class and code: share them only with people who may see the
    secrets.

    To continue an interrupted search, run the same command again. Exit code 3 means that the limit was not met.
    """
    from graphveil.auditing import Effort
    from graphveil.experiments.candidates import ENCODERS, Search, Task
    from graphveil.experiments.cluster import check_address
    from graphveil.experiments.tune import FILE, find, judge
    from graphveil.formats.store import read
    from graphveil.formats.tune import TuneRecord
    from graphveil.progress import show_attacks, show_cells

    check_address(ray)
    secrets, cores = tuple(secret or ["labels"]), jobs or os.cpu_count() or 1
    search = Search(encoder or ENCODERS, seed, split, None, cores, device, rounds, ray)
    Task.of(graph, utility, secrets, max_leak, min_utility, search)  # check the settings before the graph is read
    opened = open_and_show(graph, reading, None, (utility, *secrets), secrets)
    search = replace(search, reading=opened.reading, split=split or opened.default_split)
    task = Task.of(opened.name, utility, secrets, max_leak, min_utility, search)
    again = f"run the same command again to continue in {out}."
    with exit_on_interrupt(again), show_cells(console, "search", "candidate", cores) as on_done:
        points = find(task, out, on_done)
    with exit_on_interrupt(again), show_attacks(console) as on_attack:
        result = judge(task, out, points, Effort(min(cores, 8), on_attack=on_attack))
    _show(result, opened.title, utility)
    report_results(out, out / "report.html")
    console.result(read(out / FILE, TuneRecord))
    if not result.met:
        fail(result.sentence, code=NOT_MET)
    console.print(result.sentence, highlight=False, soft_wrap=True)


def _show(result: "Tuned", title: str, utility: str) -> None:
    """Print the candidates, the best first, and the audits of the chosen one."""
    from graphveil.experiments.tune import on_front

    heads = ["", "encoder", "trade-off", "gain", "seed", f"{utility} kept"]
    heads += [*result.limits, "within limit", "on Pareto front"]
    rows = [
        [
            "★" if number == 0 else "",
            point.candidate.encoder,
            f"{point.candidate.tradeoff:g}",
            f"{100 * point.candidate.gain:.3g} %",
            str(point.candidate.seed),
            f"{100 * point.utility:.1f}",
            *(f"{100 * leak:.1f}" for leak in point.leaks.values()),
            "yes" if point.excess(result.limits) <= 0 else "no",
            "yes" if on_front(point, result.points, result.chance) else "",
        ]
        for number, point in enumerate(result.points)
    ]
    show_table(f"{title}: candidates, in percent, without the test part", heads, rows)
    missed = missed_limits(result.folder, result.audits.values())
    for audit in result.audits.values():
        show_audit(audit, missed)
