"""The alternating training of Algorithms 1 and 2, of one run or of a batch of runs.

In every round one forward pass of the encoder serves all players:

    z = encoder(x, A), with the noise it is released with
    for each secret, repeat `steps`:  its adversary's step on z, which cannot move the encoder
    utility head's step on z, likewise
    encoder's step on  lambda * L_utility + (1 - lambda) * sum of secret terms,  which cannot move the heads

Every secret's term counts in full: what is hidden beside it must not make it hidden less.

The utility head and the encoder step on gradients of the same loss at the same point, so lambda = 1 is, bit for bit,
the plain training loop that everybody writes.

In a batch, weights, embeddings and losses have a leading dimension of runs. No run's numbers enter another's: each has
its own seed, split, trade-off, clipping, selection and end.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphveil.errors import DivergedError
from graphveil.models.layers import Dropout, Features
from graphveil.models.sparse import Adjacency
from graphveil.models.stack import is_batched, load_parts
from graphveil.randomness import Noise, stream
from graphveil.training.history import Record, Round, Told, numbered
from graphveil.training.kernel import Draws, nats, probe
from graphveil.training.memory import kept_memory
from graphveil.training.objectives import Objective, cross_entropy, saturating
from graphveil.training.recipes import Recipe
from graphveil.training.replay import Replay
from graphveil.training.targets import Examples, Rows, Target, guessing, reading


class Player:
    """A module with its optimiser."""

    def __init__(self, name: str, module: nn.Module, runs: int, lr: float, clip: float, weight_decay: float = 0.0):
        self.name, self.module, self.runs, self.clip = name, module, runs, clip
        self.parameters = list(module.parameters())
        on_gpu = any(parameter.is_cuda for parameter in self.parameters)
        self.optimizer: torch.optim.Optimizer = torch.optim.Adam(
            self.parameters, lr=lr, weight_decay=weight_decay, fused=True, capturable=on_gpu
        )

    def step(self) -> Tensor:
        """Clip each run's gradient and step; the gradients are consumed and their norms before given back, (runs,)."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norms = [torch.linalg.vector_norm(gradient.reshape(self.runs, -1), dim=1) for gradient in gradients]
        norm: Tensor = torch.linalg.vector_norm(torch.stack(norms), dim=0)
        shrink = (self.clip / (norm + 1e-6)).clamp_(max=1)
        for gradient in gradients:
            gradient.mul_(shrink.view(-1, *[1] * (gradient.dim() - 1)) if self.runs > 1 else shrink.squeeze())
        self.optimizer.step()
        self.optimizer.zero_grad()
        return norm


class Secret:
    """Something to hide, who tries to read it, and their random numbers.

    Args:
        stream: makes the random numbers of a name.
        number: 0, 1, ... among the secrets.
    """

    def __init__(self, target: Target, adversary: Player, stream: Callable[[str], Noise], number: int) -> None:
        self.target, self.adversary = target, adversary
        self.noise = stream(numbered("secret", number))
        self.draws, self.probe_draws = (
            Draws(stream(f"{name}/examples"), stream(f"{name}/projections"))
            for name in (numbered("kernel", number), numbered("probe", number))
        )


@dataclass
class Problem:
    """What is trained on: a graph, what to keep, what to hide, and how much of each.

    Args:
        tradeoff: lambda in [0, 1], () or (runs,); 1 is the unprotected encoder.
    """

    x: Features
    adjacency: Adjacency
    utility: Target
    secrets: Sequence[Target]
    objective: Objective
    tradeoff: Tensor


