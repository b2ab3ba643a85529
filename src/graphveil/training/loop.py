"""The training loop, for one run or a batch of runs.

    for round in rounds:
        the method's round: one forward pass of the encoder, a step of every player
        every few rounds: evaluate on the validation part, and save the state of the best score

A `Method` defines a round: `Adversarial` is the paper's Algorithms 1 and 2; `Codes` needs no adversary.

In a batch, weights, embeddings and losses have a leading dimension of runs. Runs do not affect each other: each has its
own seed, split, trade-off, clipping, selection and end.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor, nn

from graphveil.errors import DivergedError
from graphveil.models.stack import load_parts
from graphveil.training.graphs import WholeGraph
from graphveil.training.history import Record, Round, SecretMetrics
from graphveil.training.memory import keep_freed_memory
from graphveil.training.players import Player, Streams
from graphveil.training.recipes import Recipe
from graphveil.training.replay import recorded
from graphveil.training.sampled import SampledGraph
from graphveil.training.targets import LearnedTarget, chance_level


@dataclass
class Problem:
    """What is trained.

    Args:
        graph: The graph, as a whole or by mini-batches.
        utility: The target to keep.
        secrets: The targets to hide.
        tradeoff: lambda in [0, 1], () or (runs,); 1 is the unprotected encoder.
    """

    graph: WholeGraph | SampledGraph
    utility: LearnedTarget
    secrets: Sequence[LearnedTarget]
    tradeoff: Tensor

    @cached_property
    def hides(self) -> bool:
        """Whether any run hides something; cached, because a recorded round must not copy to the host."""
        return bool(self.secrets) and bool((self.tradeoff < 1).any())

    @cached_property
    def hides_in_every_run(self) -> bool:
        """Whether every run hides something; cached likewise."""
        return bool(self.secrets) and bool((self.tradeoff < 1).all())


@dataclass(frozen=True)
class Evaluation:
    """Validation values of the present state, (runs,) each.

    Args:
        utility: The accuracy or AUC of the utility.
        score: What the state is selected by.
        adversaries: The accuracy or AUC of the adversary of each secret.
        probes: The accuracy or AUC of a probe of each secret that is solved for this state.
    """

    utility: Tensor
    score: Tensor
    adversaries: Sequence[Tensor]
    probes: Sequence[Tensor]


class Method(Protocol):
    """How a problem is trained.

    Attributes:
        problem: What is trained.
        streams: The random numbers of its rounds.
        inner_steps: Steps of the clock in a round.
    """

    problem: Problem
    streams: Streams
    inner_steps: int

    @property
    def players(self) -> Sequence[Player]:
        """The players, whose gradients must stay finite, in the order of their norms."""

    @property
    def parts(self) -> Mapping[str, nn.Module]:
        """The modules whose weights are the state, by name."""

    def round(self) -> Tensor:
        """Run one round.

        Nothing is copied from the device, so that a GPU can replay it.

        Returns:
            The loss of the utility, of each secret, and the gradient norm of each player, (logged, runs).
        """

    def evaluate(self) -> Evaluation:
        """Evaluate the present state on the validation part."""

    def embed(self) -> Tensor:
        """Return the encoder's output for every node, without gradients and without dropout."""

    def close(self) -> None:
        """End the threads that prepare rounds, if there are any; a further round starts them again."""


