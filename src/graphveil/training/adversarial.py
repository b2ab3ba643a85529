"""The alternating training of the paper's Algorithms 1 and 2.

In every round one forward pass of the encoder serves all players:

    z = encoder(x, A)
    for each secret, repeat `steps`:  its adversary's step on z, which cannot move the encoder
    utility head's step on z, likewise
    encoder's step on  lambda * L_utility + (1 - lambda) * sum of secret terms,  which cannot move the heads

The terms of the secrets are summed and not averaged, so that a secret is hidden as much beside others as alone.

In several processes, each has a share of the examples of a mini-batch: losses are weighted by it, and gradients summed.

The utility head and the encoder step on gradients of the same loss at the same point, so lambda = 1 is, bit for bit,
the usual training loop.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from graphveil.randomness import generator
from graphveil.training.graphs import WholeGraph
from graphveil.training.history import numbered
from graphveil.training.loop import Evaluation, Problem, gain
from graphveil.training.objectives import Objective, clamp_log_probs, cross_entropy
from graphveil.training.players import Player, Streams
from graphveil.training.probe import MAX_EXAMPLES, Draws, probe
from graphveil.training.recipes import Recipe
from graphveil.training.sampled import Batches, draws_of
from graphveil.training.targets import Examples, LearnedTarget, Rows, evaluate

Encode = Callable[[], Tensor]


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a round works on.

    Args:
        encode: The encoder of the nodes of the examples.
        keep: Examples of the utility.
        hide: Examples of each secret.
        shares: How much of the examples of all processes these are, for the utility and each secret.
    """

    encode: Encode
    keep: Examples
    hide: Sequence[Examples]
    shares: Sequence[float]


class Secret:
    """A target to hide, its adversary, and their random numbers.

    Args:
        target: The target to hide.
        adversary: The player that predicts it.
        streams: The random numbers of the training.
        number: The number of the secret, 0, 1, ...
    """

    def __init__(self, target: LearnedTarget, adversary: Player, streams: Streams, number: int) -> None:
        self.target, self.adversary = target, adversary
        self.noise = streams(numbered("secret", number))
        name = numbered("probe", number)
        self.probe_draws = Draws(streams(f"{name}/examples"), streams(f"{name}/projections"))


