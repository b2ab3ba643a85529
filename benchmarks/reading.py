"""Time and memory of reading somebody's own graph: `python -m benchmarks.reading`.

A graph with skewed degrees is written as Parquet and as CSV, with whole numbers and with words for ids, and each is
read and checked in a process of its own: a tenth of it, and all of it.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import typer

LINKS_PER_NODE = 10


def write_graph(folder: Path, nodes: int, words: bool) -> None:
    """Tables of a graph: a label, an attribute, three numbers and a category a node; a weight a link."""
    random = np.random.default_rng(0)
    links = LINKS_PER_NODE * nodes
    ends = [random.permutation(nodes)[(nodes * random.random(links) ** power).astype(np.int64)] for power in (2, 1)]
    names = random.permutation(nodes) * 7 + 1_000_003
    ids: Any = pa.array(names)
    if words:
        ids = pa.array([f"user-{name:x}@example.org" for name in names.tolist()])
    edges = pa.table({"source": ids.take(pa.array(ends[0])), "target": ids.take(pa.array(ends[1]))})
    columns = {
        "id": ids,
        "label": random.choice(["red", "green", "blue"], nodes),
        "gender": random.choice(["f", "m", ""], nodes),
        "age": random.integers(18, 90, nodes),
        "income": random.lognormal(10, 1, nodes).round(2),
        "score": random.random(nodes).round(4),
        "country": random.choice([f"country {number}" for number in range(40)], nodes),
    }
    for name, table in (("edges", edges), ("nodes", pa.table(columns))):
        for kind in ("parquet", "csv"):
            (folder / kind).mkdir(exist_ok=True)
        pq.write_table(table, folder / "parquet" / f"{name}.parquet")
        pa_csv.write_csv(table, folder / "csv" / f"{name}.csv", pa_csv.WriteOptions(quoting_style="needed"))


def read(folder: str) -> None:
    """Read a graph and print what it took, in the process that is measured."""
    import graphveil as gv  # noqa: PLC0415 - its import is not what is measured
    from graphveil.data import check_graph  # noqa: PLC0415

    start = time.perf_counter()
    graph = gv.read_graph(folder, attributes=["gender"])
    check_graph(graph)
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text(encoding="ascii")  # getrusage knows the peak of the parent as well
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 2**20
    sizes = [graph.x.size(0), graph.edge_index.size(1) // 2, graph.x.size(1)]
    sys.stdout.write(json.dumps({"seconds": seconds, "peak": peak, "sizes": sizes}))


def main(nodes: Annotated[int, typer.Option(help="Of the larger graph.")] = 1_000_000) -> None:
    """Print seconds and GiB for a tenth and for all of it."""
    sys.stdout.write("ids      nodes      table    seconds  peak GiB  nodes, links, features\n")
    for words in (False, True):
        for size in (nodes // 10, nodes):
            with tempfile.TemporaryDirectory() as name:
                write_graph(Path(name), size, words)
                for kind in ("parquet", "csv"):
                    command = [sys.executable, "-m", "benchmarks.reading", "--of", str(Path(name) / kind)]
                    done = subprocess.run(command, capture_output=True, text=True, check=True)
                    found = json.loads(done.stdout)
                    sys.stdout.write(
                        f"{'words' if words else 'numbers':8} {size:<10,} {kind:8} {found['seconds']:7.1f}"
                        f"  {found['peak']:8.2f}  {found['sizes']}\n"
                    )
                    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"]:
        read(sys.argv[2])
    else:
        typer.run(main)
