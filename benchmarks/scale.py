"""Time and memory of the certificate and of the audit of many links: `python -m benchmarks.scale`.

Each measurement runs in its own process, and states the memory before it, with the graph in memory, and its peak.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch_geometric.data import Data

BLOCK = 2**22
CODES = 200
CLASSES = 7


def write_links(path: Path, links: int, nodes: int) -> None:
    """Write distinct links (2, links) in ascending order as 32-bit integers, in blocks; later nodes have more."""
    mapped = np.lib.format.open_memmap(path, "w+", np.int32, (2, links))
    random, total, start, last = np.random.default_rng(0), nodes * (nodes - 1) // 2, 0, 0
    while start < links:
        count = min(BLOCK, links - start)
        share = np.sqrt((start + np.sort(random.random(count)) * count) / links)
        numbers = np.maximum((share * (total - links)).astype(np.int64), last) + np.arange(count)
        numbers = np.maximum.accumulate(numbers - np.arange(count)) + np.arange(count)  # distinct
        last = int(numbers[-1]) + 1
        v = ((1 + np.sqrt(1 + 8.0 * numbers)) / 2).astype(np.int64)
        v -= v * (v - 1) // 2 > numbers
        v += v * (v + 1) // 2 <= numbers
        mapped[0, start : start + count], mapped[1, start : start + count] = numbers - v * (v - 1) // 2, v
        start += count
    mapped.flush()


def codes_and_classes(nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A code and a class for each node, (nodes,) each; both depend on its number of links."""
    random = np.random.default_rng(1)
    noise = random.normal(0, 0.1 * nodes, (2, nodes))
    rank = np.clip(np.arange(nodes) + noise, 0, nodes - 1) / nodes
    codes, y = (rank[0] * CODES).astype(np.int64), (rank[1] * CLASSES).astype(np.int64)
    return codes, y


def certificate_of_file(path: Path, nodes: int) -> Callable[[], dict[str, Any]]:
    """The certificate of links in a memory-mapped file, a tenth of which are calibration links."""
    from graphveil.codes import link_certificate  # noqa: PLC0415 - the import is not measured

    links = np.load(path, mmap_mode="r")
    codes, y = codes_and_classes(nodes)
    calibration = np.arange(0, links.shape[1], 10)

    def certify() -> dict[str, Any]:
        found = link_certificate(codes, links, y, calibration)
        return {"auc": found.auc, "class-matched": found.class_matched_auc, "links": found.links}

    return certify


def certificate_of_graph(path: Path, nodes: int) -> Callable[[], dict[str, Any]]:
    """The same with a graph and its split in memory."""
    import graphveil as gv  # noqa: PLC0415

    codes, _ = codes_and_classes(nodes)
    graph, split = graph_and_split(path, nodes)

    def certify() -> dict[str, Any]:
        found = gv.certify(codes[:, None], graph, split, "links").to_dict()
        return {name: found[name] for name in ("auc", "class_matched_auc", "links")}

    return certify


def full_audit(path: Path, nodes: int, secret: str) -> Callable[[], dict[str, Any]]:
    """The full panel on continuous embeddings that depend on the secret, without trained encoders as controls."""
    import graphveil as gv  # noqa: PLC0415

    graph, split = graph_and_split(path, nodes)
    z = torch.from_numpy(np.random.default_rng(3).normal(size=(nodes, 32)).astype(np.float32))
    z[:, 0] += 3 * torch.arange(nodes) / nodes

    def audit() -> dict[str, Any]:
        found = gv.audit(z, graph, split, secret)
        return {"headline": found.strongest.headline.value, "attacks": len(found.findings)}

    return audit


def graph_and_split(path: Path, nodes: int) -> tuple[Data, Any]:
    """The graph of the links in a file, and its split."""
    import graphveil as gv  # noqa: PLC0415

    links = np.load(path, mmap_mode="r")
    edge_index = np.empty((2, 2 * links.shape[1]), dtype=np.int64)
    edge_index[:, : links.shape[1]], edge_index[:, links.shape[1] :] = links, links[::-1]
    _, y = codes_and_classes(nodes)
    x = torch.from_numpy(np.random.default_rng(2).normal(size=(nodes, 16)).astype(np.float32))
    graph = Data(x=x, y=torch.from_numpy(y), edge_index=torch.from_numpy(edge_index))
    return graph, gv.Split.proportional(graph, seed=0)


MEASURED: dict[str, Callable[[Path, int], Callable[[], dict[str, Any]]]] = {
    "certificate, links in a file": certificate_of_file,
    "certificate, graph in memory": certificate_of_graph,
    "audit of links, full panel": partial(full_audit, secret="links"),
    "audit of labels, full panel": partial(full_audit, secret="labels"),
}


def measure(name: str, path: str, nodes: str) -> None:
    """Print seconds, peak memory and results, in the process that is measured."""
    work = MEASURED[name](Path(path), int(nodes))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far does not count
    before, start = memory(), time.perf_counter()
    result = work()
    seconds, after = time.perf_counter() - start, memory()
    sys.stdout.write(json.dumps({"seconds": seconds, "before": before, "after": after, "result": result}))


def memory() -> dict[str, float]:
    """Memory of this process in GiB: now, its peak, and the part of now that is a mapped file."""
    status = Path("/proc/self/status").read_text(encoding="ascii")  # getrusage includes the peak of the parent
    names = {"now": "VmRSS:", "peak": "VmHWM:", "files": "RssFile:"}
    return {name: int(status.partition(key)[2].split()[0]) / 2**20 for name, key in names.items()}


def main(
    links: Annotated[int, typer.Option(help="Number of links.")] = 10_000_000,
    nodes: Annotated[int, typer.Option(help="Number of nodes.")] = 1_000_000,
    only: Annotated[str, typer.Option(help="Measure only what has this in its name.")] = "",
) -> None:
    """Print seconds, and GiB with the graph in memory, at the peak, and of mapped files."""
    sys.stdout.write(f"{links:,} links, {nodes:,} nodes\n{'':30}  seconds  before    peak  mapped  result\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "links.npy"
        write_links(path, links, nodes)
        for name in MEASURED:
            if only in name:
                command = [sys.executable, "-m", "benchmarks.scale", "--of", name, str(path), str(nodes)]
                found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
                before, after = found["before"], found["after"]
                sys.stdout.write(
                    f"{name:30}  {found['seconds']:7.1f}  {before['now']:6.2f}  {after['peak']:6.2f}"
                    f"  {after['files']:6.2f}  {found['result']}\n"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"]:
        measure(*sys.argv[2:5])
    else:
        typer.run(main)
