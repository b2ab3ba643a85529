"""`graphveil protect` and `graphveil audit`: train embeddings, and measure what they leak."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli.config import merge_with_config
from graphveil.cli.console import console, exit_on_interrupt
from graphveil.cli.graph_options import takes_graph
from graphveil.cli.opening import open_and_show
from graphveil.cli.shared import (
    AttackJobs,
    Device,
    GraphName,
    Objective,
    Root,
    SecretNames,
    UtilityName,
    caution,
    missed_limits,
    print_audits,
    scores_table,
    show_audit,
    show_certificates,
    warn_if_utility_is_lost,
)
from graphveil.cli.verbs import app, examples
from graphveil.errors import GraphveilError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from graphveil.data.origin import ReadOptions
    from graphveil.training.recipes import Recipe

MlFlow = Annotated[str | None, typer.Option("--mlflow", help="Also log to the MLflow server at this address.")]


@app.command(
    epilog=examples(
        "graphveil protect cora --utility links --secret labels --tradeoff 0.5 --out runs/a",
        "graphveil protect people/ --utility links --secret gender --secret city --out runs/b",
    )
)
@takes_graph
def protect(
    graph: GraphName,
    reading: "ReadOptions",
    out: Annotated[Path, typer.Option(help="The folder to write the run into.")],
    utility: UtilityName = "links",
    secret: SecretNames = None,
    encoder: Annotated[str, typer.Option(help="gcn, gat, sage, hgcn or package.module:Class.")] = "gcn",
    tradeoff: Annotated[float, typer.Option(help="lambda, from 0 (only hide) to 1 (only keep).")] = 0.5,
    objective: Objective = "codes",
    adversary: Annotated[
        str | None,
        typer.Option(
            help="The joint adversary (not for codes): linear or mlp for nodes; bilinear, fermi-dirac or pair-mlp for"
            " links (default: an MLP)."
        ),
    ] = None,
    adversary_steps: Annotated[int, typer.Option(help="Steps of the adversary for each step of the encoder.")] = 5,
    adversary_knows: Annotated[
        str,
        typer.Option(
            help="Which secrets training may use: few (those of the training nodes; 20 per class in the paper's split)"
            " or all (of all nodes except validation and test)."
        ),
    ] = "all",
    message_edges: Annotated[
        str | None,
        typer.Option(
            help="Which links are used for message passing: train or all (default: train if links are kept, else all)."
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="paper (20 nodes per class to train, 500 to validate, 1,000 to test; default for cora, citeseer and"
            " pubmed) or proportional (a third of each class to train, a sixth of the nodes to validate, the rest to"
            " test; default for others)."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", callback=merge_with_config, help="Change the recipe: --set rounds=500 --set dropout=0.3"),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Train by mini-batches of this many links or nodes with sampled neighbours, for graphs that do not"
            " fit into memory (gcn, gat and sage).",
        ),
    ] = None,
    root: Root = None,
    seed: Annotated[int, typer.Option(help="Decides the split and every random number.")] = 0,
    device: Device = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Continue the unfinished run in --out.")] = False,
    mlflow: MlFlow = None,
) -> None:
    """Train embeddings that keep the utility and hide the secrets, and write them into a folder.

    Writes embeddings.parquet, model.safetensors, history.parquet and run.json.

    Also writes the nodes (trained_on.parquet) and, if links are kept or hidden, the links (trained_links.parquet) that
    training used: `embed` excludes them from its tests.

    A run that was interrupted or killed continues with --resume, and gives the same result as an uninterrupted one.
    """
    from graphveil.formats.run import read_run
    from graphveil.processes import launched
    from graphveil.progress import show_rounds
    from graphveil.runs.folder import RunFolder
    from graphveil.runs.verbs import protect_opened, take_part_opened
    from graphveil.training.graphs import in_batches
    from graphveil.training.recipes import Adversary, default_recipe
    from graphveil.veil import Veil

    check_tracking(mlflow)
    secrets = secret or ["labels"]
    processes = launched()
    if processes.is_first:
        RunFolder(out).check_free()
    recipe = default_recipe(utility, encoder, objective, secrets).but(batch_size=batch_size)
    veil = Veil(
        utility=utility,
        secret=secrets,
        encoder=encoder,
        tradeoff=tradeoff,
        objective=objective,
        adversary=Adversary(adversary, adversary_steps, adversary_knows),  # type: ignore[arg-type]
        recipe=recipe.parsed(set_ or []),
        seed=seed,
        device=device,
    )
    veil.check_settings()
    opened = open_and_show(graph, reading, root, (utility, *secrets), secrets)
    size = veil.recipe.batch_size  # of --batch-size or --set
    if size is not None and in_batches(veil.recipe, opened.graph):
        veil.recipe = recipe.by_batches(size).parsed(set_ or [])
    show_batches(veil.recipe, opened.graph)
    if processes.size > 1 and not in_batches(veil.recipe, opened.graph):
        raise GraphveilError(
            f"torchrun started {processes.size} processes, which train by mini-batches only: give a --batch-size that"
            " is smaller than the graph, or leave out torchrun."
        )
    kind = split or opened.default_split
    if not processes.is_first:
        with exit_on_interrupt():
            take_part_opened(veil, opened, out, kind, message_edges)
        return
    how_to_resume = f"run the same command with --resume to continue in {out}."
    with exit_on_interrupt(how_to_resume, folder=out), show_rounds(console, opened.title) as on_round:
        run = protect_opened(veil, opened, out, kind, message_edges, on_round, resume=resume)
    title = f"{opened.title}: {utility} kept, {' and '.join(secrets)} hidden"
    console.print(scores_table(title, {f"tradeoff {tradeoff:g}": run.score}))
    show_certificates(run.certificates)
    advice = "Choose a utility that the features and links can predict."
    if tradeoff < 1:
        advice = "Raise --tradeoff, or choose a utility that the features and links can predict."
    warn_if_utility_is_lost(run.utility, advice)
    console.print(
        f"{len(veil.history_)} rounds in {run.seconds:.1f} s; files in {out}", highlight=False, soft_wrap=True
    )
    caution(run.score, f"To measure other attacks: graphveil audit {out}")
    track(mlflow, out)
    console.result(read_run(out))


@app.command(
    epilog=examples("graphveil audit runs/a", "graphveil audit --embeddings z.npy --graph cora --secret labels")
)
@takes_graph
def audit(
    reading: "ReadOptions",
    run: Annotated[Path | None, typer.Argument(help="The folder of a finished run of `graphveil protect`.")] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(help="Embeddings of any origin, instead of a run: .npy, .npz, .parquet, .csv or .safetensors."),
    ] = None,
    graph: Annotated[
        str | None, typer.Option(help="With --embeddings: the graph, as a name, a file or a folder.")
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            help="labels, links or a node column; may be repeated, but not with --embeddings (default: the secrets of"
            " the run)."
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="With --embeddings: paper (default for cora, citeseer and pubmed) or proportional (default for"
            " others)."
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="A node column to group the strongest attack's results by; may be repeated."),
    ] = None,
    panel: Annotated[str, typer.Option(help="full, or quick for a first look.")] = "full",
    controls: Annotated[
        bool,
        typer.Option(
            help="Also attack control encoders: untrained, unprotected, and this run trained with another seed."
        ),
    ] = True,
    jobs: AttackJobs = None,
    time_budget: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds; attacks that are not expected to finish in time are skipped and listed."),
    ] = None,
    root: Root = None,
    seed: Annotated[
        int | None, typer.Option(help="With --embeddings: decides the split and every random number (default: 0).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="With --embeddings: the file to write (default: audit.json).")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted audit of a run: run only the missing attacks.")
    ] = False,
    mlflow: MlFlow = None,
) -> None:
    """Run a panel of attacks on embeddings, and report how well the strongest predicts the secret.

    Attacks are tuned and compared on held-out examples: by cross-validation on the known nodes, or on validation links.
    Results are from the test part.

    Writes audit.json and, beside it, the predictions of every attack, into the run folder or to --out.

    An audit of a run that was interrupted or killed continues with --resume, and gives the same result as an
    uninterrupted one.
    """
    from graphveil.auditing import Effort
    from graphveil.data.origin import ReadOptions
    from graphveil.data.splits.split import draw_split, targets_of
    from graphveil.progress import show_attacks
    from graphveil.runs.audit import audit_embeddings_file, audit_run
    from graphveil.runs.folder import RunFolder
    from graphveil.runs.graphs import Source, with_columns

    only_embeddings = {"--graph": graph, "--split": split, "--seed": seed, "--out": out}
    misplaced = [name for name, value in only_embeddings.items() if value is not None]
    misplaced += ["an option for reading a graph"] if replace(reading, bins={}) != ReadOptions() else []
    if (run is None) == (embeddings is None):
        raise GraphveilError("give either the folder of a run, or --embeddings with --graph and --secret.")
    if run is not None and misplaced:
        raise GraphveilError(
            f"{misplaced[0]} was given with a run folder, which has its own graph options: use it only with"
            " --embeddings."
        )
    for name, value in {"--mlflow": mlflow, "--resume": resume or None}.items():
        if embeddings is not None and value is not None:
            raise GraphveilError(f"{name} was given with --embeddings: use it only with the folder of a run.")
    check_tracking(mlflow)
    left = "no audit was written."
    if run is not None:
        left = f"the finished attacks are kept: run the same command with --resume to continue in {run}."
    kept = None if run is None else RunFolder(run).unfinished_audit
    if kept is not None and kept.exists() and not resume:
        console.print(
            f"starting over: the finished attacks of an interrupted audit are removed from {kept}; --resume would keep"
            " them.",
            highlight=False,
            soft_wrap=True,
        )
    with exit_on_interrupt(left, folder=kept), show_attacks(console) as on_attack:
        effort = Effort(jobs or (1 if panel == "quick" else min(os.cpu_count() or 1, 8)), time_budget, on_attack)
        if run is not None:
            audits = audit_run(run, secret or (), panel, root, controls, effort, reading.bins, by or (), resume=resume)
        else:
            assert embeddings is not None
            if graph is None or secret is None or len(secret) != 1:
                raise GraphveilError("--embeddings needs --graph and exactly one --secret: give both.")
            groups = [name for name in by or () if name not in (*secret, *reading.attributes)]
            bins = {name: count for name, count in reading.bins.items() if name in groups}
            own_bins = {name: count for name, count in reading.bins.items() if name not in bins}
            opened = open_and_show(graph, replace(reading, bins=own_bins), root, secret, ())
            parts = draw_split(
                split or opened.default_split, opened.graph, seed or 0, "all", targets_of(opened.graph, secret[0])
            )
            file, grouped = (
                out or Path("audit.json"),
                with_columns(opened.graph, Source(**opened.source), (), by or (), bins),
            )
            result = audit_embeddings_file(
                embeddings, grouped, parts, secret[0], seed or 0, file, panel, effort, by or ()
            )
            audits = {file: result}
    missed = {} if run is None else missed_limits(run, audits.values())
    for file, result in audits.items():
        show_audit(result, missed)
        console.print(f"written to {file}", highlight=False, soft_wrap=True, markup=False)
    if run is not None:
        track(mlflow, run)
    print_audits(audits)


def show_batches(recipe: "Recipe", graph: "Data") -> None:
    """Print that mini-batches are not smaller than the graph, if they were requested."""
    from graphveil.training.graphs import in_batches

    if recipe.batch_size is not None and not in_batches(recipe, graph):
        console.print(
            f"A mini-batch of {recipe.batch_size:,} is not smaller than the graph ({graph.x.size(0):,} nodes,"
            f" {graph.edge_index.size(1) // 2:,} links): every round uses the whole graph.",
            highlight=False,
            soft_wrap=True,
        )


def check_tracking(address: str | None) -> None:
    """Refuse an invalid address before anything is done."""
    if address is not None:
        from graphveil.tracking import check_address

        check_address(address)


def track(address: str | None, folder: Path) -> None:
    """Log a run folder to MLflow, if an address is given."""
    if address is not None:
        from graphveil.tracking import log_run

        with console.status("Logging to MLflow ..."):  # an address may hold a password
            log_run(address, folder)
