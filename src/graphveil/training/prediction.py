"""Calibrated class probabilities of every node, from a plain classifier.

They replace classes that the defender may not use or does not know. The classifier is a GCN that is trained without a
secret on four fifths of the known classes; the last fifth selects its state and its temperature.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from graphveil.models.build import build_encoder, build_head
from graphveil.models.heads import LinearClassifier
from graphveil.models.stack import stack
from graphveil.randomness import Noise, generator, global_stream
from graphveil.training.adversarial import Adversarial
from graphveil.training.codes import Classes
from graphveil.training.loop import Problem, Training
from graphveil.training.objectives import ADVERSARIAL, cross_entropy
from graphveil.training.players import Streams
from graphveil.training.recipes import Recipe
from graphveil.training.targets import (
    Examples,
    LearnedTarget,
    Links,
    ListedExamples,
    NodeClasses,
    Rows,
    log_probs,
    some_of,
)

CLASSIFIER = Recipe(
    rounds=120,
    head="linear",
    hidden_channels=64,
    out_channels=32,
    dropout=0.6,
    weight_decay=5e-4,
    encoder_options={"smoothing": 2, "restart": 0.2},
    patience=40,
)
TEMPERATURES = torch.logspace(-1, 1, 41, base=4.0)


class HeldOutFifth:
    """A target with four fifths of another's training examples to train on, and the last fifth to validate on.

    Args:
        other: The other target.
        seeds: The seeds of the runs.
    """

    def __init__(self, other: NodeClasses, seeds: list[int]) -> None:
        self.target, self.num_classes, self.prior = other.target, other.num_classes, other.prior
        known = other.train_examples
        count = known.y.size(-1)
        orders = [torch.randperm(count, generator=generator(seed, "prediction", self.target.name)) for seed in seeds]
        order = torch.stack(orders).view(known.y.shape).to(known.y.device)
        held = max(1, count // 5)
        self.val = self.test = _chosen(known, order[..., :held])
        self._train = _chosen(known, order[..., held:] if count > held else order)

    @property
    def num_examples(self) -> int:
        """The number of training examples of a run."""
        return self._train.y.size(-1)

    def train(self, noise: Noise) -> Examples:  # noqa: ARG002 - the same nodes in every round
        """Return four fifths of the examples."""
        return self._train

    def batch(self, places: Tensor, random: torch.Generator) -> ListedExamples:  # noqa: ARG002 - nothing is drawn
        """Return some of them."""
        return some_of(self._train, places)

    def log_probabilities(self, head: nn.Module, rows: Rows) -> Tensor:
        """Return log q(class | z) of each example, (..., n, classes)."""
        log_q: Tensor = head(*rows.gathered).log_softmax(dim=-1)
        return log_q

    def loss(self, head: nn.Module, rows: Rows) -> Tensor:
        """Return the cross-entropy of a head, (...)."""
        return cross_entropy(self.log_probabilities(head, rows), rows.examples.y)


def secret_classes(problem: Problem, in_channels: int, seeds: list[int]) -> list[Classes]:
    """Return the known or predicted classes of every node, for each secret."""
    return [_completed(secret, problem, in_channels, seeds) for secret in problem.secrets]


def utility_classes(problem: Problem, in_channels: int, seeds: list[int]) -> Classes | None:
    """Return the known or predicted classes of every node for the utility; None if it is links."""
    if isinstance(problem.utility, Links):
        return None
    return _completed(problem.utility, problem, in_channels, seeds)


def _completed(target: LearnedTarget, problem: Problem, in_channels: int, seeds: list[int]) -> Classes:
    assert isinstance(target, NodeClasses)
    links = problem.utility.links if isinstance(problem.utility, Links) else None
    return Classes.of(target, predict(problem, target, in_channels, seeds), links, seeds)


def predict(problem: Problem, target: NodeClasses, in_channels: int, seeds: list[int]) -> Tensor:
    """Return p(class) of every node, (..., n, C), calibrated on nodes that the classifier was not trained on."""
    recipe, held = CLASSIFIER, HeldOutFifth(target, seeds)
    device = problem.tradeoff.device
    built = [_built(seed, recipe, in_channels, target.num_classes) for seed in seeds]
    modules = {part: stack([of_run[part] for of_run in built]).to(device) for part in built[0]}
    plain = Problem(problem.graph, held, [], torch.ones_like(problem.tradeoff))
    streams = Streams(seeds, recipe.rounds, device, problem.graph.processes)
    method = Adversarial(plain, modules, ADVERSARIAL["club"], recipe, 0, streams)
    training = Training(method, recipe)
    training.run()
    training.load_state(training.best)
    z, head = method.embed(), method.utility.module
    temperature = calibration(log_probs(held, head, z, held.val), held.val.y)
    with torch.no_grad():
        logits: Tensor = head(z)
    return (logits / temperature[..., None, None]).softmax(dim=-1)


def calibration(log_q: Tensor, y: Tensor) -> Tensor:
    """Return the temperature with the largest likelihood, (...).

    Args:
        log_q: Log-probabilities, (..., n, classes).
        y: True classes, (..., n).
    """
    grid = TEMPERATURES.to(log_q.device).view(-1, *[1] * log_q.dim())
    log_p = (log_q / grid).log_softmax(dim=-1)
    likelihood = log_p.gather(-1, y.expand(len(grid), *y.shape)[..., None]).squeeze(-1).mean(dim=-1)
    return TEMPERATURES.to(log_q.device)[likelihood.argmax(dim=0)]


def _built(seed: int, recipe: Recipe, in_channels: int, num_classes: int) -> Mapping[str, nn.Module]:
    with global_stream(seed, "prediction"):
        return {
            "encoder": build_encoder(
                "gcn",
                in_channels=in_channels,
                hidden_channels=recipe.hidden_channels,
                out_channels=recipe.out_channels,
                dropout=recipe.dropout,
                **recipe.encoder_options,
            ),
            "utility": build_head(LinearClassifier, "classes", recipe.out_channels, num_classes),
        }


def _chosen(examples: Examples, places: Tensor) -> Examples:
    return ListedExamples(examples.index.gather(-1, places), examples.y.gather(-1, places))
