"""An experiment's file: its configuration and the numbers that the paper printed. An unknown key is an error."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from importlib.resources import files
from typing import Any, TypeVar

import yaml

from graphveil.data import SPLITS
from graphveil.data.splits.split import default_message_edges
from graphveil.errors import GraphveilError, unknown
from graphveil.experiments.peers import PEERS
from graphveil.models import ENCODERS
from graphveil.training.objectives import OBJECTIVES

NAMES = ("table2", "table3", "figure2", "figure3")
PANELS = ("quick", "full")


@dataclass(frozen=True)
class Variant:
    """One way to train: an objective at some trade-offs, against an adversary for each encoder (None: the default).

    Args:
        length: times the recipe's rounds and patience.
        panel: the attacks of the audit, one of `PANELS`.
        settings: what differs from the default recipe, as `name=value`.
    """

    objective: str
    tradeoffs: Sequence[float]
    adversary: Mapping[str, str | None]
    steps: int
    knows: str
    length: int = 1
    panel: str = "quick"
    settings: Sequence[str] = ()


@dataclass(frozen=True)
class Source:
    """A graph of somebody's own: where it lies, how it is read (as JSON), and what was found there."""

    path: str
    reading: str
    digest: str


@dataclass(frozen=True)
class Experiment:
    """A table or a figure.

    Args:
        source: of the one data set, if it is somebody's own.
        published: [utility, the one secret] in percent, by "unprotected" or "protected", data set and encoder.
        required: the utility that protected embeddings must reach, in percent, by data set.
        peers: the values of epsilon of every method of others that is shown beside the variants.
    """

    title: str
    utility: str
    secrets: Sequence[str]
    datasets: Sequence[str]
    encoders: Sequence[str]
    split: str
    message_edges: str
    seeds: int
    variants: Mapping[str, Variant]
    published: Mapping[str, Mapping[str, Mapping[str, tuple[float, float]]]]
    source: Source | None = None
    required: Mapping[str, float] = field(default_factory=dict)
    peers: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def paper(self, variant: str, dataset: str, encoder: str) -> tuple[float, float] | None:
        """What the paper printed for a cell, as shares, or None where it printed nothing."""
        table = self.published.get("unprotected" if variant == "unprotected" else "protected", {})
        printed = table.get(dataset, {}).get(encoder)
        return None if printed is None else (printed[0] / 100, printed[1] / 100)


def sweep(
    dataset: str,
    utility: str,
    secrets: Sequence[str],
    encoder: str,
    objective: str,
    tradeoffs: str,
    split: str,
) -> Experiment:
    """One graph, one encoder, one objective, many trade-offs (numbers with commas), against the default adversary."""
    for kind, given, known in (
        ("encoder", encoder, ENCODERS),
        ("objective", objective, OBJECTIVES),
        ("split", split, SPLITS),
    ):
        if given not in known:
            raise unknown(kind, given, known)
    try:
        numbers = [float(text) for text in tradeoffs.split(",")]
    except ValueError as error:
        raise GraphveilError(f"trade-offs {tradeoffs!r} cannot be read: expected numbers with commas.") from error
    if any(not 0 <= value <= 1 for value in numbers):
        raise GraphveilError(f"trade-offs {tradeoffs!r}: expected numbers from 0 (hide all) to 1 (keep all).")
    return Experiment(
        title=f"{dataset}, {encoder}, {objective}: {utility} kept, {' and '.join(secrets)} hidden",
        utility=utility,
        secrets=secrets,
        datasets=[dataset],
        encoders=[encoder],
        split=split,
        message_edges=default_message_edges(utility),
        seeds=5,
        variants={objective: Variant(objective, numbers, {encoder: None}, steps=5, knows="all")},
        published={},
    )


def papers_attacker(secret: str) -> str:
    """The fresh attack that is the paper's own on finished representations."""
    return "bilinear" if secret == "links" else "logistic regression, few"


def load_experiment(name: str) -> Experiment:
    """One of the paper's, by name."""
    if name not in NAMES:
        raise unknown("experiment", name, NAMES)
    return parse(files("graphveil.experiments").joinpath(f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml")


def parse(text: str, name: str) -> Experiment:
    """Read an experiment's text."""
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise GraphveilError(f"{name} is not YAML ({str(error).splitlines()[0]}): mend it.") from error
    experiment = _fill(Experiment, raw, name)
    for peer in experiment.peers:
        if peer not in PEERS:
            raise unknown(f"peer of {name}", peer, PEERS)
    variants = {key: _fill(Variant, value, f"{name}, variant {key}") for key, value in experiment.variants.items()}
    for variant in variants.values():
        if variant.panel not in PANELS:
            raise unknown("panel", variant.panel, PANELS)
    return _fill(Experiment, dict(raw) | {"variants": variants}, name)


T = TypeVar("T")


def _fill(kind: type[T], raw: Any, where: str) -> T:
    if isinstance(raw, kind):
        return raw
    known = {
        f.name: f.default is MISSING and f.default_factory is MISSING
        for f in fields(kind)  # type: ignore[arg-type]
    }
    if not isinstance(raw, dict):
        raise GraphveilError(f"{where} holds {type(raw).__name__}: expected the keys {', '.join(known)}.")
    for key in raw:
        if key not in known:
            raise unknown(f"key of {where}", key, known)
    missing = [key for key, needed in known.items() if needed and key not in raw]
    if missing:
        raise GraphveilError(f"{where} has no {missing[0]}: add it.")
    return kind(**raw)
