"""Time and memory of reading a graph from files: `python -m benchmarks.reading`.

A graph with skewed degrees, and one of a tenth of its size, are written as Parquet and as CSV, with integers and with
strings as ids. Each is read and validated in its own process.
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


def write_graph(folder: Path, nodes: int, strings: bool) -> None:
    """Write the tables of a graph: each node has a label, an attribute, three numbers and a category.

    Args:
        folder: the folder of the subfolders `parquet` and `csv`.
        nodes: the number of nodes.
        strings: whether ids are strings instead of integers.
    """
    random = np.random.default_rng(0)
    links = LINKS_PER_NODE * nodes
    ends = [random.permutation(nodes)[(nodes * random.random(links) ** power).astype(np.int64)] for power in (2, 1)]
    names = random.permutation(nodes) * 7 + 1_000_003
    ids: Any = pa.array(names)
    if strings:
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
    """Read a graph and print seconds, peak memory and sizes, in the process that is measured."""
    import graphveil as gv  # noqa: PLC0415 - the import is not measured
    from graphveil.data import check_graph  # noqa: PLC0415

    start = time.perf_counter()
    graph = gv.read_graph(folder, attributes=["gender"])
    check_graph(graph)
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text(encoding="ascii")  # getrusage includes the peak of the parent
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 2**20
    sizes = [graph.x.size(0), graph.edge_index.size(1) // 2, graph.x.size(1)]
    sys.stdout.write(json.dumps({"seconds": seconds, "peak": peak, "sizes": sizes}))


def main(nodes: Annotated[int, typer.Option(help="Nodes of the larger graph.")] = 1_000_000) -> None:
    """Print seconds and peak GiB for both graphs."""
    sys.stdout.write("ids      nodes      table    seconds  peak GiB  nodes, links, features\n")
    for strings in (False, True):
        for size in (nodes // 10, nodes):
            with tempfile.TemporaryDirectory() as name:
                write_graph(Path(name), size, strings)
                for kind in ("parquet", "csv"):
                    command = [sys.executable, "-m", "benchmarks.reading", "--of", str(Path(name) / kind)]
                    done = subprocess.run(command, capture_output=True, text=True, check=True)
                    found = json.loads(done.stdout)
                    sys.stdout.write(
                        f"{'strings' if strings else 'integers':8} {size:<10,} {kind:8} {found['seconds']:7.1f}"
                        f"  {found['peak']:8.2f}  {found['sizes']}\n"
                    )
                    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"]:
        read(sys.argv[2])
    else:
        typer.run(main)
