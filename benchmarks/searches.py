"""Whole searches of `tune` and what they end with: `python -m benchmarks.searches --graph cora --searches 10`.

For each seed, a search for the most useful embedding within a limit is compared with the three encoders at a trade-off
of 1/2 and the default limit in training. The certificate counts all nodes, so it decides whether a search has kept its
limit.
"""

import json
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Annotated

import numpy as np
import torch
import typer
from torch_geometric.data import Data

import graphveil as gv
from graphveil.experiments.candidates import ENCODERS, Search, Task, limits_of, opened
from graphveil.experiments.tune import find
from graphveil.runs.folder import RunFolder

GENERATED = "generated"
SECRETS = {GENERATED: "secret"}
"""The secret of a graph, if it is not its labels."""


@dataclass(frozen=True)
class Found:
    """How useful an embedding is, and the best possible attack on it.

    Args:
        utility: its link AUC on the test part.
        certificate: the accuracy of the best rule over all nodes.
    """

    utility: float
    certificate: float


@dataclass(frozen=True)
class Trial:
    """One search.

    Args:
        seed: its seed.
        limit: the limit as an accuracy.
        seconds: its time, without reading the graph.
        chosen: what it ended with.
        defaults: the encoders with default settings.
    """

    seed: int
    limit: float
    seconds: float
    chosen: Found
    defaults: tuple[Found, ...]

    @property
    def is_within(self) -> bool:
        """Whether the search has kept its limit."""
        return self.chosen.certificate <= self.limit

    @property
    def best_default(self) -> float | None:
        """The utility of the best default within the limit, if there is one."""
        return max((one.utility for one in self.defaults if one.certificate <= self.limit), default=None)


def try_search(graph: str, seed: int, max_leak: str) -> Trial:
    """Search once, in one thread."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        source, secret = graph, SECRETS.get(graph, "labels")
        if graph == GENERATED:
            source = str(_write_generated(Path(place), seed))
        reading = gv.ReadOptions(attributes=(secret,)) if graph == GENERATED else None
        search = Search(seed=seed, jobs=1, reading=reading)
        task = Task.of(source, "links", (secret,), max_leak, None, search)
        data, split = opened(task)
        limits, _ = limits_of(task, data)
        started = time.perf_counter()
        points = find(task, Path(place) / "out")
        seconds = time.perf_counter() - started
        chosen = RunFolder(Path(place) / "out" / "candidates" / str(points[0].candidate)).veil()
        defaults = [gv.Veil("links", secret, encoder, 0.5, seed=seed).fit(data, split) for encoder in ENCODERS]
        found = [_found(veil, data, split, secret) for veil in (chosen, *defaults)]
        return Trial(seed, limits[secret], seconds, found[0], tuple(found[1:]))


def _write_generated(place: Path, seed: int) -> Path:
    graph = gv.generate(gv.GraphSpec(), seed)
    file = place / "generated.npz"
    arrays = {"edge_index": graph.edge_index, "x": graph.x.to_dense(), "secret": graph.secret}
    np.savez(file, **{name: tensor.numpy() for name, tensor in arrays.items()})
    return file


def _found(veil: gv.Veil, graph: Data, split: gv.Split, secret: str) -> Found:
    z = veil.transform(graph, split)
    utility = veil.score(graph, split).utility
    return Found(utility, gv.certify(z, graph, split, secret).bound)


def main(
    graph: Annotated[str, typer.Option(help=f"A name that gv.load knows, or {GENERATED}.")] = "cora",
    searches: Annotated[int, typer.Option(help="How many, with seeds from --seed on.")] = 10,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 200,
    max_leak: Annotated[str, typer.Option(help="The limit, as in tune.")] = "+2",
    jobs: Annotated[int, typer.Option(help="How many searches to run at once.")] = 2,
) -> None:
    """Search with each seed, and print a line for each search and their means."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        trials = []
        for trial in pool.map(try_search, [graph] * searches, range(seed, seed + searches), [max_leak] * searches):
            sys.stdout.write(json.dumps(asdict(trial)) + "\n")
            sys.stdout.flush()
            trials.append(trial)
    best = [trial.best_default for trial in trials if trial.best_default is not None]
    sys.stdout.write(
        f"{graph}: {sum(trial.is_within for trial in trials)} of {len(trials)} within the limit,"
        f" utility {100 * mean(trial.chosen.utility for trial in trials):.1f},"
        f" best default {100 * mean(best) if best else float('nan'):.1f} (of {len(best)}),"
        f" {min(trial.seconds for trial in trials):.0f} to {max(trial.seconds for trial in trials):.0f} seconds\n"
    )


if __name__ == "__main__":
    typer.run(main)