class Training:
    """The players, and all that the runs need to stop and go on.

    `best` holds the state of the players in the round that validation selected; until there is one, the last state
    that was seen to be finite.
    """

    def __init__(
        self, problem: Problem, modules: dict[str, nn.Module], recipe: Recipe, steps: int, seeds: Sequence[int]
    ) -> None:
        self.problem, self.recipe, self.adversary_steps, self.seeds = problem, recipe, steps, list(seeds)
        runs = len(seeds)
        self.encoder = Player("encoder", modules["encoder"], runs, recipe.lr_encoder, recipe.clip, recipe.weight_decay)
        self.utility = Player("utility", modules["utility"], runs, recipe.lr_utility, recipe.clip)
        names = [numbered("adversary", number) for number in range(len(problem.secrets))]
        self.adversaries = [Player(name, modules[name], runs, recipe.lr_adversary, recipe.clip) for name in names]
        self.round = 0
        self.records = [Record() for _ in seeds]
        self.best = self._copy_of_state()

        self._device = problem.utility.prior.device
        self._all_ours = all(is_batched(player.module) for player in self.players)
        replayed = self._device.type == "cuda" and self._all_ours
        self._do_round = Replay(self._one_round, self._device) if replayed else self._one_round
        self._hides = bool((problem.tradeoff < 1).any())
        self._clock = torch.zeros(1, dtype=torch.long, device=self._device)
        logged = 1 + len(self.adversaries) + len(self.players)  # losses, and norms of gradients
        self._log = torch.full((recipe.rounds, logged, runs), torch.nan, device=self._device)
        self._noise, self._blur = self._stream("utility"), self._stream("blur")
        self.secrets = [
            Secret(target, adversary, self._stream, number)
            for number, (target, adversary) in enumerate(zip(problem.secrets, self.adversaries, strict=True))
        ]
        for player in self.players:
            for name, module in player.module.named_modules():
                if isinstance(module, Dropout):
                    module.noise = self._stream(f"{player.name}/{name}")

    @property
    def finished(self) -> bool:
        """All rounds are done, or no run has got better within the last `patience` rounds."""
        return self.round >= self.recipe.rounds or all(record.finished for record in self.records)

    def run(self, on_round: Callable[["Training"], None] | None = None) -> None:
        """Train until `finished`, from wherever this training stands, and call `on_round` after every round.

        A run that diverges is a `DivergedError`: raised if it is the only one, else in its record.
        """
        with nullcontext() if self._all_ours else torch.random.fork_rng(), kept_memory():
            while not self.finished:
                self.advance()
                if self.round % self.recipe.evaluate_every == 0 or self.round == self.recipe.rounds:
                    self._evaluate()
                if on_round is not None:
                    on_round(self)

    def advance(self) -> None:
        """One round, without a look at the validation part."""
        self._clock.fill_(self.round * self.recipe.inner_steps)
        self._do_round()
        self.round += 1

    def embed(self) -> Tensor:
        """z of the present encoder, without gradients and without dropout."""
        module = self.encoder.module
        module.eval()
        with torch.no_grad():
            z: Tensor = module(self.problem.x, self.problem.adjacency)
        module.train()
        return z

    def spread(self) -> list[list[float]]:
        """The deviation of each column of z of each run's best encoder, which becomes the present one."""
        self.load_state(self.best)
        z = self.embed()
        found: list[list[float]] = z.view(len(self.seeds), -1, z.size(-1)).std(dim=1).tolist()
        return found

    def _one_round(self) -> None:
        """All that happens between two looks at the clock; nothing is read back, so that a GPU can replay it."""
        keep = self.problem.utility.train(self._noise)
        hide = [secret.target.train(secret.noise) for secret in self.secrets]
        for inner in range(self.recipe.inner_steps):
            if inner:
                self._clock += 1
            row = self._step(keep, hide)
        self._log.index_copy_(0, self._clock // self.recipe.inner_steps, row[None])

    def _step(self, keep: Examples, hide: Sequence[Examples]) -> Tensor:
        """One step of every player; gives the losses and norms to log, (logged, runs)."""
        problem = self.problem
        self._reseed("encoder")
        z = self._blurred(self.encoder.module(problem.x, problem.adjacency))

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
        if self._hides:
            for secret, examples in zip(self.secrets, hide, strict=True):
                gradient += ((1 - share) * self._secret_gradient(secret, z.detach(), examples)).where(share < 1, 0.0)

        z.backward(gradient)
        encoder_norm = self.encoder.step()
        losses = (loss.detach().view(-1) for loss in (utility_loss, *secret_losses))
        return torch.stack([*losses, encoder_norm, utility_norm, *adversary_norms])

    def _blurred(self, z: Tensor) -> Tensor:
        """With noise like that which it is released with, in the runs that hide something."""
        if not self._hides or self.recipe.noise == 0:
            return z
        share = self.recipe.noise * (self.problem.tradeoff < 1)[..., None, None]
        deviation = z.detach().std(dim=-2, keepdim=True)
        return z + share * deviation * self._blur.normal(z.size(-2) * z.size(-1)).view(z.shape)

    def _adversary_step(self, secret: Secret, rows: Rows) -> tuple[Tensor, Tensor]:
        log_q = secret.target.log_probabilities(secret.adversary.module, rows)
        if self.problem.objective.adversary_ascends:
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
        target, secret_term = secret.target, self.problem.objective.secret_term
        rows = Rows(z.requires_grad_(), examples)
        if secret_term is None:
            term = nats(target, rows, secret.draws)
        else:
            log_q = target.log_probabilities(secret.adversary.module, rows)
            term = secret_term(log_q, examples.y, target.prior)
        (gradient,) = torch.autograd.grad(term.sum(), z)
        return gradient

    def _evaluate(self) -> None:
        """Read the validation part, and keep the players' state of every run whose score is its best so far."""
        z = self._blurred(self.embed())
        utility = reading(self.problem.utility, self.utility.module, z, self.problem.utility.val)
        adversaries, probes = [], []
        for secret in self.secrets:
            adversaries.append(reading(secret.target, secret.adversary.module, z, secret.target.val))
            probes.append(self._probe(secret, z) if self._hides else torch.full_like(adversaries[-1], torch.nan))
        readings = torch.stack([utility, self._score(utility, adversaries, probes), *adversaries, *probes])
        self.record_losses()
        of_runs = readings.view(len(readings), -1).T.tolist()
        selected = [self._judge(*one) for one in zip(self.records, of_runs, self._tradeoffs(), strict=True)]
        if any(selected):
            self._keep(selected)

    def _judge(self, record: Record, readings: list[float], tradeoff: float) -> bool:
        """Put the readings down, end the run if it is to end, and say whether its state is to be kept."""
        if record.finished:
            return False
        utility, score, *told = readings
        last, count = record.history[-1], len(self.secrets)
        of_secrets = zip(last.secrets, told[:count], told[count:], strict=True)
        secrets = tuple(Told(before.loss, adversary, probe) for before, adversary, probe in of_secrets)
        record.history[-1] = Round(last.round, last.utility_loss, secrets, utility, score)
        naive = tradeoff < 1 and self.round <= min(self.recipe.warmup, self.recipe.rounds - 1)
        better = score > record.best_score and not naive
        if better:
            record.best_round, record.best_score = self.round, score
        record.finished = record.best_round > 0 and self.round - record.best_round >= self.recipe.patience
        return better or (naive and math.isfinite(score))

    def record_losses(self) -> None:
        """Take over into the records what the rounds since the last time have logged."""
        known = max((len(record.history) for record in self.records if not record.finished), default=self.round)
        for number, row in enumerate(self._log[known : self.round].permute(0, 2, 1).tolist(), start=known + 1):
            for record, logged in zip(self.records, row, strict=True):
                self._take_over(record, number, logged)

    def _take_over(self, record: Record, number: int, logged: list[float]) -> None:
        if record.finished:
            return
        utility_loss, *rest = logged
        losses, norms = rest[: len(self.secrets)], rest[len(self.secrets) :]
        record.history.append(Round(number, utility_loss, tuple(Told(loss) for loss in losses)))
        for player, norm in zip(self.players, norms, strict=True):
            if not math.isfinite(norm):
                record.finished = True
                record.diverged = DivergedError(
                    f"training diverged in round {number}: the {player.name}'s gradient is not finite. The last"
                    " good state is kept; lower the learning rates or move the trade-off towards 1."
                )
                if len(self.records) == 1:
                    raise record.diverged
                return

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
        if not self._hides or self.problem.objective.adversary_ascends:
            return kept
        gains = []
        for target, *told in zip(self.problem.secrets, adversaries, probes, strict=True):
            gains += [
                gain(target, one).abs() if target.metric == "auc" else gain(target, one).clamp(min=0) for one in told
            ]
        return (tradeoff * kept - (1 - tradeoff) * torch.stack(gains).amax(dim=0)).where(tradeoff < 1, kept)

    @property
    def players(self) -> tuple[Player, ...]:
        """Encoder, utility head and an adversary for each secret."""
        return self.encoder, self.utility, *self.adversaries

    def state(self) -> dict[str, Tensor]:
        """The present weights of all players, as `player.weight`."""
        return {f"{p.name}.{k}": v.detach() for p in self.players for k, v in p.module.state_dict().items()}

    def _copy_of_state(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.state().items()}

    def _keep(self, selected: list[bool]) -> None:
        if all(selected):
            self.best = self._copy_of_state()
            return
        chosen = torch.tensor(selected, device=self._device)[:, None]
        for name, value in self.state().items():
            best = self.best[name].view(len(selected), -1)
            self.best[name] = value.view(len(selected), -1).where(chosen, best).view(value.shape)

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Put the players' weights back to a `state`."""
        load_parts({player.name: player.module for player in self.players}, state)

    def _stream(self, name: str) -> Noise:
        return Noise(self.seeds, name, self.recipe.rounds * self.recipe.inner_steps, self._clock)

    def _reseed(self, role: str) -> None:
        """A module that is not ours draws from torch's global generator: give it a stream of its own in every step."""
        if not self._all_ours:
            torch.manual_seed(stream(self.seeds[0], role, int(self._clock)))

    def _tradeoffs(self) -> list[float]:
        values: list[float] = self.problem.tradeoff.view(-1).tolist()
        return values


def gain(target: Target, value: Tensor) -> Tensor:
    """A validation reading's gain over guessing, 0 at guessing and 1 at best."""
    guess = guessing(target, target.val)
    return ((value - guess) / (1 - guess)).where(guess < 1, 0.0)
