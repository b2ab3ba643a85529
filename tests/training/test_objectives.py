"""The objectives against answers worked out by hand; the kernel has tests of its own."""

import math

import pytest
import torch
from torch import Tensor

from graphveil.training.objectives import (
    ADVERSARIAL,
    cross_entropy,
    negative_cross_entropy,
    prior_divergence,
    saturated_cross_entropy,
    vclub,
)

JOINT = torch.tensor([[0.30, 0.10], [0.05, 0.25], [0.10, 0.20]], dtype=torch.float64)
"""p(z, y) of a z with three values and a y with two."""


def discrete_example() -> tuple[Tensor, Tensor, Tensor]:
    """All (z, y) as often as JOINT says, with the true posterior as q: log q(y | z), y, p(y)."""
    counts = (JOINT * 20).round().long()
    z, y = torch.tensor([(z, y) for z in range(3) for y in range(2) for _ in range(counts[z, y])]).t()
    posterior = JOINT / JOINT.sum(dim=1, keepdim=True)
    return posterior.log()[z], y, JOINT.sum(dim=0)


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_every_objective(name: str) -> None:
    """An adversary that answers with the prior has nothing to gain or lose, and runs of a batch are independent."""
    prior, y = torch.tensor([0.25, 0.75], dtype=torch.float64), torch.tensor([0, 1, 1, 1])
    term = ADVERSARIAL[name].secret_term
    logits = prior.log().requires_grad_()  # the same answer for every node
    (at_prior,) = torch.autograd.grad(term(logits.log_softmax(dim=-1).expand(4, 2), y, prior), logits)
    assert at_prior.abs().max() < 1e-15
    answers = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.3, 0.7]], dtype=torch.float64).log()
    (elsewhere,) = torch.autograd.grad(term(answers.requires_grad_(), y, prior), answers)
    assert (elsewhere.abs().sum(dim=1) > 0).all(), "every node counts"
    runs = torch.stack([answers.detach(), answers.detach().flip(0)])
    both = term(runs, y.expand(2, 4), prior.expand(2, 2))
    alone = [term(one, y, prior) for one in runs]
    assert both.tolist() == pytest.approx([one.item() for one in alone])


def test_vclub_with_both_terms_matches_the_closed_form() -> None:
    """With the true posterior, vCLUB = I(z; y) + KL(p(z)p(y) || p(z, y)), both in closed form from the table."""
    log_q, y, prior = discrete_example()
    independent = JOINT.sum(dim=1, keepdim=True) * JOINT.sum(dim=0, keepdim=True)
    information = (JOINT * (JOINT / independent).log()).sum()
    reverse = (independent * (independent / JOINT).log()).sum()
    value = vclub(log_q, y, prior)
    assert value.item() == pytest.approx((information + reverse).item(), abs=1e-12)
    assert value > information > 0, "an upper bound"


def test_vclub_is_zero_where_z_says_nothing_and_the_first_term_alone_is_not() -> None:
    prior = torch.tensor([0.25, 0.75], dtype=torch.float64)
    y = torch.tensor([0, 1, 1, 1])
    log_q = prior.log().expand(4, 2)
    assert vclub(log_q, y, prior).item() == pytest.approx(0, abs=1e-15)
    assert negative_cross_entropy(log_q, y, prior).item() == pytest.approx(
        0.25 * math.log(0.25) + 0.75 * math.log(0.75)
    )


def test_confidently_wrong_pays_under_minimax_and_costs_nothing_less_under_entropy() -> None:
    """q = (1 - e, e) where y = 1: minimax falls without bound as e does, the entropy term rises without bound."""
    prior, y = torch.tensor([0.5, 0.5]), torch.tensor([1])
    wrong = [torch.tensor([[1 - e, e]]).log() for e in (1e-2, 1e-4)]
    assert negative_cross_entropy(wrong[1], y, prior) < negative_cross_entropy(wrong[0], y, prior) < -4
    assert prior_divergence(wrong[1], y, prior) > prior_divergence(wrong[0], y, prior) > 1


def test_prior_divergence_is_kl() -> None:
    prior, q = torch.tensor([0.2, 0.8]), torch.tensor([0.6, 0.4])
    expected = 0.2 * math.log(0.2 / 0.6) + 0.8 * math.log(0.8 / 0.4)
    y = torch.tensor([0, 1])
    assert prior_divergence(q.log().expand(2, 2), y, prior).item() == pytest.approx(expected)
    assert prior_divergence(prior.log().expand(2, 2), y, prior).item() == pytest.approx(0, abs=1e-7)
    certain = torch.tensor([0.0, 1.0])
    assert torch.isfinite(prior_divergence(q.log().expand(2, 2), y, certain)), "a class nobody has costs 0 log 0 = 0"


def test_cross_entropy_is_the_mean_of_minus_log_q() -> None:
    log_q = torch.tensor([[0.5, 0.5], [0.1, 0.9]]).log()
    assert cross_entropy(log_q, torch.tensor([0, 1])).item() == pytest.approx(-(math.log(0.5) + math.log(0.9)) / 2)


def test_only_published_has_the_adversary_ascend() -> None:
    assert [name for name, objective in ADVERSARIAL.items() if objective.adversary_ascends] == ["published"]


def test_published_is_minimax_until_a_probability_is_below_the_guard() -> None:
    logits = torch.tensor([[1.0, -1.0], [9.0, -9.0]], dtype=torch.float64, requires_grad=True)
    y, prior = torch.tensor([1, 1]), torch.tensor([0.5, 0.5])
    log_q = logits.log_softmax(dim=-1)  # the second example has probability 1.5e-8, below 1e-7
    term = saturated_cross_entropy(log_q, y, prior)
    assert term.item() == pytest.approx((log_q[0, 1].item() + math.log(1e-7)) / 2)
    (gradient,) = torch.autograd.grad(term, logits)
    assert gradient[1].equal(torch.zeros(2, dtype=torch.float64)), "who is sure of the wrong answer is left in peace"
    (free,) = torch.autograd.grad(negative_cross_entropy(logits.log_softmax(dim=-1), y, prior), logits)
    assert gradient[0].equal(free[0])
    assert free[1].abs().min() > 0.4
