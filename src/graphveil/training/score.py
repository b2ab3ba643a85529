"""What is left of the utility on the test part, and what the readers that belong to a training read there."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphveil.models.codes import CodeBook
from graphveil.training.counts import code_shares, link_scores, pair_scores, rule_accuracy
from graphveil.training.history import numbered
from graphveil.training.targets import Links, NodeClasses, Target, answers, auc, guessing, judged, reading


@dataclass(frozen=True)
class Joint:
    """What the adversary that was trained along, or a rule counted on codes, reads of a secret; guessing has `chance`.

    `rounded` ranks pairs by float32 probabilities, as an AUC is usually computed, and not by logits. The two differ
    where the adversary is so sure of itself that its probabilities are all 0 or 1: ties are half right.
    """

    secret: str
    metric: str
    value: float
    rounded: float
    chance: float
    reader: str = "joint adversary"

    def __str__(self) -> str:
        return f"the {self.reader} reads {self.value:.2%} {self.metric} of {self.secret} (guessing: {self.chance:.2%})"


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


def score_codes(codes: Tensor, book: CodeBook, utility: Target, secrets: Mapping[str, Target]) -> Score:
    """Readings of released codes: the utility by products, or by the largest entries, of their rows.

    A secret is read by a rule that is counted on what the defender knows: no adversary was trained along.

    Args:
        codes: (n,).
    """
    z, test = book.rows[codes], utility.test
    if isinstance(utility, Links):
        one, other = test.index
        value = float(auc((z[one] * book.signs * z[other]).sum(dim=-1), test.y))
    else:
        value = float((z[test.index].argmax(dim=-1) == test.y).double().mean())
    counted = [_counted(name, secret, codes, len(book.rows)) for name, secret in secrets.items()]
    return Score(value, utility.metric, float(guessing(utility, test)), tuple(counted))


def _counted(name: str, secret: Target, codes: Tensor, num_codes: int) -> Joint:
    if isinstance(secret, NodeClasses):
        value = float(rule_accuracy(codes, secret, secret.test, num_codes))
    else:
        assert isinstance(secret, Links)
        one, other = codes[secret.links]
        table = torch.bincount(one * num_codes + other, minlength=num_codes**2).view(num_codes, num_codes).double()
        scores = link_scores((table + table.T) / table.sum() / 2, code_shares(codes, num_codes))
        value = float(auc(pair_scores(scores, codes, secret.test), secret.test.y))
    return Joint(name, secret.metric, value, value, float(guessing(secret, secret.test)), "counted rule")


def _joint(name: str, secret: Target, z: Tensor, adversary: nn.Module) -> Joint:
    told = answers(secret, adversary, z, secret.test)
    value = float(judged(secret, told, secret.test.y))
    rounded = float(auc(told[:, 1].exp(), secret.test.y)) if secret.metric == "auc" else value
    return Joint(name, secret.metric, value, rounded, float(guessing(secret, secret.test)))
