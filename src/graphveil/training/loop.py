"""The alternating training of Algorithms 1 and 2.

In every round one forward pass of the encoder serves all players:

    z = encoder(x, A)
    repeat `steps`:  adversary's step on z, which cannot move the encoder
    utility head's step on z, likewise
    encoder's step on  lambda * L_utility + (1 - lambda) * secret term,  which cannot move the heads

The utility head and the encoder step on gradients of the same loss at the same point, so lambda = 1 is, bit for bit,
the plain training loop that everybody writes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphveil.errors import DivergedError
from graphveil.models.encoders import Features
from graphveil.models.sparse import Adjacency
from graphveil.randomness import generator, stream
from graphveil.training.objectives import Objective, cross_entropy
from graphveil.training.recipes import Recipe
from graphveil.training.targets import Examples, Target, guessing, reading


@dataclass(frozen=True)
class Round:
    """One line of the history; readings are on the validation part and NaN in rounds that were not evaluated."""

    round: int
    utility_loss: float
    secret_loss: float
    utility: float = math.nan
    adversary: float = math.nan
    score: float = math.nan


class Player:
    """A module with its optimiser, which steps only on finite gradients."""

    def __init__(self, name: str, module: nn.Module, lr: float, clip: float, weight_decay: float = 0.0) -> None:
        self.name, self.module, self.clip = name, module, clip
        self.parameters = list(module.parameters())
        self.optimizer: torch.optim.Optimizer = torch.optim.Adam(
            self.parameters, lr=lr, weight_decay=weight_decay, foreach=True
        )

    def step(self, round_number: int) -> None:
        """Clip, check and step; the gradients are consumed."""
        norm = nn.utils.clip_grad_norm_(self.parameters, self.clip)
        if not torch.isfinite(norm):
            raise DivergedError(
                f"training diverged in round {round_number}: the {self.name}'s gradient is not finite. The last"
                " good state is kept; lower the learning rates or move the trade-off towards 1."
            )
        self.optimizer.step()
        self.optimizer.zero_grad()


@dataclass
class Problem:
    """What is trained on: a graph, what to keep, what to hide, and how much of each.

    Args:
        tradeoff: lambda in [0, 1]; 1 is the unprotected encoder.
    """

    x: Features
    adjacency: Adjacency
    utility: Target
    secret: Target
    objective: Objective
    tradeoff: float


class Training:
    """The three players, and all that a run needs to stop and go on.

    `best` holds the state of the players in the round that validation selected; until there is one, the last state
    that was seen to be finite.
    """

    def __init__(self, problem: Problem, modules: dict[str, nn.Module], recipe: Recipe, steps: int, seed: int) -> None:
        self.problem, self.recipe, self.adversary_steps, self.seed = problem, recipe, steps, seed
        self.encoder = Player("encoder", modules["encoder"], recipe.lr_encoder, recipe.clip, recipe.weight_decay)
        self.utility = Player("utility", modules["utility"], recipe.lr_utility, recipe.clip)
        self.adversary = Player("adversary", modules["adversary"], recipe.lr_adversary, recipe.clip)
        self.history: list[Round] = []
        self.best = self._copy_of_state()
        self.best_round = 0
        self.best_score = -math.inf

    @property
    def finished(self) -> bool:
        """All rounds are done, or none of the last `patience` was better than the best."""
        done = len(self.history)
        return done >= self.recipe.rounds or (self.best_round > 0 and done - self.best_round >= self.recipe.patience)

    def run(self, on_round: Callable[["Training"], None] | None = None) -> None:
        """Train until `finished`, from wherever this run stands, and call `on_round` after every round."""
        with torch.random.fork_rng():
            while not self.finished:
                self.history.append(self._round(len(self.history) + 1))
                if on_round is not None:
                    on_round(self)

    def embed(self) -> Tensor:
        """z of the present encoder, without gradients and without dropout."""
        module = self.encoder.module
        module.eval()
        with torch.no_grad():
            z: Tensor = module(self.problem.x, self.problem.adjacency)
        module.train()
        return z

    def _round(self, number: int) -> Round:
        device = self.problem.utility.prior.device
        keep = self.problem.utility.train(generator(self.seed, "utility", number, device=device))
        hide = self.problem.secret.train(generator(self.seed, "secret", number, device=device))
        for inner in range(self.recipe.inner_steps):
            utility_loss, secret_loss = self._step(number, inner, keep, hide)
        if number % self.recipe.evaluate_every and number != self.recipe.rounds:
            return Round(number, utility_loss, secret_loss)
        return self._evaluate(Round(number, utility_loss, secret_loss))

    def _step(self, number: int, inner: int, keep: Examples, hide: Examples) -> tuple[float, float]:
        problem = self.problem
        self._randomness("encoder", number, inner)
        z = self.encoder.module(problem.x, problem.adjacency)

        self._randomness("adversary", number, inner)
        for _ in range(self.adversary_steps):
            secret_loss = self._adversary_step(number, z.detach(), hide)

        self._randomness("utility", number, inner)
        utility_loss, gradient = self._utility_step(number, z.detach(), keep)
        gradient *= problem.tradeoff
        if problem.tradeoff < 1:
            gradient += (1 - problem.tradeoff) * self._secret_gradient(z.detach(), hide)

        z.backward(gradient)
        self.encoder.step(number)
        return utility_loss, secret_loss

    def _adversary_step(self, number: int, z: Tensor, examples: Examples) -> float:
        target, module = self.problem.secret, self.adversary.module
        loss = cross_entropy(target.log_probabilities(module, z, examples), examples.y)
        (-loss if self.problem.objective.adversary_ascends else loss).backward()
        self.adversary.step(number)
        return loss.item()

    def _utility_step(self, number: int, z: Tensor, examples: Examples) -> tuple[float, Tensor]:
        """Step the head, and give the loss and its gradient at z, both from before the step."""
        z.requires_grad_()
        loss = cross_entropy(self.problem.utility.log_probabilities(self.utility.module, z, examples), examples.y)
        loss.backward()
        assert z.grad is not None
        self.utility.step(number)
        return loss.item(), z.grad

    def _secret_gradient(self, z: Tensor, examples: Examples) -> Tensor:
        """The gradient at z of what the encoder minimises for the secret; the adversary stands still."""
        z.requires_grad_()
        log_q = self.problem.secret.log_probabilities(self.adversary.module, z, examples)
        term = self.problem.objective.secret_term(log_q, examples.y, self.problem.secret.prior)
        (gradient,) = torch.autograd.grad(term, z)
        return gradient

    def _evaluate(self, done: Round) -> Round:
        """Read the validation part, and keep the players' state if it is the best so far."""
        z = self.embed()
        utility = reading(self.problem.utility, self.utility.module, z, self.problem.utility.val)
        adversary = reading(self.problem.secret, self.adversary.module, z, self.problem.secret.val)
        score = self._score(utility, adversary)
        naive = self.problem.tradeoff < 1 and done.round <= min(self.recipe.warmup, self.recipe.rounds - 1)
        if naive and math.isfinite(score):
            self.best = self._copy_of_state()
        elif score > self.best_score:
            self.best = self._copy_of_state()
            self.best_round, self.best_score = done.round, score
        return Round(done.round, done.utility_loss, done.secret_loss, utility, adversary, score)

    def _score(self, utility: float, adversary: float) -> float:
        """lambda * gain of the utility - (1 - lambda) * gain of the adversary, each 0 at guessing and 1 at best.

        A link predictor that is reliably wrong tells as much as one that is reliably right, so its gain has no sign; a
        classifier below the majority share tells nothing.
        """
        kept, told = gain(self.problem.utility, utility), gain(self.problem.secret, adversary)
        told = abs(told) if self.problem.secret.metric == "auc" else max(told, 0.0)
        return self.problem.tradeoff * kept - (1 - self.problem.tradeoff) * told

    @property
    def players(self) -> tuple[Player, Player, Player]:
        """Encoder, utility head and adversary."""
        return self.encoder, self.utility, self.adversary

    def state(self) -> dict[str, Tensor]:
        """The present weights of all players, as `player.weight`."""
        return {f"{p.name}.{k}": v.detach() for p in self.players for k, v in p.module.state_dict().items()}

    def _copy_of_state(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.state().items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Put the players' weights back to a `state`."""
        for player in self.players:
            prefix = f"{player.name}."
            player.module.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})

    def _randomness(self, role: str, number: int, inner: int) -> None:
        """Dropout draws from a stream of its own, so that one player's draws never shift another's."""
        torch.manual_seed(stream(self.seed, role, number, inner))


def gain(target: Target, value: float) -> float:
    """A validation reading's gain over guessing, 0 at guessing and 1 at best."""
    guess = guessing(target, target.val)
    return (value - guess) / (1 - guess) if guess < 1 else 0.0
