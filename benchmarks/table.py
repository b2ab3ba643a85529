"""Render the rows of a benchmark as Markdown."""

from collections.abc import Iterable
from statistics import geometric_mean, median
from typing import Any

Row = dict[str, Any]
PAPERS_GRAPHS = ("cora", "citeseer", "pubmed")
ENCODERS = ("gcn", "gat", "hgcn")


def markdown(rows: list[Row]) -> str:
    """The page of the benchmark: an introduction, a summary and the tables for each device."""
    parts = ["# Benchmark\n", _INTRODUCTION]
    for device in ("cpu", "cuda"):
        own = sorted((row for row in rows if row["device"] == device), key=_order)
        if own:
            bandwidth = median(row["bandwidth"] for row in own if row["bandwidth"])
            commits = sorted({row["commit"] for row in own})
            measured = f"commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}"
            where = f"{own[0]['machine']}, torch {own[0]['torch']}, {measured}"
            parts += [f"## {device}: {where}, copy bandwidth {bandwidth / 1e9:,.0f} GB/s\n"]
            parts += [_summary(own), _rounds(own), _batches(own), _protects(own), _audits(own), _splits(own)]
            parts += [_mini_batches(own), _processes(own)]
    return "\n".join(part for part in parts if part)


_INTRODUCTION = """Written by `make bench`. Absolute times on a shared machine are not comparable. Compare the ratios:
both sides of a ratio were measured alternately in one process.

- **round**: one round of Algorithm 1 (links kept, labels hidden, lambda 0.5, objective `club`) with the paper's linear
  adversary and the default sizes of each encoder. *Our adversary* is an MLP with five steps in each round. *Whole
  `protect`* has the default objective, `codes`.
- **plain**: the same round with the layers of PyG, dense features and edge lists (`benchmarks/plain.py`).
- **audit**: the full panel of a run on Pubmed (two processes, seed 100), with the training of all control encoders.
- **mini-batches**: one round of `codes` with mini-batches, while a thread prepares the next one. **processes**: the
  same global mini-batches (4,096 links) in one process on one core, and in two processes on two cores.
- **bound**: the minimum number of bytes that a round must move, divided by the bandwidth of a copy that is measured in
  the same process. An array between two products with the whole graph is written and read once; all other operations
  count as fused (`benchmarks/bound.py`).
- Times are medians, with half of the interquartile range in percent. Memory is the peak of a separate process with
  Python and torch or, on a GPU, the peak that torch has allocated.
- [Where the time of a round goes](explanation/kernels.md) has the parts of a round on a CPU.
"""


def _milliseconds(row: Row, side: str) -> str:
    value = row["milliseconds"].get(side)
    if value is None:
        return row.get("fault", "") if side == "ours" else ""
    spread = row["spread"][side]
    shown = f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
    return f"{shown} ms" + (f" (±{50 * spread:.0f} %)" if spread is not None else "")


def _bound(row: Row) -> float:
    return 1000 * float(row["bytes"]) / float(row["bandwidth"])