class Training:
    """A training and its state, which a checkpoint saves and restores.

    `best` holds the state of the round that validation selected; until there is one, the last finite state that was
    evaluated.

    Args:
        method: What a round does.
        recipe: The hyperparameters.
    """

    def __init__(self, method: Method, recipe: Recipe) -> None:
        self.method, self.recipe = method, recipe
        self.round = 0
        self.records = [Record() for _ in method.streams.seeds]
        self.best = self._copy_of_state()

        device = method.streams.clock.device
        self._all_batched = all(player.is_batched for player in method.players)
        same_shapes = self._all_batched and isinstance(method.problem.graph, WholeGraph)
        self._do_round = recorded(self._one_round, device) if same_shapes else self._one_round
        logged = 1 + len(method.problem.secrets) + len(method.players)
        self._log = torch.full((recipe.rounds, logged, len(self.records)), torch.nan, device=device)

    @property
    def finished(self) -> bool:
        """Whether all rounds are done, or no run has improved within the last `patience` rounds."""
        return self.round >= self.recipe.rounds or all(record.finished for record in self.records)

    def run(self, on_round: Callable[["Training"], None] | None = None) -> None:
        """Train until `finished`, from the present state, and call `on_round` after every round.

        If a run diverges, the `DivergedError` is raised if it is the only run, else put into its record.
        """
        with (
            closing(self.method),
            nullcontext() if self._all_batched else torch.random.fork_rng(),
            keep_freed_memory(),
        ):
            while not self.finished:
                self.advance()
                if self.round % self.recipe.evaluate_every == 0 or self.round == self.recipe.rounds:
                    self._evaluate()
                if on_round is not None:
                    on_round(self)

    def advance(self) -> None:
        """Run one round without evaluating it."""
        self.method.streams.clock.fill_(self.round * self.method.inner_steps)
        self._do_round()
        self.round += 1

    def _one_round(self) -> None:
        row = self.method.round()
        self._log.index_copy_(0, self.method.streams.clock // self.method.inner_steps, row[None])

    def _evaluate(self) -> None:
        """Evaluate, and save the state of every run whose score is its best so far."""
        evaluation = self.method.evaluate()
        values = torch.stack([evaluation.utility, evaluation.score, *evaluation.adversaries, *evaluation.probes])
        values = self.method.streams.processes.of_first(values)  # all processes select the same states
        self.record_losses()
        of_runs = values.view(len(values), -1).T.tolist()
        tradeoffs: list[float] = self.method.problem.tradeoff.view(-1).tolist()
        selected = [self._record_values(*run) for run in zip(self.records, of_runs, tradeoffs, strict=True)]
        if any(selected):
            self._save_best(selected)

    def _record_values(self, record: Record, values: list[float], tradeoff: float) -> bool:
        """Record the validation values and end the run if it has to; returns whether to save its state."""
        if record.finished:
            return False
        utility, score, *rest = values
        last, count = record.history[-1], len(self.method.problem.secrets)
        of_secrets = zip(last.secrets, rest[:count], rest[count:], strict=True)
        secrets = tuple(SecretMetrics(before.loss, adversary, probe) for before, adversary, probe in of_secrets)
        record.history[-1] = Round(last.round, last.utility_loss, secrets, utility, score)
        naive = tradeoff < 1 and self.round <= min(self.recipe.warmup, self.recipe.rounds - 1)
        better = score > record.best_score and not naive
        if better:
            record.best_round, record.best_score = self.round, score
        record.finished = record.best_round > 0 and self.round - record.best_round >= self.recipe.patience
        return better or (naive and math.isfinite(score))

    def record_losses(self) -> None:
        """Copy what the rounds since the last call have logged into the records."""
        known = max((len(record.history) for record in self.records if not record.finished), default=self.round)
        for number, row in enumerate(self._log[known : self.round].permute(0, 2, 1).tolist(), start=known + 1):
            for record, logged in zip(self.records, row, strict=True):
                self._record_round(record, number, logged)

    def _record_round(self, record: Record, number: int, logged: list[float]) -> None:
        if record.finished:
            return
        count = len(self.method.problem.secrets)
        utility_loss, losses, norms = logged[0], logged[1 : 1 + count], logged[1 + count :]
        record.history.append(Round(number, utility_loss, tuple(SecretMetrics(loss) for loss in losses)))
        for player, norm in zip(self.method.players, norms, strict=True):
            if not math.isfinite(norm):
                record.finished = True
                record.diverged = DivergedError(
                    f"training diverged in round {number}: the gradient of the {player.name} is not finite. The last"
                    " good state is kept; lower the learning rates or raise the trade-off."
                )
                if len(self.records) == 1:
                    raise record.diverged
                return

    def state(self) -> dict[str, Tensor]:
        """Return the present weights of all parts, as `part.weight`."""
        return {
            f"{name}.{k}": v.detach() for name, part in self.method.parts.items() for k, v in part.state_dict().items()
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Load the weights of a `state` into the parts."""
        load_parts(self.method.parts, state)

    def _copy_of_state(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.state().items()}

    def _save_best(self, selected: list[bool]) -> None:
        if all(selected):
            self.best = self._copy_of_state()
            return
        state = self.state()
        chosen = torch.tensor(selected, device=next(iter(state.values())).device)[:, None]
        for name, value in state.items():
            best = self.best[name].view(len(selected), -1)
            self.best[name] = value.view(len(selected), -1).where(chosen, best).view(value.shape)


def gain(target: LearnedTarget, value: Tensor) -> Tensor:
    """Return the gain of a validation value over chance: (value - chance) / (1 - chance)."""
    chance = chance_level(target, target.val)
    return ((value - chance) / (1 - chance)).where(chance < 1, 0.0)
