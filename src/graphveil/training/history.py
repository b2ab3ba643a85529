"""The history of a training: losses and validation values of its rounds, and which round was selected."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphveil.errors import DivergedError


@dataclass(frozen=True)
class SecretMetrics:
    """The values of one secret in one round.

    Args:
        loss: The loss of the adversary.
        adversary: The accuracy or AUC of the adversary.
        probe: The accuracy or AUC of a probe that is solved in this round; NaN if nothing is hidden.
    """

    loss: float
    adversary: float = math.nan
    probe: float = math.nan


@dataclass(frozen=True)
class Round:
    """One round of the history. Values are from the validation part, and NaN in rounds that were not evaluated.

    Args:
        round: Its number, from 1.
        utility_loss: The loss of the utility.
        secrets: The values of each secret.
        utility: The accuracy or AUC of the utility.
        score: What the best round is selected by.
    """

    round: int
    utility_loss: float
    secrets: tuple[SecretMetrics, ...]
    utility: float = math.nan
    score: float = math.nan

    def row(self) -> dict[str, float]:
        """Return the row of a table; the names of a second secret's values end in -2."""
        row = {"round": self.round, "utility_loss": self.utility_loss, "utility": self.utility, "score": self.score}
        for number, secret in enumerate(self.secrets):
            of_secret = {"secret_loss": secret.loss, "adversary": secret.adversary, "probe": secret.probe}
            row |= {numbered(name, number): value for name, value in of_secret.items()}
        return row

    @classmethod
    def of(cls, values: Sequence[float]) -> "Round":
        """Build from the values of a `row`."""
        number, utility_loss, utility, score, *rest = values
        secrets = tuple(SecretMetrics(*rest[first : first + 3]) for first in range(0, len(rest), 3))
        return cls(int(number), utility_loss, secrets, utility, score)


@dataclass
class Record:
    """The record of one run.

    Args:
        history: Its rounds.
        best_round: The selected round; 0 if there is none yet.
        best_score: The score of that round.
        finished: Whether the run has ended.
        diverged: The error, if it diverged.
    """

    history: list[Round] = field(default_factory=list)
    best_round: int = 0
    best_score: float = -math.inf
    finished: bool = False
    diverged: DivergedError | None = None


def numbered(name: str, number: int) -> str:
    """Return the name of something that each secret has: `name` for secret 0, `name-2` for secret 1, ..."""
    return name if number == 0 else f"{name}-{number + 1}"
