"""The alternating training of the paper's Algorithms 1 and 2.

In every round one forward pass of the encoder serves all players:

    z = encoder(x, A)
    for each secret, repeat `steps`:  its adversary's step on z, which cannot move the encoder
    utility head's step on z, likewise
    encoder's step on  lambda * L_utility + (1 - lambda) * sum of secret terms,  which cannot move the heads

Every secret's term counts in full: what is hidden beside it must not make it hidden less.

The utility head and the encoder step on gradients of the same loss at the same point, so lambda = 1 is, bit for bit,
the plain training loop that everybody writes.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from graphveil.training.history import numbered
from graphveil.training.loop import Problem, Readings, gain
from graphveil.training.objectives import Objective, cross_entropy, saturating
from graphveil.training.players import Player, Streams, embed
from graphveil.training.probe import Draws, probe
from graphveil.training.recipes import Recipe
from graphveil.training.targets import Examples, Rows, Target, reading


class Secret:
    """Something to hide, who tries to read it, and their random numbers.

    Args:
        number: 0, 1, ... among the secrets.
    """

    def __init__(self, target: Target, adversary: Player, streams: Streams, number: int) -> None:
        self.target, self.adversary = target, adversary
        self.noise = streams(numbered("secret", number))
        name = numbered("probe", number)
        self.probe_draws = Draws(streams(f"{name}/examples"), streams(f"{name}/projections"))


class Adversarial:
    """An encoder, a head for the utility, and an adversary for each secret.

    Args:
        steps: of an adversary for each step of the encoder.
    """

    def __init__(
        self,
        problem: Problem,
        modules: dict[str, nn.Module],
        objective: Objective,
        recipe: Recipe,
        steps: int,
        streams: Streams,
    ) -> None:
        self.problem, self.objective, self.recipe, self.adversary_steps = problem, objective, recipe, steps
        self.streams, self.inner_steps = streams, recipe.inner_steps
        lr, clip = recipe.lr_adversary, recipe.clip
        self.encoder = Player("encoder", modules["encoder"], streams, recipe.lr_encoder, clip, recipe.weight_decay)
        self.utility = Player("utility", modules["utility"], streams, recipe.lr_utility, clip)
        names = [numbered("adversary", number) for number in range(len(problem.secrets))]
        self.adversaries = [Player(name, modules[name], streams, lr, clip) for name in names]
        self.secrets = [
            Secret(target, adversary, streams, number)
            for number, (target, adversary) in enumerate(zip(problem.secrets, self.adversaries, strict=True))
        ]
        self._noise = streams("utility")
        self._all_ours = all(player.is_ours for player in self.players)

    @property
    def players(self) -> Sequence[Player]:
        """Encoder, utility head and an adversary for each secret."""
        return self.encoder, self.utility, *self.adversaries

    @property
    def parts(self) -> Mapping[str, nn.Module]:
        """The players' modules."""
        return {player.name: player.module for player in self.players}

    def embed(self) -> Tensor:
        """z of the present encoder, without gradients and without dropout."""
        return embed(self.encoder.module, self.problem.x, self.problem.adjacency)

    def round(self) -> Tensor:
        """`inner_steps` steps of every player on the same examples."""
        keep = self.problem.utility.train(self._noise)
        hide = [secret.target.train(secret.noise) for secret in self.secrets]
        for inner in range(self.inner_steps):
            if inner:
                self.streams.clock += 1
            row = self._step(keep, hide)
        return row

    def _step(self, keep: Examples, hide: Sequence[Examples]) -> Tensor:
        """One step of every player; gives the losses and norms to log, (logged, runs)."""
        problem = self.problem
        self._reseed("encoder")
        z = self.encoder.module(problem.x, problem.adjacency)

        self._reseed("adversary")
        secret_losses, adversary_norms = [], []
        for secret, examples in zip(self.secrets, hide, strict=True):
            rows = Rows(z.detach(), examples)
            for _ in range(self.adversary_steps):
                loss, norm = self._adversary_step(secret, rows)
            secret_losses.append(loss)
            adversary_norms.append(norm)

        self._reseed("utility")
        utility_loss, utility_norm, gradient = self._utility_step(z.detach(), keep)
        share = problem.tradeoff[..., None, None].to(gradient.dtype)
        gradient *= share
        if problem.hides:
            for secret, examples in zip(self.secrets, hide, strict=True):
                gradient += ((1 - share) * self._secret_gradient(secret, z.detach(), examples)).where(share < 1, 0.0)

        z.backward(gradient)
        encoder_norm = self.encoder.step()
        losses = (loss.detach().view(-1) for loss in (utility_loss, *secret_losses))
        return torch.stack([*losses, encoder_norm, utility_norm, *adversary_norms])

    def _adversary_step(self, secret: Secret, rows: Rows) -> tuple[Tensor, Tensor]:
        log_q = secret.target.log_probabilities(secret.adversary.module, rows)
        if self.objective.adversary_ascends:
            loss = cross_entropy(saturating(log_q), rows.examples.y)
            (-loss).sum().backward()
        else:
            loss = cross_entropy(log_q, rows.examples.y)
            loss.sum().backward()
        return loss, secret.adversary.step()

    def _utility_step(self, z: Tensor, examples: Examples) -> tuple[Tensor, Tensor, Tensor]:
        """Step the head, and give the loss, the norm and the loss's gradient at z, all from before the step."""
        log_q = self.problem.utility.log_probabilities(self.utility.module, Rows(z.requires_grad_(), examples))
        loss = cross_entropy(log_q, examples.y)
        loss.sum().backward()
        assert z.grad is not None
        return loss, self.utility.step(), z.grad

    def _secret_gradient(self, secret: Secret, z: Tensor, examples: Examples) -> Tensor:
        """The gradient at z of what the encoder minimises for a secret; its adversary stands still."""
        target = secret.target
        log_q = target.log_probabilities(secret.adversary.module, Rows(z.requires_grad_(), examples))
        term = self.objective.secret_term(log_q, examples.y, target.prior)
        (gradient,) = torch.autograd.grad(term.sum(), z)
        return gradient

    def read(self) -> Readings:
        """Readings of the heads, and of a reader that is solved on the spot."""
        z = self.embed()
        utility = reading(self.problem.utility, self.utility.module, z, self.problem.utility.val)
        adversaries, probes = [], []
        for secret in self.secrets:
            adversaries.append(reading(secret.target, secret.adversary.module, z, secret.target.val))
            probes.append(self._probe(secret, z) if self.problem.hides else torch.full_like(adversaries[-1], torch.nan))
        return Readings(utility, self._score(utility, adversaries, probes), adversaries, probes)

    def _probe(self, secret: Secret, z: Tensor) -> Tensor:
        target = secret.target
        found = probe(target, z, target.train(secret.noise), target.val, secret.probe_draws)
        return found.where(self.problem.tradeoff < 1, torch.nan)

    def _score(self, utility: Tensor, adversaries: Sequence[Tensor], probes: Sequence[Tensor]) -> Tensor:
        """lambda * gain of the utility - (1 - lambda) * gain of the best reader, each 0 at guessing and 1 at best.

        A link predictor that is reliably wrong tells as much as one that is reliably right, so its gain has no sign; a
        classifier below the majority share tells nothing. What an adversary reads that makes itself wrong does not
        count for anything, and the utility selects alone.
        """
        kept, tradeoff = gain(self.problem.utility, utility), self.problem.tradeoff
        if not self.problem.hides or self.objective.adversary_ascends:
            return kept
        gains = []
        for target, *told in zip(self.problem.secrets, adversaries, probes, strict=True):
            gains += [
                gain(target, one).abs() if target.metric == "auc" else gain(target, one).clamp(min=0) for one in told
            ]
        return (tradeoff * kept - (1 - tradeoff) * torch.stack(gains).amax(dim=0)).where(tradeoff < 1, kept)

    def _reseed(self, role: str) -> None:
        if not self._all_ours:
            self.streams.reseed(role)
