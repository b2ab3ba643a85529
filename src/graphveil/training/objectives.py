"""Readings of the paper's secret term (Eqs. 6 and 12), each one small function.

All take log q(class | z) of the adversary, (..., n, classes), the true classes (..., n), and the prior p(y),
(..., classes), and return what the *encoder minimises* for the secret's sake, weighted by 1 - lambda, one number a run.
The adversary itself always works on the cross-entropy: it descends it, except under `published`, where it ascends it as
the paper's appendix prints. `codes` asks no adversary at all: see `graphveil.training.codes`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

LEAST_PROBABILITY = 1e-7
"""The usual guard of a cross-entropy: a probability below counts as this, and has no gradient."""


def cross_entropy(log_q: Tensor, y: Tensor) -> Tensor:
    """-E log q(y | z), the loss of every head."""
    return -log_q.gather(-1, y[..., None]).squeeze(-1).mean(dim=-1)


def negative_cross_entropy(log_q: Tensor, y: Tensor, prior: Tensor) -> Tensor:  # noqa: ARG001 - one signature
    """E log q(y | z): the first term of vCLUB alone, which is what the paper's derivation keeps.

    Unbounded below: it rewards an adversary that is confidently wrong, which a fresh attacker simply inverts.
    """
    return -cross_entropy(log_q, y)


def saturating(log_q: Tensor) -> Tensor:
    """log q as probabilities with the usual guard have it.

    The paper prints no guard; but without one two players who ascend one loss carry z away, and nothing is kept.
    """
    return log_q.clamp(min=math.log(LEAST_PROBABILITY))


def vclub(log_q: Tensor, y: Tensor, prior: Tensor) -> Tensor:
    """I_vCLUB = E_{p(z,y)} log q(y | z) - E_{p(z)p(y)} log q(y | z) (Cheng et al., 2020), both terms.

    y is discrete, so the second expectation is exact: every class, weighted by its prior.
    """
    return -cross_entropy(log_q, y) - (log_q * prior[..., None, :]).sum(dim=-1).mean(dim=-1)


def prior_divergence(log_q: Tensor, y: Tensor, prior: Tensor) -> Tensor:  # noqa: ARG001 - one signature
    """KL(p(y) || q(y | z)): pulls the adversary's output to the prior. Bounded below by 0 and stable."""
    prior = prior[..., None, :]
    return (prior.xlogy(prior) - prior * log_q).sum(dim=-1).mean(dim=-1)


def saturated_cross_entropy(log_q: Tensor, y: Tensor, prior: Tensor) -> Tensor:
    """`negative_cross_entropy` of probabilities with the guard."""
    return negative_cross_entropy(saturating(log_q), y, prior)


@dataclass(frozen=True)
class Objective:
    """What the encoder minimises for the secret's sake, and what the adversary does.

    Args:
        adversary_ascends: its own loss, with saturating probabilities.
    """

    secret_term: Callable[[Tensor, Tensor, Tensor], Tensor]
    adversary_ascends: bool = False


CODES = "codes"
"""The objective that is none of these: exact information over discrete codes."""
ADVERSARIAL: Mapping[str, Objective] = {
    "club": Objective(vclub),
    "entropy": Objective(prior_divergence),
    "minimax": Objective(negative_cross_entropy),
    "published": Objective(saturated_cross_entropy, adversary_ascends=True),
}
OBJECTIVES = (CODES, *ADVERSARIAL)
"""All by name."""
