"""Train cells and store their embeddings, so that a newer audit needs no second training."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from graphveil.auditing.embeddings import UNREADABLE, rows_digest
from graphveil.codes import distinct_codes
from graphveil.experiments.cells import Cell
from graphveil.experiments.peers import release
from graphveil.files import is_sealed, sealed, write_atomically
from graphveil.training.history import Round, numbered
from graphveil.training.score import Joint, Score
from graphveil.veil import fit_together

Curves = Mapping[str, list[float | None]]


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained cell before its audit.

    Args:
        cell: the configuration.
        z: embeddings of shape (num_nodes, channels).
        score: utility and training adversaries on the test part.
        curves: columns of the history, for the rounds that were evaluated.
    """

    cell: Cell
    z: NDArray[np.float32]
    score: Score
    curves: Curves


def train(cells: Sequence[Cell]) -> list[Trained]:
    """Train cells as one batch.

    Args:
        cells: cells that differ only in seed and trade-off, or in epsilon.
    """
    graph = cells[0].graph()
    if cells[0].epsilon is not None:
        return [_release(cell, cell.epsilon, graph) for cell in cells if cell.epsilon is not None]
    veils = [cell.veil() for cell in cells]
    splits = [cell.parts(graph) for cell in cells]
    if len(veils) == 1:
        veils[0].fit(graph, splits[0])
    else:
        fit_together(veils, graph, splits)
    return [
        Trained(cell, veil.transform(graph, split).numpy(), veil.score(graph, split), _curves(cell, veil.history_))
        for cell, veil, split in zip(cells, veils, splits, strict=True)
    ]


def _release(cell: Cell, epsilon: float, graph: Data) -> Trained:
    """The release of a peer, which replaces the training of a variant."""
    found = release(cell.objective, graph, cell.parts(graph), epsilon, cell.seed, cell.task)
    return Trained(cell, found.z.numpy(), found.score, _curves(cell, []))


def _curves(cell: Cell, history: Sequence[Round]) -> Curves:
    of_secrets = [numbered(name, number) for name in ("adversary", "probe") for number in range(len(cell.secrets))]
    return {name: _curve(history, name) for name in ("round", "utility", *of_secrets)}


def _curve(history: Sequence[Round], name: str) -> list[float | None]:
    """A column of the history for the rounds that were evaluated; all None if the column is missing."""
    values = [done.row().get(name, math.nan) for done in history if not math.isnan(done.utility)]
    return [None if math.isnan(value) else round(value, 4) for value in values]


def keep(trained: Trained, folder: Path) -> None:
    """Write embeddings, scores and curves into the folder of the results.

    Embeddings are stored as their distinct rows and the index of the row of each node.

    Args:
        trained: the cell to store.
        folder: the folder of the results.
    """
    codes, first = distinct_codes(trained.z)
    about = {"key": trained.cell.training_key, "score": asdict(trained.score), "curves": dict(trained.curves)}
    text = json.dumps(sealed(about | {"embeddings": rows_digest(trained.z)})).encode()
    numbers = codes.astype(np.min_scalar_type(len(first)))

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.savez_compressed(file, about=np.frombuffer(text, np.uint8), rows=trained.z[first], numbers=numbers)

    write_atomically(trained.cell.embeddings_file(folder), write)


def read_kept(cell: Cell, folder: Path) -> Trained | None:
    """Read a cell that `keep` has stored.

    Args:
        cell: the configuration.
        folder: the folder of the results.

    Returns:
        The trained cell, or None if its file is missing, incomplete, edited or of another cell.
    """
    try:
        with cell.embeddings_file(folder).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            about = json.loads(arrays["about"].tobytes())
            z = arrays["rows"][arrays["numbers"]]
        if not is_sealed(about) or about["key"] != cell.training_key or about["embeddings"] != rows_digest(z):
            return None
        secrets = tuple(Joint(**joint) for joint in about["score"].pop("secrets"))
        return Trained(cell, z, Score(**about["score"], secrets=secrets), about["curves"])
    except (*UNREADABLE, IndexError):
        return None
