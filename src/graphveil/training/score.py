"""Test values of the utility and of a training's own attacks: its joint adversaries, or the attacks on its codes."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphveil import notebook
from graphveil.models.codes import CodeBook
from graphveil.training.counts import code_shares, link_scores, pair_scores, rule_accuracy
from graphveil.training.history import numbered
from graphveil.training.targets import (
    LearnedTarget,
    Links,
    NodeClasses,
    auc,
    chance_level,
    evaluate,
    log_probs,
    metric_value,
)


@dataclass(frozen=True)
class Joint:
    """The test value of a training's own attack on a secret.

    Args:
        secret: The name of the secret.
        metric: "accuracy" or "auc".
        value: The accuracy or AUC.
        rounded: The AUC by float32 probabilities instead of logits, as is usual. It differs if the adversary is so
            confident that its probabilities round to 0 or 1, since ties count half.
        chance: The chance level.
        attack: "joint adversary"; for codes, "majority class per code" or, for links, "link rate per pair of codes".
    """

    secret: str
    metric: str
    value: float
    rounded: float
    chance: float
    attack: str = "joint adversary"

    def __str__(self) -> str:
        return f"{self.attack} on {self.secret} {self.value:.2%} {self.metric} (chance {self.chance:.2%})"


@dataclass(frozen=True)
class Score:
    """Test values of the utility and of the training's own attacks.

    A joint adversary was trained against this encoder, so a new attacker may be stronger: use `audit`.

    Args:
        utility: The accuracy or AUC of the utility.
        utility_metric: "accuracy" or "auc".
        utility_chance: The chance level of the utility.
        secrets: The attack on each secret.
    """

    utility: float
    utility_metric: str
    utility_chance: float
    secrets: tuple[Joint, ...]

    def __str__(self) -> str:
        return "; ".join([f"utility {self.utility:.2%} {self.utility_metric}", *map(str, self.secrets)])

    def __repr__(self) -> str:
        return f"Score({self})"

    def _repr_html_(self) -> str:
        utility = f"{self.utility:.2%} {self.utility_metric} (chance {self.utility_chance:.2%})"
        attacks = {
            f"attack on {one.secret}": f"{one.value:.2%} {one.metric} (chance {one.chance:.2%}), {one.attack}"
            for one in self.secrets
        }
        return notebook.table("Score on the test part", {"utility": utility} | attacks)


def score(
    z: Tensor, heads: Mapping[str, nn.Module], utility: LearnedTarget, secrets: Mapping[str, LearnedTarget]
) -> Score:
    """Evaluate the heads of one run on the test part.

    Args:
        z: (num_nodes, channels).
        heads: The heads "utility" and "adversary", "adversary-2", ...
        utility: The target to keep.
        secrets: The targets to hide by name, in the order of their adversaries.
    """
    joint = [
        _joint(name, secret, z, heads[numbered("adversary", number)])
        for number, (name, secret) in enumerate(secrets.items())
    ]
    return Score(
        utility=float(evaluate(utility, heads["utility"], z, utility.test)),
        utility_metric=utility.target.metric,
        utility_chance=float(chance_level(utility, utility.test)),
        secrets=tuple(joint),
    )


def score_codes(codes: Tensor, book: CodeBook, utility: LearnedTarget, secrets: Mapping[str, LearnedTarget]) -> Score:
    """Evaluate released codes on the test part.

    Links are predicted by signed products of rows, and classes by the largest entry of a row. A secret class is
    predicted by the majority class per code, and secret links by the link rate per pair of codes, counted on the nodes
    or links that the defender knows.

    Args:
        codes: (n,).
        book: The code book.
        utility: The target to keep.
        secrets: The targets to hide by name.
    """
    z, test = book.rows[codes], utility.test
    if isinstance(utility, Links):
        u, v = test.index
        value = float(auc((z[u] * book.signs * z[v]).sum(dim=-1), test.y))
    else:
        value = float((z[test.index].argmax(dim=-1) == test.y).double().mean())
    counted = [_counted(name, secret, codes, len(book.rows)) for name, secret in secrets.items()]
    return Score(value, utility.target.metric, float(chance_level(utility, test)), tuple(counted))


def _counted(name: str, secret: LearnedTarget, codes: Tensor, num_codes: int) -> Joint:
    if isinstance(secret, NodeClasses):
        value = float(rule_accuracy(codes, secret, secret.test, num_codes))
    else:
        assert isinstance(secret, Links)
        u, v = codes[secret.links]
        table = torch.bincount(u * num_codes + v, minlength=num_codes**2).view(num_codes, num_codes).double()
        scores = link_scores((table + table.T) / table.sum() / 2, code_shares(codes, num_codes))
        value = float(auc(pair_scores(scores, codes, secret.test), secret.test.y))
    chance = float(chance_level(secret, secret.test))
    return Joint(name, secret.target.metric, value, value, chance, secret.target.code_attack)


def _joint(name: str, secret: LearnedTarget, z: Tensor, adversary: nn.Module) -> Joint:
    log_q = log_probs(secret, adversary, z, secret.test)
    value = float(metric_value(secret, log_q, secret.test.y))
    rounded = float(auc(log_q[:, 1].exp(), secret.test.y)) if secret.target.is_links else value
    return Joint(name, secret.target.metric, value, rounded, float(chance_level(secret, secret.test)))
