"""A cell, its result and a row of a table, which tests modify, and training without a GPU."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphveil.experiments.cells import Cell
from graphveil.experiments.tables import Row
from graphveil.formats import Interval
from graphveil.formats.experiment import CellRecord
from graphveil.formats.store import parse, write_sealed
from graphveil.target import Target
from graphveil.veil import code_books, estimator, fitting
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


TINY = Cell(
    dataset="synthetic",
    encoder="gcn",
    utility="links",
    secrets=("labels",),
    objective="club",
    tradeoff=0.5,
    adversary="mlp",
    steps=2,
    knows="all",
    split="paper",
    message_edges="train",
    seed=0,
    rounds=1,
)


def made_up(secret: str, utility: float, joint: float, fresh: float) -> dict[str, object]:
    found = {
        "joint": joint + 0.1,
        "joint_rounded": joint,
        "fresh": fresh,
        "fresh_attack": "MLP, all",
        "floor": None,
        "history": {"adversary": [0.3], "probe": [None]},
        "map": None,
        "attacks": {Target.of(secret).papers_attacker: fresh - 0.01},
        "chance": 0.3,
        "class_matched": 0.9,
        "balanced": 0.2,
        "equal_classes": None,
        "certificate": None,
        "with_features": None,
        "flags": [],
    }
    kept = {"utility": utility, "utility_chance": 0.5, "history": {"round": [5], "utility": [0.7]}}
    return kept | {"secrets": {secret: found}}


def estimate(value: float, half: float = 0.005) -> Interval:
    return Interval(value, (value - half, value + half))


def a_row(variant: str, utility: Interval, protocol: Interval, paper: tuple[float, float] | None) -> Row:
    return replace(PLAIN, variant=variant, tradeoff=0.5, utility=utility, protocol=protocol, paper=paper)


def ignore_progress(cell: Cell, fault: str | None) -> None:
    """An `on_done` that does nothing."""


def train_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every device, so that the test runs without a GPU."""
    for module in (code_books, estimator, fitting):
        monkeypatch.setattr(module, "pick_device", lambda _: torch.device("cpu"))
