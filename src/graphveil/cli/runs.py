"""`graphveil protect` and `graphveil audit`: one run, and what it leaks."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli.graphs import takes_graph
from graphveil.cli.opening import open_and_show
from graphveil.cli.shared import (
    Device,
    GraphName,
    Objective,
    Root,
    SecretNames,
    UtilityName,
    app,
    caution,
    console,
    fail,
    scores_table,
    show_certificates,
    warn_if_nothing_is_kept,
)
from graphveil.errors import GraphveilError

if TYPE_CHECKING:
    from graphveil.data.origin import ReadOptions

MlFlow = Annotated[str | None, typer.Option("--mlflow", help="Log to the MLflow server at this address too.")]


@app.command(
    epilog="Examples:  graphveil protect cora --utility links --secret labels --tradeoff 0.5 --out runs/a"
    "      graphveil protect people/ --utility links --secret gender --secret city --out runs/b"
)
@takes_graph
def protect(
    graph: GraphName,
    reading: "ReadOptions",
    out: Annotated[Path, typer.Option(help="The folder to write the run into.")],
    utility: UtilityName = "links",
    secret: SecretNames = None,
    encoder: Annotated[str, typer.Option(help="gcn, gat, hgcn or package.module:Class.")] = "gcn",
    tradeoff: Annotated[float, typer.Option(help="lambda: 1 keeps all, 0 hides all.")] = 0.5,
    objective: Objective = "codes",
    adversary: Annotated[
        str | None,
        typer.Option(help="linear or mlp for nodes; bilinear, fermi-dirac or pair-mlp for links (default: an MLP)."),
    ] = None,
    adversary_steps: Annotated[int, typer.Option(help="Its steps for each step of the encoder.")] = 5,
    adversary_knows: Annotated[
        str,
        typer.Option(help="Node secrets it may learn from: few (20 a class) or all (outside validation and test)."),
    ] = "all",
    message_edges: Annotated[
        str | None,
        typer.Option(help="Links that messages pass along: train or all (default: train if links are kept)."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="paper (20 a class, 500, 1,000; of graphs by name) or proportional (of your own)."),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change the recipe: --set rounds=500 --set dropout=0.3")
    ] = None,
    root: Root = None,
    seed: Annotated[int, typer.Option(help="Decides the split and every random number.")] = 0,
    device: Device = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run in --out.")] = False,
    mlflow: MlFlow = None,
) -> None:
    """Train embeddings that keep the utility and hide the secret, and write them into a folder.

    Writes embeddings.parquet, model.safetensors, history.parquet and run.json.

    And trained_on.parquet and, if links are kept or hidden, trained_links.parquet: what `embed` must not ask for again.

    A run that was stopped or killed goes on with --resume, and ends where an unbroken one ends.
    """
    from graphveil.data.splits.split import default_message_edges, draw_split
    from graphveil.progress import show_rounds
    from graphveil.runs.folder import RunFolder
    from graphveil.runs.protect import protect as run_protect
    from graphveil.training.recipes import Adversary, default_recipe
    from graphveil.veil import Veil

    check_tracking(mlflow)
    secrets = secret or ["labels"]
    RunFolder(out).check_free()
    veil = Veil(
        utility=utility,
        secret=secrets,
        encoder=encoder,
        tradeoff=tradeoff,
        objective=objective,
        adversary=Adversary(adversary, adversary_steps, adversary_knows),  # type: ignore[arg-type]
        recipe=default_recipe(utility, encoder, objective, secrets).parsed(set_ or []),
        seed=seed,
        device=device,
    )
    veil.check_settings()
    opened = open_and_show(graph, reading, root, (utility, *secrets), secrets)
    edges, kind = message_edges or default_message_edges(utility), split or opened.default_split
    parts = draw_split(kind, opened.graph, seed, edges, (utility, *secrets))
    try:
        with show_rounds(console, opened.title) as on_round:
            source = opened.source | {"split": kind}
            run = run_protect(veil, opened.graph, parts, out, resume=resume, on_round=on_round, source=source)
    except KeyboardInterrupt:
        if not out.exists():
            raise  # nothing was kept
        fail(f"interrupted; the same command with --resume goes on with {out}.", code=130)
    title = f"{opened.title}: {utility} kept, {' and '.join(secrets)} hidden"
    console.print(scores_table(title, {f"tradeoff {tradeoff:g}": run.score}))
    show_certificates(run.certificates)
    warn_if_nothing_is_kept(utility, run.score)
    console.print(
        f"{len(veil.history_)} rounds in {run.seconds:.1f} s; files in {out}", highlight=False, soft_wrap=True
    )
    caution(objective, f"see what: graphveil audit {out}")
    track(mlflow, out)


@app.command(
    epilog="Examples:  graphveil audit runs/a      graphveil audit --embeddings z.npy --graph cora --secret labels"
)
@takes_graph
def audit(
    reading: "ReadOptions",
    run: Annotated[Path | None, typer.Argument(help="The folder of a finished run of `graphveil protect`.")] = None,
    embeddings: Annotated[
        Path | None, typer.Option(help="Or anybody's embeddings: .npy, .npz, .parquet, .csv or .safetensors.")
    ] = None,
    graph: Annotated[str | None, typer.Option(help="The graph of --embeddings: by name, a file or a folder.")] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(help="labels, links or a node column; may be repeated (default: what the run hides)."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Of --embeddings: paper (of graphs by name) or proportional (of your own).")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="A node column to group the strongest attack's results by; may be repeated."),
    ] = None,
    panel: Annotated[str, typer.Option(help="full, or quick for a first look.")] = "full",
    controls: Annotated[
        bool,
        typer.Option(
            help="Attack encoders of the run's kind too: untrained, unprotected, and this run from another seed."
        ),
    ] = True,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Attacks at once, each in a process of its own (default: one a core)."),
    ] = None,
    time_budget: Annotated[
        float | None, typer.Option(min=0, help="Seconds; attacks not expected to end by then are dropped, and named.")
    ] = None,
    root: Root = None,
    seed: Annotated[
        int | None, typer.Option(help="Of --embeddings: decides the split and every random number (default: 0).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Of --embeddings: the file to write (default: audit.json).")] = None,
    mlflow: MlFlow = None,
) -> None:
    """Let a panel of fresh attackers read the secret from embeddings, and say how much the strongest one reads.

    Every attack tunes on the validation part; the strongest is chosen there, and its reading is that on the test part.

    Writes audit.json and, beside it, every attack's raw answers: into the run's folder, or where --out says.
    """
    from graphveil.auditing import Effort
    from graphveil.data.origin import ReadOptions
    from graphveil.data.splits.split import draw_split, targets_of
    from graphveil.progress import show_attacks
    from graphveil.runs.audit import audit_embeddings_file, audit_run
    from graphveil.runs.graphs import with_columns

    own = {"--graph": graph, "--split": split, "--seed": seed, "--out": out}
    given = [name for name, value in own.items() if value is not None]
    given += ["how a graph is read"] if replace(reading, bins={}) != ReadOptions() else []
    if (run is None) == (embeddings is None):
        raise GraphveilError("give either the folder of a run, or --embeddings with --graph and --secret.")
    if run is not None and given:
        raise GraphveilError(
            f"{given[0]} belongs to --embeddings: a run has its own, and the audit goes into its folder."
        )
    if embeddings is not None and mlflow is not None:
        raise GraphveilError("--mlflow is for the folder of a run: an audit of --embeddings has none.")
    check_tracking(mlflow)
    try:
        with show_attacks(console) as on_attack:
            effort = Effort(jobs or (1 if panel == "quick" else min(os.cpu_count() or 1, 8)), time_budget, on_attack)
            if run is not None:
                found = audit_run(run, secret or (), panel, root, controls, effort, reading.bins, by or ())
            else:
                assert embeddings is not None
                if graph is None or secret is None or len(secret) != 1:
                    raise GraphveilError(
                        "--embeddings needs --graph and one --secret too: whose nodes, and what to look for."
                    )
                later = [name for name in by or () if name not in (*secret, *reading.attributes)]
                bins = {name: count for name, count in reading.bins.items() if name in later}
                first = replace(reading, bins={name: n for name, n in reading.bins.items() if name not in bins})
                opened = open_and_show(graph, first, root, secret, ())
                parts = draw_split(
                    split or opened.default_split, opened.graph, seed or 0, "all", targets_of(opened.graph, secret[0])
                )
                file, grouped = out or Path("audit.json"), with_columns(opened.graph, opened.source, (), by or (), bins)
                one = audit_embeddings_file(
                    embeddings, grouped, parts, secret[0], seed or 0, file, panel, effort, by or ()
                )
                found = {file: one}
    except KeyboardInterrupt:
        fail("interrupted; no audit was written.", code=130)
    for file, one in found.items():
        console.print(one)
        console.print(f"written to {file}", highlight=False, soft_wrap=True, markup=False)
    if run is not None:
        track(mlflow, run)


def check_tracking(address: str | None) -> None:
    """Refuse an address that cannot be logged to before anything is done."""
    if address is not None:
        from graphveil.tracking import check_address

        check_address(address)


def track(address: str | None, folder: Path) -> None:
    """Log what lies in a run's folder, if an address is given."""
    if address is not None:
        from graphveil.tracking import log_run

        with console.status("Logging to MLflow ..."):  # an address may hold a password
            log_run(address, folder)