class Adversarial:
    """An encoder, a head for the utility, and an adversary for each secret; a `Method` of the training loop.

    Args:
        problem: What is trained.
        modules: The modules "encoder", "utility" and "adversary", "adversary-2", ...
        objective: The secret's term.
        recipe: The hyperparameters.
        steps: Steps of an adversary for each step of the encoder.
        streams: The random numbers of the training.
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
        self._batches: Batches | None = None
        if not isinstance(problem.graph, WholeGraph):
            draw = draws_of((problem.utility, *problem.secrets), problem.graph, streams.seeds[0])
            self._batches = problem.graph.batches(self.encoder.module, draw, streams.seeds[0], recipe.rounds)
        self._all_batched = all(player.is_batched for player in self.players)

    @property
    def players(self) -> Sequence[Player]:
        """Encoder, utility head and an adversary for each secret."""
        return self.encoder, self.utility, *self.adversaries

    @property
    def parts(self) -> Mapping[str, nn.Module]:
        """The players' modules."""
        return {player.name: player.module for player in self.players}

    def embed(self) -> Tensor:
        """Return z of the present encoder, without gradients and without dropout."""
        return self.problem.graph.embed(self.encoder.module)

    def close(self) -> None:
        """End the thread that prepares mini-batches."""
        if self._batches is not None:
            self._batches.close()

    def round(self) -> Tensor:
        """Run `inner_steps` steps of every player on the same examples."""
        drawn = self._draw()
        for inner in range(self.inner_steps):
            if inner:
                self.streams.clock += 1
            row = self._step(drawn)
        return row

    def _draw(self) -> Drawn:
        """Draw the examples of a round."""
        graph = self.problem.graph
        if isinstance(graph, WholeGraph):
            keep = self.problem.utility.train(self._noise)
            hide = [secret.target.train(secret.noise) for secret in self.secrets]
            encode = partial(self.encoder.module, graph.x, graph.adjacency)
            return Drawn(encode, keep, hide, [1.0] * (1 + len(hide)))
        assert self._batches is not None
        batch = self._batches.at(int(self.streams.clock) // self.inner_steps)
        keep, *hide = batch.examples
        return Drawn(partial(batch.encode, self.encoder.module), keep, hide, batch.shares)

    def _step(self, drawn: Drawn) -> Tensor:
        """Run one step of every player; returns the losses and norms to log, (logged, runs)."""
        problem = self.problem
        self._reseed("encoder")
        z = drawn.encode()
        of_utility, *of_secrets = drawn.shares
        hide = list(zip(self.secrets, drawn.hide, of_secrets, strict=True))

        self._reseed("adversary")
        secret_losses, adversary_norms = [], []
        for secret, examples, share in hide:
            rows = Rows(z.detach(), examples)
            for _ in range(self.adversary_steps):
                loss, norm = self._adversary_step(secret, rows, share)
            secret_losses.append(loss)
            adversary_norms.append(norm)

        self._reseed("utility")
        utility_loss, utility_norm, gradient = self._utility_step(z.detach(), drawn.keep, of_utility)
        tradeoff = problem.tradeoff[..., None, None].to(gradient.dtype)
        gradient *= tradeoff
        if problem.hides:
            for secret, examples, share in hide:
                hidden = self._secret_gradient(secret, z.detach(), examples, share).mul_(1 - tradeoff)
                gradient += hidden if problem.hides_in_every_run else hidden.where(tradeoff < 1, 0.0)

        z.backward(gradient)
        encoder_norm = self.encoder.step()
        losses = torch.stack([loss.detach().view(-1) for loss in (utility_loss, *secret_losses)])
        norms = torch.stack([encoder_norm, utility_norm, *adversary_norms])
        return torch.cat([self.streams.processes.total(losses), norms])

    def _adversary_step(self, secret: Secret, rows: Rows, share: float = 1.0) -> tuple[Tensor, Tensor]:
        if self.objective.adversary_ascends:
            log_q = secret.target.log_probabilities(secret.adversary.module, rows)
            loss = _weighted(cross_entropy(clamp_log_probs(log_q), rows.examples.y), share)
            (-loss).sum().backward()
        else:
            loss = _weighted(secret.target.loss(secret.adversary.module, rows), share)
            loss.sum().backward()
        return loss, secret.adversary.step()

    def _utility_step(self, z: Tensor, examples: Examples, share: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
        """Step the head; returns the loss, the norm and the gradient of the loss at z, all from before the step."""
        loss = _weighted(self.problem.utility.loss(self.utility.module, Rows(z.requires_grad_(), examples)), share)
        loss.sum().backward()
        assert z.grad is not None
        return loss, self.utility.step(), z.grad

    def _secret_gradient(self, secret: Secret, z: Tensor, examples: Examples, share: float = 1.0) -> Tensor:
        """The gradient at z of the secret's term; the adversary does not change."""
        target = secret.target
        log_q = target.log_probabilities(secret.adversary.module, Rows(z.requires_grad_(), examples))
        term = self.objective.secret_term(log_q, examples.y, target.prior)
        (gradient,) = torch.autograd.grad(_weighted(term, share).sum(), z)
        return gradient

    def evaluate(self) -> Evaluation:
        """Evaluate the heads and the probes on the validation part."""
        z = self.embed()
        utility = evaluate(self.problem.utility, self.utility.module, z, self.problem.utility.val)
        adversaries, probes = [], []
        for secret in self.secrets:
            adversaries.append(evaluate(secret.target, secret.adversary.module, z, secret.target.val))
            probes.append(self._probe(secret, z) if self.problem.hides else torch.full_like(adversaries[-1], torch.nan))
        return Evaluation(utility, self._score(utility, adversaries, probes), adversaries, probes)

    def _probe(self, secret: Secret, z: Tensor) -> Tensor:
        target = secret.target
        value = probe(target, z, self._probe_examples(secret), target.val, secret.probe_draws)
        return value.where(self.problem.tradeoff < 1, torch.nan)

    def _probe_examples(self, secret: Secret) -> Examples:
        """The examples of a probe; of a large graph, no more than it uses."""
        target, streams = secret.target, self.streams
        if self._batches is None or target.num_examples <= MAX_EXAMPLES:
            return target.train(secret.noise)
        random = generator(streams.seeds[0], "probe", target.target.name, int(streams.clock))
        places = torch.randint(target.num_examples, (MAX_EXAMPLES,), generator=random)
        return target.batch(places, random).to(streams.clock.device)

    def _score(self, utility: Tensor, adversaries: Sequence[Tensor], probes: Sequence[Tensor]) -> Tensor:
        """lambda * gain of the utility - (1 - lambda) * gain of the strongest attack; gains are 0 at chance level.

        The gain of a link predictor has no sign, since one that is always wrong reveals as much as one that is always
        right; that of a classifier is at least 0. An adversary that ascends its own loss measures nothing, so then the
        utility alone selects.
        """
        kept, tradeoff = gain(self.problem.utility, utility), self.problem.tradeoff
        if not self.problem.hides or self.objective.adversary_ascends:
            return kept
        gains = []
        for secret, *values in zip(self.problem.secrets, adversaries, probes, strict=True):
            for value in values:
                above = gain(secret, value)
                gains.append(above.abs() if secret.target.is_links else above.clamp(min=0))
        return (tradeoff * kept - (1 - tradeoff) * torch.stack(gains).amax(dim=0)).where(tradeoff < 1, kept)

    def _reseed(self, role: str) -> None:
        if not self._all_batched:
            self.streams.reseed(role)


def _weighted(loss: Tensor, share: float) -> Tensor:
    """The part of a mean over the examples of all processes."""
    return loss if share == 1 else loss * share
