"""Versions of the paper's secret term (Eqs. 6 and 12), one small function each.

All take log q(class | z) of the adversary, (..., n, classes), the true classes (..., n), and the prior p(y),
(..., classes), and return the term that the *encoder minimises*, weighted by 1 - lambda, one number per run, (...). The
loss of the adversary is always the cross-entropy: it descends it, except under `published`, where it ascends it as in
the paper's appendix. `codes` has no adversary: see `graphveil.training.codes`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

MIN_PROBABILITY = 1e-7
"""Lower probabilities are clamped to this value and have no gradient, as is usual for a cross-entropy."""


def cross_entropy(log_q: Tensor, y: Tensor) -> Tensor:
    """-E log q(y | z), the loss of every head."""
    return -log_q.gather(-1, y[..., None]).squeeze(-1).mean(dim=-1)


def negative_cross_entropy(log_q: Tensor, y: Tensor, prior: Tensor) -> Tensor:  # noqa: ARG001 - one signature
    """E log q(y | z): the first term of vCLUB alone, as in the paper's derivation.

    It is unbounded below and rewards an adversary that is confidently wrong, which a new attacker simply inverts.
    """
    return -cross_entropy(log_q, y)


def clamp_log_probs(log_q: Tensor) -> Tensor:
    """Clamp log q at log `MIN_PROBABILITY`.

    The paper does not mention this. But without it, z diverges if both players ascend the same loss, and the utility is
    lost.
    """
    return log_q.clamp(min=math.log(MIN_PROBABILITY))


def vclub(log_q: Tensor, y: Tensor, prior: Tensor) -> Tensor:
    """I_vCLUB = E_{p(z,y)} log q(y | z) - E_{p(z)p(y)} log q(y | z) (Cheng et al., 2020), both terms.

    y is discrete, so the second expectation is exact: every class, weighted by its prior.
    """
    return -cross_entropy(log_q, y) - (log_q * prior[..., None, :]).sum(dim=-1).mean(dim=-1)


def prior_divergence(log_q: Tensor, y: Tensor, prior: Tensor) -> Tensor:  # noqa: ARG001 - one signature
    """KL(p(y) || q(y | z)): pulls the output of the adversary to the prior. It is bounded below by 0 and stable."""
    prior = prior[..., None, :]
    return (prior.xlogy(prior) - prior * log_q).sum(dim=-1).mean(dim=-1)


def saturated_cross_entropy(log_q: Tensor, y: Tensor, prior: Tensor) -> Tensor:
    """`negative_cross_entropy` of clamped probabilities."""
    return negative_cross_entropy(clamp_log_probs(log_q), y, prior)


@dataclass(frozen=True)
class Objective:
    """The secret's term of the encoder, and the direction of the adversary.

    Args:
        secret_term: A function of (log_q, y, prior) that the encoder minimises.
        adversary_ascends: Whether the adversary ascends its loss, with clamped probabilities.
    """

    secret_term: Callable[[Tensor, Tensor, Tensor], Tensor]
    adversary_ascends: bool = False


CODES = "codes"
"""The objective without an adversary: exact information over discrete codes."""
ADVERSARIAL: Mapping[str, Objective] = {
    "club": Objective(vclub),
    "entropy": Objective(prior_divergence),
    "minimax": Objective(negative_cross_entropy),
    "published": Objective(saturated_cross_entropy, adversary_ascends=True),
}
OBJECTIVES = (CODES, *ADVERSARIAL)
"""The names of all objectives."""
