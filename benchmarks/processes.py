"""Rounds of one and of several processes, in turns: `python -m benchmarks.processes --graph pubmed --encoder gcn`.

Each process is bound to `--cores` cores, on which it trains and makes its batches. By default, one process on one core
is compared with two on two cores. All train the same global batches of `codes` that keep links and hide labels.
"""

import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import distributed
from torch_geometric.data import Data

WARMUP = 5


def main(
    graph: Annotated[
        str, typer.Option(help="pubmed, another name or file, or a number of generated links.")
    ] = "pubmed",
    encoder: str = "gcn",
    batch_size: int = 4096,
    fanout: int = 10,
    processes: int = 2,
    cores: int = 1,
    rounds: int = 40,
    repeats: int = 3,
) -> None:
    """Print a row for one process and one for several."""
    settings = Settings(graph, encoder, batch_size, fanout, cores, rounds)
    measured = take_turns(settings, sorted({1, processes}), repeats)
    print("| processes | ms a round | processor ms a round | nodes of a batch |\n|---|---|---|---|")  # noqa: T201
    for size, found in measured.items():
        print(f"| {size} | {found['wall']:.0f} | {found['cpu']:.0f} | {found['nodes']:,.0f} |")  # noqa: T201
    if processes > 1:
        ratio = measured[1]["wall"] / measured[processes]["wall"]
        print(f"{processes} processes are {ratio:.2f} times as fast as one")  # noqa: T201


@dataclass(frozen=True)
class Settings:
    """What all processes train.

    Args:
        graph: A name that `gv.load` knows, a file, or a number of generated links.
        encoder: The name of the encoder.
        batch_size: The links of a global batch.
        fanout: The neighbours that are sampled for each layer.
        cores: The cores of each process.
        rounds: The rounds that are timed.
    """

    graph: str
    encoder: str = "gcn"
    batch_size: int = 4096
    fanout: int = 10
    cores: int = 1
    rounds: int = 40


def take_turns(settings: Settings, sizes: Sequence[int], repeats: int) -> dict[int, dict[str, float]]:
    """Train with each number of processes in turns; return the medians of a round for each number.

    Returns:
        For each number of processes: "wall" and "cpu" in milliseconds, and the "nodes" of a batch.
    """
    measured: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
    for _ in range(repeats):
        for size, found in measured.items():
            found.append(_slowest(settings, size))
    return {
        size: {name: statistics.median(one[name] for one in found) for name in found[0]}
        for size, found in measured.items()
    }


def _slowest(settings: Settings, size: int) -> dict[str, float]:
    """The largest values of all processes."""
    command = [sys.executable, "-m", "benchmarks.processes", "--worker", json.dumps(asdict(settings))]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / secrets.token_hex(4))
        workers = [
            subprocess.Popen([*command, str(rank), str(size), store], stdout=subprocess.PIPE, text=True, env=one_thread)
            for rank in range(size)
        ]
        said = [worker.communicate()[0] for worker in workers]
    if any(worker.returncode for worker in workers):
        raise SystemExit("a process failed: see its error above")
    found = [json.loads(printed.splitlines()[-1]) for printed in said]
    return {name: max(one[name] for one in found) for name in found[0]}


def work(settings: Settings, rank: int, size: int, store: str) -> dict[str, float]:
    """Time the rounds of one process."""
    import graphveil as gv  # noqa: PLC0415 - after the core is chosen
    from graphveil.training.codes import Codes  # noqa: PLC0415
    from graphveil.veil import Fitting  # noqa: PLC0415

    cores = sorted(os.sched_getaffinity(0))
    first, count = rank * settings.cores, settings.cores
    os.sched_setaffinity(0, {cores[place % len(cores)] for place in range(first, first + count)})
    torch.set_num_threads(count)
    if size > 1:
        distributed.init_process_group("gloo", store=distributed.FileStore(store, size), rank=rank, world_size=size)  # type: ignore[attr-defined]
    graph = _open(settings.graph)
    veil = gv.Veil(encoder=settings.encoder, device="cpu")
    recipe = veil.recipe.by_batches(settings.batch_size)
    veil.recipe = recipe.but(fanout=settings.fanout, rounds=WARMUP + settings.rounds)
    training = Fitting([veil], graph, [gv.Split.proportional(graph, seed=100)]).training
    method = training.method
    assert isinstance(method, Codes)
    assert method._batches is not None
    for _ in range(WARMUP):
        training.advance()
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(settings.rounds):
        training.advance()
    seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    nodes = [batch.blocks[0].normalized.pattern.shape[1] for batch in map(method._batches.at, range(3))]
    method.close()
    if size > 1:
        distributed.barrier()
        distributed.destroy_process_group()
    return {name: 1000 * value / settings.rounds for name, value in seconds.items()} | {"nodes": statistics.mean(nodes)}


def _open(name: str) -> Data:
    import graphveil as gv  # noqa: PLC0415

    if name.isdigit():
        return gv.generate(gv.GraphSpec(num_nodes=int(name) // 10, num_edges=int(name), num_features=128))
    return gv.load(name) if name in ("cora", "citeseer", "pubmed") else gv.read_graph(name)


def _run(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--worker"]:
        settings, rank, size, store = arguments[1:]
        print(json.dumps(work(Settings(**json.loads(settings)), int(rank), int(size), store)))  # noqa: T201
    else:
        typer.run(main)


if __name__ == "__main__":
    _run(sys.argv[1:])