def _rounds(rows: Iterable[Row]) -> str:
    lines = [
        "| work | encoder | graph | ours | plain | plain / ours | bound | ours / bound | peak MiB: ours | plain |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if not row["work"].startswith("round") or row["runs"] > 1:
            continue
        times = row["milliseconds"]
        ratio = f"{times['plain'] / times['ours']:.1f}" if "plain" in times else ""
        bound, over = ("", "")
        if times and row["work"] == "round":
            bound, over = f"{_bound(row):.3g} ms", f"{times['ours'] / _bound(row):.1f}"
        peaks = [f"{row[name]:,.0f}" if row.get(name) else "" for name in ("peak", "peak_plain")]
        lines.append(
            f"| {row['work']} | {row['encoder']} | {_graph(row)} | {_milliseconds(row, 'ours')}"
            f" | {_milliseconds(row, 'plain')} | {ratio} | {bound} | {over} | {peaks[0]} | {peaks[1]} |"
        )
    return "\n".join(lines) + "\n"


def _batches(rows: list[Row]) -> str:
    lines = [
        "| ten seeds as one batch | graph | one seed | ten seeds | ten / one | peak MiB |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["runs"] == 1 or not row["milliseconds"]:
            continue
        one = next(r for r in rows if r["runs"] == 1 and all(r[k] == row[k] for k in ("work", "graph", "encoder")))
        ratio = row["milliseconds"]["ours"] / one["milliseconds"]["ours"]
        lines.append(
            f"| {row['work']}, {row['encoder']} | {_graph(row)} | {_milliseconds(one, 'ours')}"
            f" | {_milliseconds(row, 'ours')} | {ratio:.2f} | {row['peak']:,.0f} |"
        )
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def _protects(rows: Iterable[Row]) -> str:
    lines = ["| whole `protect` | encoder | seconds | rounds | peak MiB |", "|---|---|---|---|---|"]
    for row in rows:
        if row["work"] == "protect" and row["milliseconds"]:
            seconds = row["milliseconds"]["ours"] / 1000
            lines.append(
                f"| {row['graph']} | {row['encoder']} | {seconds:.1f} | {row['rounds']} | {row['peak']:,.0f} |"
            )
    return "\n".join(lines) + "\n"


def _audits(rows: Iterable[Row]) -> str:
    lines = ["| whole `audit` with controls | encoder | seconds |", "|---|---|---|"]
    for row in rows:
        if row["work"].startswith("audit, ") and row["milliseconds"]:
            seconds, what = row["milliseconds"]["ours"] / 1000, row["work"].removeprefix("audit, ")
            lines.append(f"| {row['graph']}, {what} | {row['encoder']} | {seconds:.1f} |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def _splits(rows: Iterable[Row]) -> str:
    lines = ["| split | ours | PyG's transforms | plain / ours | bound | peak MiB |", "|---|---|---|---|---|---|"]
    for row in rows:
        if row["work"] == "split" and row["milliseconds"]:
            times = row["milliseconds"]
            lines.append(
                f"| {_graph(row)} | {_milliseconds(row, 'ours')} | {_milliseconds(row, 'plain')}"
                f" | {times['plain'] / times['ours']:.2f} | {_bound(row):.3g} ms | {row['peak']:,.0f} |"
            )
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def _mini_batches(rows: Iterable[Row]) -> str:
    lines = [
        "| mini-batches | encoder | round | rounds of an epoch | minutes of an epoch | peak MiB |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["work"] == "mini-batches" and row["milliseconds"]:
            minutes = row["milliseconds"]["ours"] * row["rounds"] / 60_000
            lines.append(
                f"| {_graph(row)} | {row['encoder']} | {_milliseconds(row, 'ours')} | {row['rounds']:,}"
                f" | {minutes:.1f} | {row['peak']:,.0f} |"
            )
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def _processes(rows: Iterable[Row]) -> str:
    lines = ["| processes | encoder | one process | two processes | one / two |", "|---|---|---|---|---|"]
    for row in rows:
        if row["work"] == "processes" and row["milliseconds"]:
            one, two = row["milliseconds"]["plain"], row["milliseconds"]["ours"]
            lines.append(
                f"| {_graph(row)} | {row['encoder']} | {_milliseconds(row, 'plain')} | {_milliseconds(row, 'ours')}"
                f" | {one / two:.2f} |"
            )
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def _summary(rows: list[Row]) -> str:
    """The most important ratios, one sentence each."""
    sentences = []
    for encoder in ENCODERS:
        ratios = [
            row["milliseconds"]["plain"] / row["milliseconds"]["ours"]
            for row in rows
            if row["work"] == "round" and row["encoder"] == encoder and row["graph"] in PAPERS_GRAPHS
            if "plain" in row["milliseconds"]
        ]
        if len(ratios) == len(PAPERS_GRAPHS):
            sentences.append(
                f"- {encoder}: a round is {geometric_mean(ratios):.1f} times faster than plain on the paper's graphs"
            )
    sentences += [f"- {line}" for line in _growth(rows)]
    rounds = (r for r in rows if r["work"] == "round" and r["graph"].isdigit() and r["milliseconds"])
    largest = max(rounds, key=_edges, default=None)
    if largest is not None:
        seconds = largest["milliseconds"]["ours"] / 1000
        sentences.append(
            f"- {largest['encoder']} on {_edges(largest):,} edges: {_edges(largest) / seconds:,.0f} edges per second,"
            f" {100 * _bound(largest) / 1000 / seconds:.0f} % of the speed of the bound"
        )
    return "\n".join(sentences) + "\n"


def _growth(rows: list[Row]) -> list[str]:
    """The cost of ten times the edges, from 10^5 edges on."""
    lines = []
    for encoder in ENCODERS:
        own = {
            int(row["graph"]): row
            for row in rows
            if row["work"] == "round" and row["encoder"] == encoder and row["graph"].isdigit() and row["runs"] == 1
            if int(row["graph"]) >= 10**5 and row["milliseconds"]
        }
        steps = [(edges, 10 * edges) for edges in sorted(own) if 10 * edges in own]
        times = [own[b]["milliseconds"]["ours"] / own[a]["milliseconds"]["ours"] for a, b in steps]
        peaks = [own[b]["peak"] / own[a]["peak"] for a, b in steps]
        if steps:
            lines.append(
                f"{encoder}: with ten times the edges, time grows by a factor of"
                f" {', '.join(f'{t:.1f}' for t in times)} and memory by {', '.join(f'{p:.1f}' for p in peaks)}"
                f" (from 100,000 to {max(own):,} edges)"
            )
    return lines


def _order(row: Row) -> tuple[str, int, bool, int]:
    """Sort by work, encoder and graph: graphs of the paper first, then generated ones by size."""
    generated = row["graph"].isdigit()
    place = int(row["graph"]) if generated else PAPERS_GRAPHS.index(row["graph"])
    return row["work"], ("", *ENCODERS).index(row["encoder"]), generated, place


def _edges(row: Row) -> int:
    return int(row["graph"])


def _graph(row: Row) -> str:
    return f"{int(row['graph']):,} edges" if row["graph"].isdigit() else row["graph"]
