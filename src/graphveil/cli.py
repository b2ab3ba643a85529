"""The command line: verbs, no logic. torch and PyG are imported inside the verbs, so that --help is quick."""

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from graphveil import __version__
from graphveil.errors import GraphveilError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphveil.experiments.reproduce import Asked
    from graphveil.experiments.spec import Experiment
    from graphveil.veil import Score

app = typer.Typer(
    name="graphveil",
    epilog="Start with:  graphveil demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data = typer.Typer(
    help="The graphs that graphveil knows by name.", epilog="Example:  graphveil data list", no_args_is_help=True
)
app.add_typer(data, name="data")
console = Console()

# Options that several verbs share.
GraphName = Annotated[str, typer.Argument(help="A graph by name; see `graphveil data list`.")]
UtilityName = Annotated[str, typer.Option(help="What to keep: links, labels or a node attribute.")]
SecretName = Annotated[str, typer.Option(help="What to hide: labels, links or a node attribute.")]
Root = Annotated[Path | None, typer.Option(help="Read the graph's raw files from this folder.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Trainings at once, one thread each (default: a core).")]
Rounds = Annotated[int | None, typer.Option(min=1, help="Fewer rounds, to see whether it runs.")]


def run() -> None:
    """The entry point: every expected fault is one sentence on stderr and exit code 2."""
    # GNU OpenMP's threads spin so long while they wait that a run was 15 times slower on a machine with other work.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        app()
    except GraphveilError as error:
        fail(str(error))


def fail(sentence: str, code: int = 2) -> NoReturn:
    """Print a sentence on stderr and leave."""
    Console(stderr=True, soft_wrap=True).print("graphveil:", sentence, markup=False, highlight=False)
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


@data.command("list", epilog="Example:  graphveil data list")
def data_list() -> None:
    """List the graphs by name, with their sizes and whether they are here already."""
    from graphveil.data.catalog import BUILT_IN, PAPER_GRAPHS, cached_file

    table = Table("name", "nodes", "links", "features", "classes", "where")
    for name, size in PAPER_GRAPHS.items():
        where = "in the cache" if cached_file(name).exists() else f"graphveil data fetch {name}"
        sizes = (size.nodes, size.links, size.features, size.classes)
        table.add_row(name, *[f"{count:,}" for count in sizes], where)
    for name, (make, what) in BUILT_IN.items():
        graph = make()
        sizes = (graph.x.size(0), graph.edge_index.size(1) // 2, graph.x.size(1), int(graph.y.max()) + 1)
        table.add_row(name, *[f"{count:,}" for count in sizes], f"built in: {what}")
    console.print(table)


@data.command("fetch", epilog="Example:  graphveil data fetch cora")
def data_fetch(
    name: Annotated[str, typer.Argument(help="cora, citeseer or pubmed.")],
    root: Annotated[
        Path | None, typer.Option(help="Take the raw files from this folder instead of the network.")
    ] = None,
) -> None:
    """Fetch a graph into the cache, so that it works offline from then on."""
    from graphveil.data.catalog import fetch_into_cache

    with console.status(f"Fetching {name} ..."):
        graph, where = fetch_into_cache(name, root)
    console.print(
        f"{name}: {graph.x.size(0):,} nodes, {graph.edge_index.size(1) // 2:,} links,"
        f" {graph.x.size(1):,} features, {int(graph.y.max()) + 1} classes, in {where}",
        highlight=False,
        soft_wrap=True,
    )


@app.command(
    epilog="Example:  graphveil protect cora --utility links --secret labels --encoder gcn --tradeoff 0.5 --out runs/a"
)
def protect(
    graph: GraphName,
    out: Annotated[Path, typer.Option(help="The folder to write the run into.")],
    utility: UtilityName = "links",
    secret: SecretName = "labels",
    encoder: Annotated[str, typer.Option(help="gcn, gat, hgcn or package.module:Class.")] = "gcn",
    tradeoff: Annotated[float, typer.Option(help="lambda: 1 keeps all, 0 hides all.")] = 0.5,
    objective: Annotated[
        str, typer.Option(help="How the secret is hidden: kernel, club, entropy, minimax or published.")
    ] = "kernel",
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
    split: Annotated[str, typer.Option(help="paper (20 a class, 500, 1,000) or proportional.")] = "paper",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change the recipe: --set rounds=500 --set dropout=0.3")
    ] = None,
    root: Root = None,
    seed: Annotated[int, typer.Option(help="Decides the split and every random number.")] = 0,
    device: Device = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run in --out.")] = False,
) -> None:
    """Train embeddings that keep the utility and hide the secret, and write them into a folder.

    Writes embeddings.parquet, embeddings.npy, model.safetensors, history.parquet and run.json.

    A run that was stopped or killed goes on with --resume, and ends where an unbroken one ends.
    """
    from graphveil.data import SPLITS, load
    from graphveil.data.split import default_message_edges
    from graphveil.errors import unknown
    from graphveil.progress import show_rounds
    from graphveil.run import protect as run_protect
    from graphveil.training.recipes import Adversary, default_recipe
    from graphveil.veil import Veil

    with console.status(f"Loading {graph} ..."):
        loaded = load(graph, root)
    edges = message_edges or default_message_edges(utility)
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    parts = SPLITS[split](loaded, seed, message_edges=edges)  # type: ignore[arg-type]
    veil = Veil(
        utility=utility,
        secret=secret,
        encoder=encoder,
        tradeoff=tradeoff,
        objective=objective,
        adversary=Adversary(adversary, adversary_steps, adversary_knows),  # type: ignore[arg-type]
        recipe=default_recipe(utility, encoder).parsed(set_ or []),
        seed=seed,
        device=device,
    )
    try:
        with show_rounds(console, graph) as on_round:
            source = {"graph": graph, "split": split}
            run = run_protect(veil, loaded, parts, out, resume=resume, on_round=on_round, source=source)
    except KeyboardInterrupt:
        fail(f"interrupted; the same command with --resume goes on with {out}.", code=130)
    console.print(scores_table(f"{graph}: {utility} kept, {secret} hidden", {f"tradeoff {tradeoff:g}": run.score}))
    console.print(
        f"{len(veil.history_)} rounds in {run.seconds:.1f} s; files in {out}", highlight=False, soft_wrap=True
    )
    caution(f"see what: graphveil audit {out}")


