"""The context of an audit: what only the maker of the embeddings knows."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Utility:
    """How useful the embeddings are, as their maker measured it.

    Args:
        name: "links", "labels" or the name of a node attribute.
        value: the AUC or accuracy, from 0 to 1.
        chance: the chance level of the same metric.
        examples: the number of test examples.
        unprotected: the value of the same encoder trained without protection, if known.
    """

    name: str
    value: float
    chance: float
    examples: int
    unprotected: float | None = None

    @property
    def is_at_chance(self) -> bool:
        """Whether the value is not significantly above the chance level (p < 0.05)."""
        return self.value - self.chance <= 1.96 * math.sqrt(0.25 / max(self.examples, 1))


@dataclass(frozen=True)
class Context:
    """What only the maker of the embeddings knows.

    Args:
        joint: the accuracy or AUC of the joint adversary, if there is one.
        utility: how useful the embeddings are.
        notes: sentences for the readers of the audit.
        overlaps: how the test part may overlap with what the encoder was trained on; each sentence is a flag.
    """

    joint: float | None = None
    utility: Utility | None = None
    notes: tuple[str, ...] = ()
    overlaps: tuple[str, ...] = ()
