"""The loop of every training, of one run or of a batch of runs.

    for round in rounds:
        the method's round: one forward pass of the encoder, a step of every player
        every few rounds: read the validation part, and keep the state of the best score

What a round does is the `Method`'s: `Adversarial` is the paper's Algorithms 1 and 2; `Codes` needs no adversary.

In a batch, weights, embeddings and losses have a leading dimension of runs. No run's numbers enter another's: each has
its own seed, split, trade-off, clipping, selection and end.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor, nn

from graphveil.errors import DivergedError
from graphveil.models.layers import Features
from graphveil.models.sparse import Adjacency
from graphveil.models.stack import load_parts
from graphveil.training.history import Record, Round, SecretMetrics
from graphveil.training.memory import kept_memory
from graphveil.training.players import Player, Streams
from graphveil.training.recipes import Recipe
from graphveil.training.replay import recorded
from graphveil.training.targets import Target, guessing


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
    tradeoff: Tensor

    @cached_property
    def hides(self) -> bool:
        """Whether some run hides something; kept, because a recorded round must not copy to the host."""
        return bool(self.secrets) and bool((self.tradeoff < 1).any())


@dataclass(frozen=True)
class Readings:
    """What the validation part says of the present state, each (runs,).

    Args:
        score: what the state is selected by.
        adversaries, probes: of each secret: what a reader trained along reads, and what one solved on the spot does.
    """

    utility: Tensor
    score: Tensor
    adversaries: Sequence[Tensor]
    probes: Sequence[Tensor]


class Method(Protocol):
    """How a problem is trained.

    Attributes:
        players: whose gradients must stay finite.
        parts: the modules whose weights are the state, by name.
        streams: the random numbers of its rounds.
        inner_steps: steps of the clock in a round.
    """

    problem: Problem
    streams: Streams
    inner_steps: int

    @property
    def players(self) -> Sequence[Player]:
        """In the order of their norms."""

    @property
    def parts(self) -> Mapping[str, nn.Module]:
        """By name."""

    def round(self) -> Tensor:
        """One round; gives the utility's loss, each secret's, and each player's gradient norm, (logged, runs).

        Nothing is read back from the device, so that a GPU can replay it.
        """

    def read(self) -> Readings:
        """Readings of the validation part."""

    def embed(self) -> Tensor:
        """The encoder's output for every node, without gradients and without dropout."""


class Training:
    """A method, and all that its runs need to stop and go on.

    `best` holds the state in the round that validation selected; until there is one, the last state that was seen to
    be finite.
    """

    def __init__(self, method: Method, recipe: Recipe) -> None:
        self.method, self.recipe = method, recipe
        self.round = 0
        self.records = [Record() for _ in method.streams.seeds]
        self.best = self._copy_of_state()

        device = method.streams.clock.device
        self._all_ours = all(player.is_ours for player in method.players)
        self._do_round = recorded(self._one_round, device) if self._all_ours else self._one_round
        logged = 1 + len(method.problem.secrets) + len(method.players)
        self._log = torch.full((recipe.rounds, logged, len(self.records)), torch.nan, device=device)

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
        self.method.streams.clock.fill_(self.round * self.method.inner_steps)
        self._do_round()
        self.round += 1

    def _one_round(self) -> None:
        row = self.method.round()
        self._log.index_copy_(0, self.method.streams.clock // self.method.inner_steps, row[None])

    def _evaluate(self) -> None:
        """Read the validation part, and keep the players' state of every run whose score is its best so far."""
        found = self.method.read()
        readings = torch.stack([found.utility, found.score, *found.adversaries, *found.probes])
        self.record_losses()
        of_runs = readings.view(len(readings), -1).T.tolist()
        tradeoffs: list[float] = self.method.problem.tradeoff.view(-1).tolist()
        selected = [self._judge(*one) for one in zip(self.records, of_runs, tradeoffs, strict=True)]
        if any(selected):
            self._keep(selected)

    def _judge(self, record: Record, readings: list[float], tradeoff: float) -> bool:
        """Put the readings down, end the run if it is to end, and say whether its state is to be kept."""
        if record.finished:
            return False
        utility, score, *told = readings
        last, count = record.history[-1], len(self.method.problem.secrets)
        of_secrets = zip(last.secrets, told[:count], told[count:], strict=True)
        secrets = tuple(SecretMetrics(before.loss, adversary, probe) for before, adversary, probe in of_secrets)
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
        count = len(self.method.problem.secrets)
        utility_loss, losses, norms = logged[0], logged[1 : 1 + count], logged[1 + count :]
        record.history.append(Round(number, utility_loss, tuple(SecretMetrics(loss) for loss in losses)))
        for player, norm in zip(self.method.players, norms, strict=True):
            if not math.isfinite(norm):
                record.finished = True
                record.diverged = DivergedError(
                    f"training diverged in round {number}: the {player.name}'s gradient is not finite. The last"
                    " good state is kept; lower the learning rates or move the trade-off towards 1."
                )
                if len(self.records) == 1:
                    raise record.diverged
                return

    def state(self) -> dict[str, Tensor]:
        """The present weights of all parts, as `part.weight`."""
        return {
            f"{name}.{k}": v.detach() for name, part in self.method.parts.items() for k, v in part.state_dict().items()
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Put the parts' weights back to a `state`."""
        load_parts(self.method.parts, state)

    def _copy_of_state(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.state().items()}

    def _keep(self, selected: list[bool]) -> None:
        if all(selected):
            self.best = self._copy_of_state()
            return
        state = self.state()
        chosen = torch.tensor(selected, device=next(iter(state.values())).device)[:, None]
        for name, value in state.items():
            best = self.best[name].view(len(selected), -1)
            self.best[name] = value.view(len(selected), -1).where(chosen, best).view(value.shape)


def gain(target: Target, value: Tensor) -> Tensor:
    """A validation reading's gain over guessing, 0 at guessing and 1 at best."""
    guess = guessing(target, target.val)
    return ((value - guess) / (1 - guess)).where(guess < 1, 0.0)
