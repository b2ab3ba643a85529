"""Run all measurements, and write `benchmark.json` and `benchmark.md`: `python -m benchmarks --out docs`.

On a machine with CUDA, the rows of the GPU are added to those of the CPU.
"""

import json
import math
import platform
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.progress import track

from benchmarks.cell import HIDDEN, Cell, Measured, measure
from benchmarks.table import ENCODERS, PAPERS_GRAPHS, markdown
from graphveil.files import write_atomically, write_json
from graphveil.training.recipes import default_recipe

PLAIN_LIMIT = 8 << 30
"""The largest size of one layer's messages in bytes, forward and backward, for which the plain side is run."""


def cells(device: str, largest: int) -> list[Cell]:
    """The cells to measure on a device.

    Args:
        device: "cpu" or "cuda".
        largest: edges of the largest generated graph.
    """
    both, ours = ("ours", "plain"), ("ours",)
    generated = [str(10**power) for power in range(4, round(math.log10(largest)) + 1)]
    todo = [Cell("round", graph, encoder, both, device) for encoder in ENCODERS for graph in PAPERS_GRAPHS]
    todo += [Cell("round, our adversary", graph, "gcn", ours, device) for graph in PAPERS_GRAPHS]
    if device == "cpu":
        todo += [Cell("round", graph, encoder, both) for encoder in ENCODERS for graph in generated]
        todo += [Cell("protect", graph, encoder, ours) for encoder in ENCODERS for graph in PAPERS_GRAPHS]
        todo += [Cell(work, "pubmed", "gcn", ours) for work in HIDDEN]
        todo += [Cell("split", graph, "", both) for graph in (*PAPERS_GRAPHS, *generated)]
        todo += [Cell("mini-batches", generated[-1], "gcn", ours)]
        todo += [Cell("processes", graph, "gcn", both) for graph in ("pubmed", "1000000")]
    else:
        works = ("round", "round, our adversary")
        todo += [Cell(work, graph, "gcn", ours, device, runs=10) for work in works for graph in PAPERS_GRAPHS]
        todo += [Cell("protect", graph, "gcn", ours, device) for graph in PAPERS_GRAPHS]
        todo += [Cell("round", graph, "gcn", ours, device) for graph in [*generated, str(10 * largest)]]
    return [replace(cell, sides=ours) if _too_large(cell) else cell for cell in todo]


def _too_large(cell: Cell) -> bool:
    """Whether the plain side would need too much memory for messages: about six arrays of edges x channels."""
    if not cell.graph.isdigit() or not cell.work.startswith("round"):
        return False
    channels = default_recipe("links", cell.encoder, "club").hidden_channels
    size = 8 if cell.encoder == "hgcn" else 4
    return 6 * 2 * int(cell.graph) * channels * size > PLAIN_LIMIT


def run(cell: Cell) -> dict[str, Any]:
    """Measure one cell in a new process.

    If both sides are timed, the peak memory of each is measured in a further process. On a GPU, torch counts the peak
    and can reset it, so all cells share one process.
    """
    if cell.device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return asdict(cell) | asdict(measure(cell))
    measured = _in_process(cell)
    if "plain" in cell.sides and cell.work not in ("split", "processes") and "fault" not in measured:
        ours, plain = (_in_process(replace(cell, sides=(side,), seconds=0.5)) for side in cell.sides)
        measured |= {"peak": ours["peak"], "peak_plain": plain["peak"]}
    return asdict(cell) | measured


def _in_process(cell: Cell) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.cell", json.dumps(asdict(cell))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["killed, most likely because it ran out of memory"])[-1]
        return asdict(Measured()) | {"fault": last}
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main(
    out: Annotated[Path, typer.Option(help="The folder of benchmark.json and benchmark.md.")] = Path("docs"),
    largest: Annotated[int, typer.Option(help="Edges of the largest generated graph.")] = 10**7,
    device: Annotated[str, typer.Option(help="'cpu', 'cuda', or 'all' for every available device.")] = "all",
    only: Annotated[str, typer.Option(help="Measure only cells whose work and graph contain this.")] = "",
    seconds: Annotated[float, typer.Option(help="Time to spend on the repeats of a cell.")] = 10.0,
) -> None:
    """Measure the selected cells, keep the rows of other devices and other cells, and write both files."""
    devices = {"all": ["cpu"] + ["cuda"] * torch.cuda.is_available()}.get(device, [device])
    file = out / "benchmark.json"
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []
    todo = [cell for one in devices for cell in cells(one, largest) if only in f"{cell.work} {cell.graph}"]
    for cell in track(todo, "measuring"):
        rows = [row for row in rows if _key(row) != _key(asdict(cell))]
        where = {"machine": _machine(cell.device), "torch": torch.__version__, "commit": _commit()}
        rows.append(run(replace(cell, seconds=seconds)) | where)
        write_json(file, {"rows": rows})
    text = markdown(rows)
    write_atomically(out / "benchmark.md", lambda temporary: temporary.write_text(text, encoding="utf-8"))
    sys.stdout.write(text)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("work", "graph", "encoder", "device", "runs"))


def _commit() -> str:
    """The commit that is measured, so that rows of older commits can be recognised."""
    command = ["git", "rev-parse", "--short=7", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _machine(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"{platform.machine()}, {min(2, torch.get_num_threads())} threads"


if __name__ == "__main__":
    typer.run(main)
