"""Time and memory of reading a graph from files: `python -m benchmarks.reading`.

A graph with skewed degrees, and one of a tenth of its size, are written as Parquet and as CSV, with integers and with
strings as ids. Each is read and validated in its own process. `--large 10000000` adds a graph of 100,000,000 links.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import typer
from numpy.typing import NDArray

LINKS_PER_NODE = 10
BLOCK = 2**20
KINDS = ("parquet", "csv")


def write_graph(folder: Path, nodes: int, strings: bool, kinds: Sequence[str], plain: bool) -> None:
    """Write the tables of a graph of nodes with a label, an attribute, three numbers and a category.

    Args:
        folder: the folder of a subfolder for each kind.
        nodes: the number of nodes.
        strings: whether ids are strings instead of integers.
        kinds: "parquet" or "csv".
        plain: whether nodes have a label and an attribute only.
    """
    random = np.random.default_rng(0)
    names = random.permutation(nodes) * 7 + 1_000_003
    ids: Any = pa.array(names)
    if strings:
        ids = pa.chunked_array([[f"user-{name:x}@example.org" for name in part] for part in blocks(names)])
        ids = pc.cast(ids, pa.large_string()).combine_chunks()
    columns = {
        "id": ids.cast(pa.string()) if strings else ids,
        "label": random.choice(["red", "green", "blue"], nodes),
        "gender": random.choice(["f", "m", ""], nodes),
    }
    if not plain:
        columns |= {
            "age": random.integers(18, 90, nodes),
            "income": random.lognormal(10, 1, nodes).round(2),
            "score": random.random(nodes).round(4),
            "country": random.choice([f"country {number}" for number in range(40)], nodes),
        }
    for kind in kinds:
        (folder / kind).mkdir(exist_ok=True)
        write(folder / kind / f"nodes.{kind}", iter([pa.table(columns)]))
        write(folder / kind / f"edges.{kind}", links(ids, nodes))


def links(ids: Any, nodes: int) -> Iterator[pa.Table]:
    """The table of links in blocks; nodes have skewed numbers of them."""
    random = np.random.default_rng(1)
    places = [random.permutation(nodes) for _ in range(2)]
    for start in range(0, LINKS_PER_NODE * nodes, BLOCK):
        count = min(BLOCK, LINKS_PER_NODE * nodes - start)
        ends = [
            place[(nodes * random.random(count) ** power).astype(np.int64)]
            for place, power in zip(places, (2, 1), strict=True)
        ]
        source, target = (ids.take(pa.array(end)) for end in ends)
        if pa.types.is_large_string(ids.type):
            source, target = source.cast(pa.string()), target.cast(pa.string())
        yield pa.table({"source": source, "target": target})


def blocks(names: NDArray[np.int64]) -> Iterator[list[int]]:
    """Parts of an array as lists."""
    for start in range(0, len(names), BLOCK):
        yield names[start : start + BLOCK].tolist()


def write(file: Path, tables: Iterator[pa.Table]) -> None:
    """Write tables one after the other as Parquet or as CSV, by the suffix of the file."""
    first = next(tables)
    if file.suffix == ".parquet":
        writer = pq.ParquetWriter(file, first.schema)
    else:
        writer = pa_csv.CSVWriter(file, first.schema, write_options=pa_csv.WriteOptions(quoting_style="needed"))
    with writer:
        for table in chain([first], tables):
            writer.write_table(table)


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


def main(
    nodes: Annotated[int, typer.Option(help="Nodes of the larger graph.")] = 1_000_000,
    large: Annotated[int, typer.Option(help="Nodes of a last graph, as Parquet and with few columns; 0 for none.")] = 0,
) -> None:
    """Print seconds and peak GiB for all graphs."""
    sys.stdout.write("ids      nodes       table    seconds  peak GiB  nodes, links, features\n")
    for strings in (False, True):
        for size, kinds, plain in ((nodes // 10, KINDS, False), (nodes, KINDS, False), (large, KINDS[:1], True)):
            if size:
                measure(size, strings, kinds, plain)


def measure(nodes: int, strings: bool, kinds: Sequence[str], plain: bool) -> None:
    """Write a graph, and print seconds and peak GiB of reading it; arguments as of `write_graph`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_graph(folder, nodes, strings, kinds, plain)
        for kind in kinds:
            command = [sys.executable, "-m", "benchmarks.reading", "--of", str(folder / kind)]
            found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
            sys.stdout.write(
                f"{'strings' if strings else 'integers':8} {nodes:<11,} {kind:8} {found['seconds']:7.1f}"
                f"  {found['peak']:8.2f}  {found['sizes']}\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"]:
        read(sys.argv[2])
    else:
        typer.run(main)
