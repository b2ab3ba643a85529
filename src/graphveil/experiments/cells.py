"""One training and its audit, as one file: named after all that decides it, and checked when it is read again."""

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphveil.audit import Context, audit
from graphveil.audit.result import Audit
from graphveil.data import SPLITS, load
from graphveil.files import write_json
from graphveil.review import utility_of
from graphveil.training.recipes import Adversary, default_recipe
from graphveil.veil import Veil, versions

SCHEMA = "graphveil/cell/1"


@dataclass(frozen=True)
class Cell:
    """All that decides one result.

    Args:
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
    rounds: int | None = None

    def veil(self, device: str = "cpu") -> Veil:
        """The estimator of this cell."""
        recipe = default_recipe(self.utility, self.encoder)
        if self.rounds is not None:
            recipe = recipe.but(rounds=self.rounds, warmup=0)
        adversary = Adversary(self.adversary, self.steps, self.knows)  # type: ignore[arg-type]
        return Veil(
            self.utility, self.secret, self.encoder, self.tradeoff, self.objective, adversary, recipe, self.seed, device
        )

    @property
    def key(self) -> str:
        """A hash of the resolved configuration and of the versions it runs on."""
        text = json.dumps([SCHEMA, asdict(self), self.veil().config(), versions()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def file(self, folder: Path) -> Path:
        """Where the result lies."""
        words = (self.dataset, self.encoder, self.utility, self.objective, f"{self.tradeoff:g}", self.seed)
        return folder / f"{'-'.join(map(str, words))}-{self.key[:12]}.json"


def read_result(cell: Cell, folder: Path) -> dict[str, Any] | None:
    """A cell's result, or None where there is none, or one that was torn, edited or is of another cell."""
    try:
        result: dict[str, Any] = json.loads(cell.file(folder).read_text(encoding="utf-8"))
        return result if result["sha256"] == _digest(result) and result["key"] == cell.key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def run_cell(cell: Cell, folder: Path, device: str = "cpu") -> None:
    """Train, score, audit, and write the result."""
    started = time.perf_counter()
    graph = load(cell.dataset)
    split = SPLITS[cell.split](graph, cell.seed, message_edges=cell.message_edges)  # type: ignore[arg-type]
    veil = cell.veil(device).fit(graph, split)
    score = veil.score(graph, split)
    context = Context(score.adversary, utility_of(cell.utility, score.utility, graph, split))
    z = veil.transform(graph, split)
    found = audit(z, graph, split, cell.secret, "quick", cell.seed, context=context)
    write_result(
        cell, folder, summary(found) | {"rounds": len(veil.history_), "seconds": time.perf_counter() - started}
    )


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
    result = {"schema": SCHEMA, "key": cell.key, "cell": asdict(cell), "versions": versions(), **found}
    write_json(cell.file(folder), result | {"sha256": _digest(result)})


def _digest(result: dict[str, Any]) -> str:
    rest = {key: value for key, value in result.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
