"""One training and its audit, as one file: named after all that decides it, and checked when it is read again."""

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from graphveil.audit import Context, audit
from graphveil.audit.map import draw
from graphveil.audit.result import Audit
from graphveil.data import Split, digest, load
from graphveil.data.catalog import open_graph
from graphveil.data.origin import Reading
from graphveil.data.split import draw_split
from graphveil.errors import GraphveilError
from graphveil.experiments.spec import Source
from graphveil.files import read_json, write_json
from graphveil.review import utility_of
from graphveil.together import fit_together
from graphveil.training.history import Round
from graphveil.training.recipes import Adversary, default_recipe
from graphveil.veil import ALGORITHM, Score, Veil, versions

SCHEMA = "graphveil/cell/3"


@dataclass(frozen=True)
class Cell:
    """All that decides one result.

    Args:
        dataset: a graph by name, or what to call the one of `source`.
        device: a GPU adds in another order than a CPU, but all of them alike.
        length: times the recipe's rounds and patience.
        rounds: other than the recipe's, for a look at whether it runs.
    """

    dataset: str
    encoder: str
    utility: str
    secret: str
    objective: str
    tradeoff: float
    adversary: str | None
    steps: int
    knows: str
    split: str
    message_edges: str
    seed: int
    device: str = "cpu"
    length: int = 1
    rounds: int | None = None
    source: Source | None = None

    def graph(self) -> Data:
        """What is trained on; a graph of somebody's own that has changed since is refused."""
        return _open(self.dataset, self.source)

    def veil(self) -> Veil:
        """The estimator of this cell."""
        recipe = default_recipe(self.utility, self.encoder)
        recipe = recipe.but(rounds=self.length * recipe.rounds, patience=self.length * recipe.patience)
        if self.rounds is not None:
            recipe = recipe.but(rounds=self.rounds, warmup=0)
        adversary = Adversary(self.adversary, self.steps, self.knows)  # type: ignore[arg-type]
        return Veil(
            self.utility,
            self.secret,
            self.encoder,
            self.tradeoff,
            self.objective,
            adversary,
            recipe,
            self.seed,
            self.device,
        )

    def parts(self, graph: Data) -> Split:
        """The split of this cell."""
        return draw_split(self.split, graph, self.seed, self.message_edges, (self.utility, self.secret))

    @property
    def key(self) -> str:
        """A hash of the resolved configuration and of the versions it runs on."""
        cell = asdict(self) | {"device": self.device.partition(":")[0]}
        text = json.dumps([SCHEMA, ALGORITHM, cell, self.veil().config(), made_with()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def file(self, folder: Path) -> Path:
        """Where the result lies."""
        name = re.sub("[^A-Za-z0-9]+", "-", self.dataset)[:60]  # it may be a file's
        words = (name, self.encoder, self.utility, self.objective, f"{self.tradeoff:g}", self.seed)
        return folder / f"{'-'.join(map(str, words))}-{self.key[:12]}.json"


@lru_cache(maxsize=1)
def _open(name: str, source: Source | None) -> Data:
    if source is None:
        return load(name)
    graph = open_graph(source.path, Reading(**json.loads(source.reading)))
    if digest(graph) != source.digest:
        raise GraphveilError(f"{source.path} has changed since the sweep was begun: begin another, in another folder.")
    return graph


def made_with() -> dict[str, str]:
    """The versions that training and audit depend on."""
    return versions() | {name: version(name) for name in ("scikit-learn", "scipy")}


def read_result(cell: Cell, folder: Path) -> dict[str, Any] | None:
    """A cell's result, or None where there is none, or one that was torn, edited or is of another cell."""
    try:
        result: dict[str, Any] = read_json(cell.file(folder))
        return result if result["sha256"] == _digest(result) and result["key"] == cell.key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True, eq=False)
class Trained:
    """What has become of a cell before its audit."""

    cell: Cell
    z: np.ndarray
    score: Score
    history: list[Round]


def train(cells: Sequence[Cell]) -> list[Trained]:
    """Train cells that differ in seed and trade-off only; several at once are one batched problem."""
    graph = cells[0].graph()
    veils = [cell.veil() for cell in cells]
    splits = [cell.parts(graph) for cell in cells]
    if len(veils) == 1:
        veils[0].fit(graph, splits[0])
    else:
        fit_together(veils, graph, splits)
    return [
        Trained(cell, veil.transform(graph, split).numpy(), veil.score(graph, split), veil.history_)
        for cell, veil, split in zip(cells, veils, splits, strict=True)
    ]


def finish(trained: Trained, folder: Path) -> None:
    """Audit, and write the result."""
    cell, score = trained.cell, trained.score
    graph = cell.graph()
    split = cell.parts(graph)
    (joint,) = score.secrets
    context = Context(joint.value, utility_of(cell.utility, score.utility, graph, split))
    found = audit(trained.z, graph, split, cell.secret, "quick", cell.seed, context=context)
    picture = draw(found.secret, trained.z) if cell.seed == 0 else None
    result = summary(found) | {"joint_rounded": joint.rounded}
    write_result(cell, folder, result | {"history": curves(trained.history), "map": picture})


def curves(history: Sequence[Round]) -> dict[str, Sequence[float | None]]:
    """The validation readings of the rounds that were evaluated."""
    evaluated = [done for done in history if not math.isnan(done.utility)]

    def column(name: str) -> list[float | None]:
        values = [float(done.row()[name]) for done in evaluated]
        return [None if math.isnan(value) else round(value, 4) for value in values]

    readings = {name: column(name) for name in ("utility", "adversary", "probe")}
    return {"round": [done.round for done in evaluated], **readings}


def summary(found: Audit) -> dict[str, Any]:
    """What the tables need of an audit."""
    utility, matched, balanced = found.context.utility, found.class_matched, found.most_balanced
    assert utility is not None
    return {
        "utility": utility.value,
        "utility_chance": utility.chance,
        "joint": found.context.joint,
        "fresh": found.strongest.headline.value,
        "fresh_attack": found.strongest.attack,
        "attacks": {finding.attack: finding.headline.value for finding in found.findings},
        "chance": found.secret.chance,
        "floor": found.floor.value if found.floor else None,
        "class_matched": matched.matched.value if matched and matched.matched else None,
        "balanced": balanced.balanced.value if balanced else None,
        "flags": [flag.name for flag in found.flags if flag.name != "not the full panel"],
    }


def write_result(cell: Cell, folder: Path, found: dict[str, Any]) -> None:
    """With a digest of itself, so that an edited file is noticed."""
    result = {"schema": SCHEMA, "key": cell.key, "cell": asdict(cell), "versions": made_with(), **found}
    write_json(cell.file(folder), result | {"sha256": _digest(result)})


def _digest(result: dict[str, Any]) -> str:
    rest = {key: value for key, value in result.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
