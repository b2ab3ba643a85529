"""A row of a table and the result of a cell that tests modify."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphveil.experiments.cells import Cell
from graphveil.experiments.tables import Row
from graphveil.formats import Interval
from graphveil.formats.experiment import CellRecord
from graphveil.formats.store import parse, write_sealed
from tests.formats import made

PLAIN = Row(
    variant="unprotected",
    dataset="cora",
    encoder="gcn",
    secret="labels",
    tradeoff=1.0,
    seeds=5,
    utility=Interval(0.92, (0.91, 0.93)),
    protocol=Interval(0.74, (0.73, 0.75)),
    fresh=Interval(0.85, (0.84, 0.86)),
    fresh_attack="MLP, all",
    finer=None,
    utility_chance=0.5,
    chance=0.3,
    floor=None,
    flagged=0.0,
    paper=(0.893, 0.72),
)


def write_result(cell: Cell, folder: Path, found: dict[str, Any]) -> None:
    """Write the result of a cell, with these values in place of made-up ones."""
    record = made.cell() | {"key": cell.key, "cell": asdict(cell)} | found
    write_sealed(cell.file(folder), parse(record, CellRecord))
