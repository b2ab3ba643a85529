"""`gv.sweep` and `graphveil sweep`: train and audit at many trade-offs, on a graph that has a name or lies in files."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console

from graphveil.data import check_targets, digest
from graphveil.data.origin import ReadOptions
from graphveil.data.splits.split import draw_split
from graphveil.errors import GraphveilError
from graphveil.experiments import spec
from graphveil.experiments.cluster import check_address
from graphveil.experiments.reproduce import Selection, check_folder, run_experiments
from graphveil.experiments.tables import Row
from graphveil.formats.experiment import SWEEP
from graphveil.progress import show_cells
from graphveil.runs.opening import OpenedGraph, open_source
from graphveil.target import Target

TRADEOFFS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def sweep(  # noqa: PLR0913 - two are required, and each of the others is given by its name
    graph: str | Path,
    out: str | Path,
    utility: str = "links",
    secret: str | Sequence[str] = "labels",
    tradeoffs: Sequence[float] = TRADEOFFS,
    *,
    encoder: str = "gcn",
    objective: str = "codes",
    split: str | None = None,
    reading: ReadOptions | None = None,
    seeds: int = 5,
    jobs: int = 1,
    device: str = "cpu",
    rounds: int | None = None,
    ray: str | None = None,
    progress: bool = False,
) -> list[Row]:
    """Train and audit at many trade-offs, to choose one of them.

    The embeddings at the trade-offs on the Pareto front are kept as tables in `out / "front"`, one for each seed.

    Args:
        graph: the name of a graph, a file or a folder.
        out: the folder of cells and tables; a folder with a stopped sweep continues it.
        utility: the target to keep.
        secret: the target to hide, or several.
        tradeoffs: numbers from 0 (only hide) to 1 (only keep).
        encoder: "gcn", "gat", "sage" or "hgcn".
        objective: how secrets are hidden.
        split: "paper" or "proportional"; None for the default of the graph.
        reading: how to read a graph from files.
        seeds: the number of seeds: 0, 1, ...
        jobs: the number of processes.
        device: "cpu", "cuda" or "auto".
        rounds: the number of rounds for a test run; None for that of the recipe.
        ray: the address of a Ray cluster that runs the cells: "local", "auto" or HOST:PORT.
        progress: show progress on stderr.

    Returns:
        One row for each trade-off and secret, with means over seeds.

    Raises:
        GraphveilError: if a setting is invalid, or a cell failed; the cells that have finished are kept.
    """
    check_address(ray)
    secrets = [secret] if isinstance(secret, str) else list(secret)
    settings = Settings(utility, secrets, encoder, objective, as_text(tradeoffs), split)
    experiment = prepare(
        str(graph), Path(out), settings, lambda targets: open_source(str(graph), reading, targets=targets)
    )
    selection = Selection(seeds=seeds, rounds=rounds)
    with show_cells(Console(stderr=True, quiet=not progress), SWEEP, "cell", jobs) as on_done:
        rows, failed = run_experiments({SWEEP: experiment}, selection, Path(out), jobs, device, on_done, ray=ray)
    if failed:
        cell, fault = failed[0]
        raise GraphveilError(
            f"{len(failed)} cells failed, such as {cell}: {fault.rstrip('.')}. Call it again to retry them."
        )
    return rows[SWEEP]


@dataclass(frozen=True)
class Settings:
    """What a sweep trains on a graph.

    Args:
        utility: the target to keep.
        secrets: the targets to hide.
        encoder: the name of the encoder.
        objective: how secrets are hidden.
        tradeoffs: numbers from 0 to 1, separated by commas.
        split: "paper" or "proportional"; None for the default of the graph.
    """

    utility: str
    secrets: Sequence[str]
    encoder: str
    objective: str
    tradeoffs: str
    split: str | None

    def on(self, title: str, default_split: str) -> spec.Experiment:
        """The experiment on a graph with this title; refused if a setting is invalid."""
        split = self.split or default_split
        return spec.sweep(title, self.utility, self.secrets, self.encoder, self.objective, self.tradeoffs, split)


def as_text(tradeoffs: Sequence[float]) -> str:
    """Trade-offs as on the command line, separated by commas."""
    return ",".join(map(str, tradeoffs))


def prepare(
    graph: str, out: Path, settings: Settings, open_graph: Callable[[Sequence[str]], OpenedGraph]
) -> spec.Experiment:
    """Check the settings and the folder, and only then open the graph and make the experiment.

    Args:
        graph: the name of a graph, a file or a folder.
        out: the folder of cells and tables.
        settings: what to train.
        open_graph: opens the graph with these targets.
    """
    settings.on(graph, "paper")  # refuses invalid settings before the graph is read
    check_folder(out)
    opened = open_graph((settings.utility, *settings.secrets))
    return _with_source(settings.on(opened.title, opened.default_split), opened)


def _with_source(experiment: spec.Experiment, opened: OpenedGraph) -> spec.Experiment:
    """The experiment with the source of its graph; refused if the graph lacks a target or cannot be split."""
    if opened.reading is not None:
        source = spec.Source(opened.name, json.dumps(asdict(opened.reading)), digest(opened.graph))
        experiment = replace(experiment, source=source)
    utility, secrets = experiment.utility, experiment.secrets
    check_targets(opened.graph, utility, secrets)  # before any worker starts
    draw_split(experiment.split, opened.graph, 0, Target.of(utility).message_edges, (utility, *secrets))
    return experiment
