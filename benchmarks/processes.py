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
from pathlib import Path
from typing import Annotated, Any

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
    settings = {
        "graph": graph,
        "encoder": encoder,
        "batch_size": batch_size,
        "fanout": fanout,
        "rounds": rounds,
        "cores": cores,
    }
    measured: dict[int, list[dict[str, float]]] = {1: [], processes: []}
    for _ in range(repeats):
        for size, found in measured.items():
            found.append(_slowest(settings, size))
    print("| processes | ms a round | processor ms a round | nodes of a batch |\n|---|---|---|---|")  # noqa: T201
    for size, found in measured.items():
        wall, cpu, nodes = (statistics.median(one[name] for one in found) for name in ("wall", "cpu", "nodes"))
        print(f"| {size} | {wall:.0f} | {cpu:.0f} | {nodes:,.0f} |")  # noqa: T201
    if processes == 1:
        return
    alone, together = (statistics.median(one["wall"] for one in found) for found in measured.values())
    print(f"{processes} processes are {alone / together:.2f} times as fast as one")  # noqa: T201


def _slowest(settings: dict[str, Any], size: int) -> dict[str, float]:
    """The largest values of all processes."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / secrets.token_hex(4))
        workers = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.processes",
                    "--worker",
                    json.dumps(settings),
                    str(rank),
                    str(size),
                    store,
                ],
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
            for rank in range(size)
        ]
        said = [worker.communicate()[0] for worker in workers]
    if any(worker.returncode for worker in workers):
        raise SystemExit("a process failed: see its error above")
    found = [json.loads(printed.splitlines()[-1]) for printed in said]
    return {name: max(one[name] for one in found) for name in found[0]}


def work(settings: dict[str, Any], rank: int, size: int, store: str) -> dict[str, float]:
    """Time the rounds of one process."""
    import graphveil as gv  # noqa: PLC0415 - after the core is chosen
    from graphveil.training.codes import Codes  # noqa: PLC0415
    from graphveil.veil import Fitting  # noqa: PLC0415

    cores = sorted(os.sched_getaffinity(0))
    first, count = rank * settings["cores"], settings["cores"]
    os.sched_setaffinity(0, {cores[place % len(cores)] for place in range(first, first + count)})
    torch.set_num_threads(count)
    if size > 1:
        distributed.init_process_group("gloo", store=distributed.FileStore(store, size), rank=rank, world_size=size)  # type: ignore[attr-defined]
    graph = _open(settings["graph"])
    veil = gv.Veil(encoder=settings["encoder"], device="cpu")
    rounds = settings["rounds"]
    recipe = veil.recipe.by_batches(settings["batch_size"])
    veil.recipe = recipe.but(fanout=settings["fanout"], rounds=WARMUP + rounds)
    training = Fitting([veil], graph, [gv.Split.proportional(graph, seed=100)]).training
    method = training.method
    assert isinstance(method, Codes)
    assert method._batches is not None
    for _ in range(WARMUP):
        training.advance()
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(rounds):
        training.advance()
    seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    nodes = [batch.blocks[0].normalized.pattern.shape[1] for batch in map(method._batches.at, range(3))]
    method.close()
    if size > 1:
        distributed.barrier()
        distributed.destroy_process_group()
    return {name: 1000 * value / rounds for name, value in seconds.items()} | {"nodes": statistics.mean(nodes)}


def _open(name: str) -> Data:
    import graphveil as gv  # noqa: PLC0415

    if name.isdigit():
        return gv.generate(gv.GraphSpec(num_nodes=int(name) // 10, num_edges=int(name), num_features=128))
    return gv.load(name) if name in ("cora", "citeseer", "pubmed") else gv.read_graph(name)


def _run(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--worker"]:
        settings, rank, size, store = arguments[1:]
        print(json.dumps(work(json.loads(settings), int(rank), int(size), store)))  # noqa: T201
    else:
        typer.run(main)


if __name__ == "__main__":
    _run(sys.argv[1:])
