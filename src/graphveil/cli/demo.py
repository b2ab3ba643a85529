"""`graphveil demo`: train, audit and report on Cora."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli.console import console
from graphveil.cli.shared import caution, print_audits, report_results, scores_table
from graphveil.cli.verbs import app

if TYPE_CHECKING:
    from graphveil.training.score import Score


@app.command(epilog="Example:  graphveil demo")
def demo(
    seed: Annotated[int, typer.Option(help="Decides the split and every random number.")] = 0,
    out: Annotated[Path, typer.Option(help="The folder for the audit and its report.")] = Path("runs/demo"),
) -> None:
    """Train embeddings of Cora that keep its links and hide its labels, audit them, and write a report."""
    from graphveil.auditing import Context, Effort
    from graphveil.auditing import audit as run_audit
    from graphveil.auditing.attacks import UNPROTECTED
    from graphveil.data import Split, load
    from graphveil.progress import show_attacks, show_rounds
    from graphveil.runs.audit import utility_of
    from graphveil.veil import Veil

    with console.status("Fetching cora ..."):
        graph = load("cora")
    split = Split.paper(graph, seed)
    scores: dict[str, Score] = {}
    z = {}
    protected = Veil(utility="links", secret="labels", seed=seed)
    for title, veil in (("unprotected", protected.unprotected()), ("protected", protected)):
        with show_rounds(console, title) as on_round:
            scores[title] = veil.fit(graph, split, on_round=on_round).score(graph, split)
        z[title] = veil.transform(graph, split)
    console.print(scores_table("Cora, GCN: links kept, labels hidden", scores))
    caution(scores["protected"], "The audit runs such attackers:")
    score = scores["protected"]
    joint = None if veil.objective == "codes" else score.secrets[0].value
    utility = utility_of("links", score.utility, graph, split, scores["unprotected"].utility)
    context = Context(joint, utility)
    with show_attacks(console) as on_attack:
        effort = Effort(min(os.cpu_count() or 1, 2), on_attack=on_attack)
        controls = {UNPROTECTED: z["unprotected"]}
        result = run_audit(z["protected"], graph, split, "labels", None, seed, controls, context, effort)
    console.print(result)
    result.save(out / "audit.json")
    report_results(out / "audit.json", out / "report.html")
    print_audits([out / "audit.json"])