@app.command(
    epilog="Examples:  graphveil audit runs/a      graphveil audit --embeddings z.npy --graph cora --secret labels"
)
def audit(
    run: Annotated[Path | None, typer.Argument(help="The folder of a finished run of `graphveil protect`.")] = None,
    embeddings: Annotated[
        Path | None, typer.Option(help="Or anybody's embeddings: .npy, .npz, .parquet, .csv or .safetensors.")
    ] = None,
    graph: Annotated[str | None, typer.Option(help="The graph of --embeddings; see `graphveil data list`.")] = None,
    secret: Annotated[
        str | None, typer.Option(help="labels, links or a node attribute (default: what the run hides).")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Of --embeddings: paper or proportional (default: paper).")] = None,
    panel: Annotated[str, typer.Option(help="full, or quick for a first look.")] = "full",
    controls: Annotated[
        bool, typer.Option(help="Attack an untrained and an unprotected encoder of the run's kind too.")
    ] = True,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Attacks at once, each in a process of its own (default: one a core).")
    ] = None,
    time_budget: Annotated[
        float | None, typer.Option(min=0, help="Seconds; attacks not expected to end by then are dropped, and named.")
    ] = None,
    root: Root = None,
    seed: Annotated[
        int | None, typer.Option(help="Of --embeddings: decides the split and every random number (default: 0).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Of --embeddings: the file to write (default: audit.json).")] = None,
) -> None:
    """Let a panel of fresh attackers read the secret from embeddings, and say how much the strongest one reads.

    Every attack tunes on the validation part; the strongest is chosen there, and its reading is that on the test part.

    Writes audit.json and, beside it, every attack's raw answers: into the run's folder, or where --out says.
    """
    from graphveil.audit import Effort
    from graphveil.data import SPLITS, load
    from graphveil.errors import unknown
    from graphveil.progress import show_attacks
    from graphveil.review import review, review_file

    own = {"--graph": graph, "--split": split, "--seed": seed, "--out": out}
    given = [name for name, value in own.items() if value is not None]
    if (run is None) == (embeddings is None):
        raise GraphveilError("give either the folder of a run, or --embeddings with --graph and --secret.")
    if run is not None and given:
        raise GraphveilError(
            f"{given[0]} belongs to --embeddings: a run has its own, and the audit goes into its folder."
        )
    try:
        with show_attacks(console) as on_attack:
            effort = Effort(jobs or (1 if panel == "quick" else min(os.cpu_count() or 1, 8)), time_budget, on_attack)
            if run is not None:
                found = review(run, secret, panel, root, controls, effort)
                out = run / "audit.json"
            else:
                assert embeddings is not None
                if graph is None or secret is None:
                    raise GraphveilError(
                        "--embeddings needs --graph and --secret too: whose nodes, and what to look for."
                    )
                if (kind := split or "paper") not in SPLITS:
                    raise unknown("split", kind, SPLITS)
                loaded, out = load(graph, root), out or Path("audit.json")
                parts = SPLITS[kind](loaded, seed or 0, message_edges="all")
                found = review_file(embeddings, loaded, parts, secret, seed or 0, out, panel, effort)
    except KeyboardInterrupt:
        fail("interrupted; no audit was written.", code=130)
    console.print(found)
    console.print(f"written to {out}", highlight=False, soft_wrap=True)


