"""The embeddings of the cells on the front of a sweep, as tables that `graphveil audit --embeddings` and others read.

`cell_embeddings` keeps those of all cells, for a newer audit, in a file that nothing else reads.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from graphveil.data.origin import node_ids
from graphveil.experiments.cell_embeddings import read_kept
from graphveil.experiments.cells import Cell
from graphveil.experiments.tables import Row
from graphveil.formats.experiment import front
from graphveil.runs.folder import write_embeddings

FOLDER = "front"
OURS = f"*-{12 * '[0-9a-f]'}.parquet"
"""The names of tables: that of the cell, and a hash of its configuration."""
log = logging.getLogger(__name__)


def write_front(rows: Sequence[Row], cells: Sequence[Sequence[Cell]], out: Path) -> None:
    """Write the embeddings of the cells on the front into a folder of `out`, and remove those of an earlier front.

    Args:
        rows: the rows of a sweep.
        cells: the cells of each row, one for each seed.
        out: the folder of the sweep, whose cells are in its subfolder `cells`.
    """
    written = set[Path]()
    for cell in dict.fromkeys(cell for number in _on_front(rows) for cell in cells[number]):
        file = out / FOLDER / f"{cell.embeddings_file(out).stem}.parquet"
        if (kept := read_kept(cell, out / "cells")) is None:
            log.warning("%s was not written: the embeddings of the cell were removed or damaged", file)
            continue
        write_embeddings(file, node_ids(cell.graph()), kept.z)
        written.add(file)
    for file in set((out / FOLDER).glob(OURS)) - written:
        file.unlink()


def _on_front(rows: Sequence[Row]) -> list[int]:
    """The numbers of the rows that no other row of the same graph and secret beats in both utility and leak."""
    alike: dict[tuple[str, str], list[int]] = {}
    for number, row in enumerate(rows):
        alike.setdefault((row.dataset, row.secret), []).append(number)
    found = []
    for numbers in alike.values():
        points = {number: (rows[number].fresh.value, rows[number].utility.value) for number in numbers}
        best = front(list(points.values()))
        found += [number for number, point in points.items() if point in best]
    return found
