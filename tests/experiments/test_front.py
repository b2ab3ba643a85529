"""The embeddings of the front of a sweep: which cells, what a table holds, and what is removed."""

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphveil.auditing.embeddings import read_embeddings
from graphveil.experiments.cell_embeddings import Trained, keep, read_kept
from graphveil.experiments.cells import Cell
from graphveil.experiments.front import write_front
from graphveil.experiments.tables import Row
from graphveil.formats import Interval
from graphveil.training.score import Score
from tests.experiments.made import PLAIN, TINY

NODES = 34
LEVELS = {0.0: (0.6, 0.3), 0.5: (0.8, 0.4), 0.7: (0.7, 0.5), 1.0: (0.9, 0.8)}
"""Utility and leak by trade-off: at 0.7 there is more leak at less utility than at 0.5."""


def cells_at(tradeoff: float) -> list[Cell]:
    return [replace(TINY, dataset="karate", tradeoff=tradeoff, seed=seed) for seed in (0, 1)]


def row_at(tradeoff: float, secret: str = "labels") -> Row:
    utility, leak = LEVELS[tradeoff]
    return replace(PLAIN, secret=secret, tradeoff=tradeoff, utility=Interval(utility), fresh=Interval(leak))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with the stored embeddings of all cells."""
    for tradeoff in LEVELS:
        for cell in cells_at(tradeoff):
            z = np.full((NODES, 3), tradeoff, dtype=np.float32) + np.arange(NODES, dtype=np.float32)[:, None]
            keep(Trained(cell, z, Score(0.8, "auc", 0.5, ()), {}), tmp_path / "cells")
    return tmp_path


def names(out: Path) -> list[str]:
    return sorted(file.stem.rpartition("-")[0] for file in (out / "front").iterdir())


def test_every_seed_of_the_front_has_a_table_with_ids(out: Path) -> None:
    write_front([row_at(tradeoff) for tradeoff in LEVELS], [cells_at(tradeoff) for tradeoff in LEVELS], out)
    expected = [f"karate-gcn-links-club-{level}-{seed}" for level in ("0", "0.5", "1") for seed in (0, 1)]
    assert names(out) == sorted(expected)
    cell = cells_at(0.5)[1]
    (file,) = (out / "front").glob("karate-gcn-links-club-0.5-1-*.parquet")
    assert file.stem == cell.embeddings_file(out).stem, "the same name as the stored embeddings"
    assert pq.read_schema(file).names == ["id", "z0", "z1", "z2"]
    assert pq.read_table(file)["id"].to_pylist() == list(range(NODES))
    kept = read_kept(cell, out / "cells")
    assert kept is not None
    assert read_embeddings(file, pa.array(range(NODES))).tobytes() == kept.z.tobytes()


def test_the_fronts_of_all_secrets_are_kept(out: Path) -> None:
    other = replace(row_at(0.7, "secret"), fresh=Interval(0.2))
    rows = [row_at(0.5), row_at(0.7), row_at(0.5, "secret"), other]
    write_front(rows, [cells_at(0.5), cells_at(0.7), cells_at(0.5), cells_at(0.7)], out)
    assert {name.split("-")[4] for name in names(out)} == {"0.5", "0.7"}, "for the secret, 0.7 leaks less"


def test_tables_of_an_earlier_front_are_removed_and_other_files_are_kept(out: Path) -> None:
    write_front([row_at(0.7)], [cells_at(0.7)], out)
    (out / "front" / "mine.parquet").write_text("mine")
    write_front([row_at(0.5), row_at(0.7)], [cells_at(0.5), cells_at(0.7)], out)
    tables = [name for name in names(out) if name]
    assert tables == ["karate-gcn-links-club-0.5-0", "karate-gcn-links-club-0.5-1"]
    write_front([], [], out)
    assert [file.name for file in (out / "front").iterdir()] == ["mine.parquet"]


def test_a_cell_whose_embeddings_are_missing_is_named(out: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.rmtree(out / "cells" / "embeddings")
    with caplog.at_level(logging.WARNING, "graphveil"):
        write_front([row_at(0.5)], [cells_at(0.5)], out)
    assert [record.message.partition(" was not written")[2] for record in caplog.records] == [
        ": the embeddings of the cell were removed or damaged"
    ] * 2
    assert not (out / "front").exists()
