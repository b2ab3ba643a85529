"""What is left of the utility on the test part, and what the adversaries that were trained along read there."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from graphveil.training.history import numbered
from graphveil.training.targets import Target, answers, auc, guessing, judged, reading


@dataclass(frozen=True)
class Joint:
    """What the adversary that was trained along reads of a secret, where guessing reads `chance`.

    `rounded` ranks pairs by float32 probabilities, as an AUC is usually computed, and not by logits. The two differ
    where the adversary is so sure of itself that its probabilities are all 0 or 1: ties are half right.
    """

    secret: str
    metric: str
    value: float
    rounded: float
    chance: float

    def __str__(self) -> str:
        return (
            f"the joint adversary reads {self.value:.2%} {self.metric} of {self.secret} (guessing: {self.chance:.2%})"
        )


@dataclass(frozen=True)
class Score:
    """Readings on the test part: how much of the utility is left, and what the jointly trained adversaries read.

    They were trained against this very encoder, so their readings are *not* what a fresh attacker would read.
    """

    utility: float
    utility_metric: str
    utility_chance: float
    secrets: tuple[Joint, ...]

    def __str__(self) -> str:
        return "; ".join([f"utility {self.utility:.2%} {self.utility_metric}", *map(str, self.secrets)])


def score(z: Tensor, heads: Mapping[str, nn.Module], utility: Target, secrets: Mapping[str, Target]) -> Score:
    """Readings of embeddings by the heads of one run.

    Args:
        secrets: by name, in the order of their adversaries.
    """
    joint = [
        _joint(name, secret, z, heads[numbered("adversary", number)])
        for number, (name, secret) in enumerate(secrets.items())
    ]
    return Score(
        utility=float(reading(utility, heads["utility"], z, utility.test)),
        utility_metric=utility.metric,
        utility_chance=float(guessing(utility, utility.test)),
        secrets=tuple(joint),
    )


def _joint(name: str, secret: Target, z: Tensor, adversary: nn.Module) -> Joint:
    told = answers(secret, adversary, z, secret.test)
    value = float(judged(secret, told, secret.test.y))
    rounded = float(auc(told[:, 1].exp(), secret.test.y)) if secret.metric == "auc" else value
    return Joint(name, secret.metric, value, rounded, float(guessing(secret, secret.test)))
