"""A target: links, labels or a node attribute, which is predicted from embeddings.

Arguments and files name a target by a string, and `Target.of` returns its properties. Whatever differs between
links and classes of the nodes, such as the metric, a default or a word of a message, is a field here.
`training.targets` adds the examples that an encoder learns from, and `auditing.secret` adds what an attacker knows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

LINKS, LABELS = "links", "labels"
BUILT_IN = (LINKS, LABELS)
"""The targets that every graph may have; any other name is that of a node attribute."""

Metric = Literal["accuracy", "auc"]
METRIC_NAMES: Mapping[str, str] = {
    "accuracy": "accuracy",
    "auc": "AUC",
    "balanced_accuracy": "balanced accuracy",
    "class_matched_auc": "class-matched AUC",
}
"""The metrics as people read them."""
CHANCE_AUC = 0.5
"""The chance level of links. For classes it is the share of the largest class."""


@dataclass(frozen=True)
class Target:
    """A target, and what depends on whether it is links or a class of the nodes.

    Args:
        name: "links", "labels" or the name of a node attribute.
        is_links: Whether it is links; otherwise it is a class of every node.
        metric: The metric of predictions and attacks.
        second: The kind of the second metric: class-matched or balanced.
        examples: What encoders are trained on.
        queries: Whether attacks predict for pairs of nodes or for nodes.
        recipe: The first key of `training.recipes.RECIPES` if it is the utility.
        adversary: The default head of its adversary.
        message_edges: The default links for message passing if it is the utility. For links, these are the training
            links, so that held-out links do not leak.
        papers_attacker: The attack that the paper trains on finished embeddings.
        code_attack: The attack on codes that belongs to their training.
    """

    name: str
    is_links: bool
    metric: Metric
    second: str
    examples: Literal["links", "nodes"]
    queries: Literal["pairs", "nodes"]
    recipe: Literal["links", "classes"]
    adversary: str
    message_edges: Literal["train", "all"]
    papers_attacker: str
    code_attack: str

    @classmethod
    def of(cls, name: str) -> "Target":
        """Return the target of this name."""
        return _LINKS if name == LINKS else replace(_LABELS, name=name)

    @property
    def metric_name(self) -> str:
        """The metric as people read it."""
        return METRIC_NAMES[self.metric]

    @property
    def key(self) -> str:
        """The key of PyG's `Data` under which a graph has the classes."""
        return "y" if self.name == LABELS else self.name

    @property
    def matched_by(self) -> str:
        """The node attribute of class-matched pairs if this is the utility."""
        return LABELS if self.is_links else self.name


_LINKS = Target(
    name=LINKS,
    is_links=True,
    metric="auc",
    second="class-matched",
    examples="links",
    queries="pairs",
    recipe="links",
    adversary="pair-mlp",
    message_edges="train",
    papers_attacker="bilinear",
    code_attack="link rate per pair of codes",
)
_LABELS = Target(
    name=LABELS,
    is_links=False,
    metric="accuracy",
    second="balanced",
    examples="nodes",
    queries="nodes",
    recipe="classes",
    adversary="mlp",
    message_edges="all",
    papers_attacker="logistic regression, few",
    code_attack="majority class per code",
)


def without_links(names: Iterable[str]) -> list[str]:
    """Return the names of the targets that are classes of the nodes."""
    return [name for name in names if name != LINKS]


def gain_over_chance(value: float, chance: float) -> float:
    """(value - chance) / (1 - chance): 0 at the chance level, 1 for perfect predictions, and 0 if chance is perfect.

    Args:
        value: an accuracy or AUC.
        chance: its chance level.
    """
    return (value - chance) / (1 - chance) if chance < 1 else 0.0
