"""What becomes of a training: its rounds, what each secret tells in them, and which one validation selected."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphveil.errors import DivergedError


@dataclass(frozen=True)
class SecretMetrics:
    """What is told about one secret: the adversary's loss, its reading, and that of a probe solved on the spot.

    The probe's is NaN where nothing is hidden.
    """

    loss: float
    adversary: float = math.nan
    probe: float = math.nan


@dataclass(frozen=True)
class Round:
    """One line of the history; readings are on the validation part and NaN in rounds that were not evaluated."""

    round: int
    utility_loss: float
    secrets: tuple[SecretMetrics, ...]
    utility: float = math.nan
    score: float = math.nan

    def row(self) -> dict[str, float]:
        """As a line of a table; what belongs to a second secret has a -2 at the end of its name."""
        found = {"round": self.round, "utility_loss": self.utility_loss, "utility": self.utility, "score": self.score}
        for number, told in enumerate(self.secrets):
            of_secret = {"secret_loss": told.loss, "adversary": told.adversary, "probe": told.probe}
            found |= {numbered(name, number): value for name, value in of_secret.items()}
        return found

    @classmethod
    def of(cls, values: Sequence[float]) -> "Round":
        """The inverse of `row`, from its values."""
        number, utility_loss, utility, score, *rest = values
        secrets = tuple(SecretMetrics(*rest[first : first + 3]) for first in range(0, len(rest), 3))
        return cls(int(number), utility_loss, secrets, utility, score)


@dataclass
class Record:
    """What has become of one run: its rounds, the one that validation selected, and whether it goes on."""

    history: list[Round] = field(default_factory=list)
    best_round: int = 0
    best_score: float = -math.inf
    finished: bool = False
    diverged: DivergedError | None = None


def numbered(name: str, number: int) -> str:
    """What belongs to secret 0, 1, ...: `name`, `name-2`, ..."""
    return name if number == 0 else f"{name}-{number + 1}"
