"""Experiments: their configuration and the values that the paper prints, read from YAML files."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from importlib.resources import files
from typing import Any, TypeVar

import yaml

from graphveil.data import SPLITS
from graphveil.errors import GraphveilError, first_line, unknown
from graphveil.experiments.peers import PEERS
from graphveil.models import ENCODERS
from graphveil.target import Target
from graphveil.training.objectives import OBJECTIVES

NAMES = ("table2", "table3", "figure2", "figure3")
PANELS = ("quick", "full")


@dataclass(frozen=True)
class Variant:
    """A way to train: an objective at some trade-offs.

    Args:
        objective: the name of the objective.
        tradeoffs: the trade-offs to run.
        adversary: the head of the adversary for each encoder; None for the default.
        steps: steps of the adversary in each round.
        knows: the secrets that the defender knows, "few" or "all".
        length: a factor for the rounds and the patience of the recipe.
        panel: the attacks of the audit, one of `PANELS`.
        settings: changes to the default recipe, as `name=value`.
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
    """A graph that is read from files.

    Args:
        path: the path of the files.
        reading: the options for reading them, as JSON.
        digest: the digest of the graph.
    """

    path: str
    reading: str
    digest: str


@dataclass(frozen=True)
class Experiment:
    """A table or a figure.

    Args:
        title: its title.
        utility: the target that is kept.
        secrets: the targets that are hidden.
        datasets: names of graphs.
        encoders: names of encoders.
        split: the kind of split.
        message_edges: the links that messages pass along, "train" or "all".
        seeds: the number of seeds.
        variants: the variants by name.
        published: the values that the paper prints, [utility, attack] in percent, by "unprotected" or "protected", data
            set and encoder.
        source: the files of the graph, if it is not built in.
        required: the lowest utility to accept for protected embeddings, in percent, by data set.
        peers: the values of epsilon of each peer, by its name.
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
        """The utility and the attack value that the paper prints, as shares; None if it prints nothing.

        Args:
            variant: the name of a variant.
            dataset: the name of a graph.
            encoder: the name of an encoder.
        """
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
    """An experiment with one graph, one encoder and one objective at many trade-offs.

    Args:
        dataset: the name or title of the graph.
        utility: the target that is kept.
        secrets: the targets that are hidden.
        encoder: the name of the encoder.
        objective: the name of the objective; its adversary is the default.
        tradeoffs: numbers from 0 to 1, separated by commas.
        split: the kind of split.

    Raises:
        GraphveilError: if a name is unknown, or the trade-offs are invalid.
    """
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
        raise GraphveilError(
            f"trade-offs {tradeoffs!r} cannot be read: expected numbers separated by commas."
        ) from error
    if any(not 0 <= value <= 1 for value in numbers):
        raise GraphveilError(f"trade-offs {tradeoffs!r}: expected numbers from 0 (only hide) to 1 (only keep).")
    return Experiment(
        title=f"{dataset}, {encoder}, {objective}: {utility} kept, {' and '.join(secrets)} hidden",
        utility=utility,
        secrets=secrets,
        datasets=[dataset],
        encoders=[encoder],
        split=split,
        message_edges=Target.of(utility).message_edges,
        seeds=5,
        variants={objective: Variant(objective, numbers, {encoder: None}, steps=5, knows="all")},
        published={},
    )


def load_experiment(name: str) -> Experiment:
    """Read one of the paper's experiments by its name."""
    if name not in NAMES:
        raise unknown("experiment", name, NAMES)
    return parse(files("graphveil.experiments").joinpath(f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml")


def parse(text: str, name: str) -> Experiment:
    """Parse the YAML text of an experiment.

    Args:
        text: the text.
        name: the name of the file for error messages.

    Raises:
        GraphveilError: if the text is no YAML, or a key is unknown or missing.
    """
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise GraphveilError(f"{name} is not YAML ({first_line(error)}): correct it.") from error
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
