"""Table 1: the sizes of the graphs in the paper and here."""

from importlib.resources import files
from pathlib import Path

import yaml

from graphveil.data import load
from graphveil.data.graph import undirected_pairs
from graphveil.errors import unknown
from graphveil.experiments.render import simple_tables
from graphveil.files import check_output_folder, write_text
from graphveil.formats.experiment import TableRecord
from graphveil.formats.store import write

TITLE = "Table 1: the graphs"

COLUMNS = ("graph", "nodes: paper", "here", "edges: paper", "distinct links here", "features", "here", "labels", "here")


def table1(out: Path, datasets: list[str] | None = None) -> list[list[str]]:
    """Write Table 1 as Markdown, CSV, LaTeX and JSON.

    Args:
        out: the folder to write to.
        datasets: names of graphs; None for all.

    Returns:
        The text of each row, one row for each graph.
    """
    printed = yaml.safe_load(files("graphveil.experiments").joinpath("table1.yaml").read_text(encoding="utf-8"))
    for name in datasets or ():
        if name not in printed:
            raise unknown("dataset", name, printed)
    check_output_folder(out, ("cells", "table1.json"))
    rows = []
    for name, paper in printed.items():
        if datasets is not None and name not in datasets:
            continue
        graph = load(name)
        here = {
            "nodes": graph.x.size(0),
            "edges": undirected_pairs(graph.edge_index).size(1),
            "features": graph.x.size(1),
            "labels": int(graph.y.max()) + 1,
        }
        rows.append([name, *(f"{count:,}" for key in here for count in (paper[key], here[key]))])
    for suffix, text in simple_tables(COLUMNS, rows, TITLE).items():
        write_text(out / f"table1.{suffix}", text)
    write(out / "table1.json", TableRecord(TITLE, COLUMNS, tuple(map(tuple, rows))))
    return rows