@app.command(
    epilog="Example:  graphveil reproduce table2 --dataset cora --encoder gcn --seeds 3 --jobs 2 --out runs/paper"
)
def reproduce(
    what: Annotated[str, typer.Argument(help="table1, table2, table3, figure2, figure3, or all of them: all.")],
    dataset: Annotated[list[str] | None, typer.Option(help="cora, citeseer or pubmed; may be repeated.")] = None,
    encoder: Annotated[list[str] | None, typer.Option(help="gcn, gat or hgcn; may be repeated.")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds 0, 1, ... (default: the experiment's own, 10).")
    ] = None,
    jobs: Jobs = None,
    device: Device = "cpu",
    rounds: Rounds = None,
    out: Annotated[Path, typer.Option(help="The folder of finished cells and tables.")] = Path("runs/paper"),
) -> None:
    """Re-run the paper's tables and figures: what it printed, what its protocol gives here, what fresh attackers read.

    Each training and its audit is one cell, in one file: a stopped run goes on where it was, and nothing is done twice.
    """
    from graphveil.errors import unknown
    from graphveil.experiments import table1
    from graphveil.experiments.reproduce import Asked
    from graphveil.experiments.spec import NAMES, load_experiment

    if what not in ("table1", *NAMES, "all"):
        raise unknown("experiment", what, ("table1", *NAMES, "all"))
    if what in ("table1", "all"):
        show_table("table1", table1.COLUMNS, table1.table1(out, dataset))
    chosen = {name: load_experiment(name) for name in NAMES if what in (name, "all")}
    run_experiments(chosen, Asked(dataset, encoder, seeds, rounds), out, jobs, device)


@app.command(
    epilog="Example:  graphveil sweep cora --utility links --secret labels --tradeoff 0.5,0.9,1 --out runs/sweep"
)
def sweep(
    graph: GraphName,
    out: Annotated[Path, typer.Option(help="The folder of finished cells and tables.")],
    utility: UtilityName = "links",
    secret: SecretName = "labels",
    encoder: Annotated[str, typer.Option(help="gcn, gat or hgcn.")] = "gcn",
    objective: Annotated[str, typer.Option(help="kernel, club, entropy, minimax or published.")] = "kernel",
    tradeoff: Annotated[str, typer.Option(help="Trade-offs, with commas.")] = "0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1",
    split: Annotated[str, typer.Option(help="paper or proportional.")] = "paper",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0, 1, ...")] = 5,
    jobs: Jobs = None,
    device: Device = "cpu",
    rounds: Rounds = None,
) -> None:
    """Train and audit a graph at many trade-offs, to choose an operating point that can be defended.

    Each training and its audit is one cell, in one file: a stopped run goes on where it was, and nothing is done twice.
    """
    from graphveil.data import load
    from graphveil.experiments import spec
    from graphveil.experiments.reproduce import Asked

    experiment = spec.sweep(graph, utility, secret, encoder, objective, tradeoff, split)
    load(graph)  # refuse an unknown graph before any worker starts
    run_experiments({"sweep": experiment}, Asked(seeds=seeds, rounds=rounds), out, jobs, device)


def run_experiments(chosen: "dict[str, Experiment]", asked: "Asked", out: Path, jobs: int | None, device: str) -> None:
    """Run and show experiments one after the other; leave with exit code 1 if a cell failed."""
    from graphveil.experiments.reproduce import run_experiment
    from graphveil.experiments.tables import BRIEF, brief
    from graphveil.progress import show_cells

    failures = 0
    for name, experiment in chosen.items():
        try:
            with show_cells(console, name) as on_done:
                rows, failed = run_experiment(
                    name, experiment, asked, out, jobs or os.cpu_count() or 1, device, on_done
                )
        except KeyboardInterrupt:
            fail(f"interrupted; the same command goes on with what is in {out}.", code=130)
        show_table(experiment.title, BRIEF, brief(rows))
        for cell, fault in failed:
            console.print(
                f"failed: {cell.dataset} {cell.encoder} {cell.objective} seed {cell.seed}: {fault}", markup=False
            )
        failures += len(failed)
    console.print(f"tables and cells in {out}", highlight=False, soft_wrap=True)
    if failures:
        fail(f"{failures} cells failed and are left out of the tables; run the same command again.", code=1)


@app.command(epilog="Example:  graphveil demo")
def demo(
    seed: Annotated[int, typer.Option(help="Decides the split and every random number.")] = 0,
) -> None:
    """Protect the labels of real Cora while its links stay useful, and audit the result, in about a minute."""
    from graphveil.audit import Context, Effort
    from graphveil.audit import audit as run_audit
    from graphveil.data import Split, load
    from graphveil.progress import show_attacks, show_rounds
    from graphveil.review import utility_of
    from graphveil.veil import Veil

    with console.status("Fetching cora ..."):
        graph = load("cora")
    split = Split.paper(graph, seed)
    scores: dict[str, Score] = {}
    z = {}
    for title, tradeoff in (("unprotected", 1.0), ("protected", 0.5)):
        veil = Veil(utility="links", secret="labels", tradeoff=tradeoff, seed=seed)
        with show_rounds(console, title) as on_round:
            scores[title] = veil.fit(graph, split, on_round=on_round).score(graph, split)
        z[title] = veil.transform(graph, split)
    console.print(scores_table("Cora, GCN: links kept, labels hidden", scores))
    caution("so, here are some:")
    score = scores["protected"]
    context = Context(score.adversary, utility_of("links", score.utility, graph, split))
    with show_attacks(console) as on_attack:
        effort = Effort(min(os.cpu_count() or 1, 2), on_attack=on_attack)
        controls = {"unprotected encoder": z["unprotected"]}
        found = run_audit(z["protected"], graph, split, "labels", None, seed, controls, context, effort)
    console.print(found)


def show_table(title: str, columns: "Sequence[str]", rows: "Sequence[Sequence[str]]") -> None:
    """Print words as a table."""
    table = Table(*columns, title=title, title_justify="left", padding=(0, 0, 0, 1))
    for words in rows:
        table.add_row(*words)
    console.print(table)


def scores_table(title: str, scores: "dict[str, Score]") -> Table:
    """Utility and what the joint adversary reads, a row a run, beside guessing."""
    first = next(iter(scores.values()))
    table = Table("run", f"utility ({first.utility_metric})", f"adversary reads ({first.adversary_metric})", "guessing")
    table.title, table.title_justify = title, "left"
    for name, score in scores.items():
        table.add_row(name, f"{score.utility:.1%}", f"{score.adversary:.1%}", f"{score.adversary_chance:.1%}")
    return table


def caution(then: str) -> None:
    """What the table does not say."""
    console.print(
        f"The adversary was trained along with the encoder; a fresh attacker may read more than it does; {then}",
        style="dim",
        highlight=False,
        soft_wrap=True,
    )
