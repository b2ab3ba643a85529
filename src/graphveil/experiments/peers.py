"""Other ways to publish classes and hide links, which Figure 3 shows beside ours.

Each takes (graph, split, epsilon, seed) and gives embeddings to release. None depends on the encoder under test.

| name | release | what epsilon protects |
|---|---|---|
| `gap` | class probabilities from noisy sums over neighbours | any one link |
| `gap-class` | the most probable class of `gap` alone | the same |
| `rr` | the class that an unprotected GCN predicts, by randomised response | that class of one node, not links |

Both draw their noise from the experiment's seed, so that results repeat. A real release must use secret random numbers.
"""

import importlib.util
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch_geometric.data import Data

from graphveil.data import Split, node_classes
from graphveil.experiments.aggregation import Aggregation, noisy_classes
from graphveil.models.codes import CodeBook
from graphveil.randomness import generator
from graphveil.training.objectives import CODES
from graphveil.training.recipes import default_recipe
from graphveil.training.score import Score, score_codes
from graphveil.training.targets import secret_target, utility_target
from graphveil.veil import Veil


@dataclass(frozen=True)
class Task:
    """What is kept and hidden.

    Args:
        rounds: fewer than usual, to see whether it runs.
    """

    utility: str = "labels"
    secrets: tuple[str, ...] = ("links",)
    rounds: int | None = None


@dataclass(frozen=True, eq=False)
class Released:
    """Embeddings z, (num_nodes, classes) float32, whose largest entry is the class, and their score on the test part.

    The secrets of the score are attacked by the rule that is counted on the published classes.
    """

    z: Tensor
    score: Score


@dataclass(frozen=True)
class Peer:
    """A method by somebody else.

    Args:
        encoder: what it is trained with.
        embed: gives z from (graph, split, epsilon, seed, task).
        config: all that decides z beside these, as plain values.
        package: what must be installed for it, if anything, by the name that it is imported by.
    """

    encoder: str
    embed: Callable[[Data, Split, float, int, Task], Tensor]
    config: Callable[[int, Task], dict[str, Any]]
    package: str | None = None

    @property
    def is_installed(self) -> bool:
        """Whether it can be run here."""
        return self.package is None or importlib.util.find_spec(self.package) is not None


def release(name: str, graph: Data, split: Split, epsilon: float, seed: int, task: Task | None = None) -> Released:
    """What the peer called `name` publishes."""
    task, cpu = task or Task(), torch.device("cpu")
    z = PEERS[name].embed(graph, split, epsilon, seed, task)
    classes, numbers = z.argmax(dim=-1), torch.arange(z.size(1))
    book = CodeBook.of(numbers, torch.eye(len(numbers)), torch.ones(len(numbers)), torch.arange(len(z)), classes)
    utility = utility_target(task.utility, graph, [split], cpu)
    secrets = {secret: secret_target(secret, graph, [split], "all", cpu) for secret in task.secrets}
    return Released(z, score_codes(classes, book, utility, secrets))


def missing_extra(names: Iterable[str]) -> str | None:
    """A sentence if some of these peers cannot be run here."""
    out = [name for name in names if not PEERS[name].is_installed]
    if not out:
        return None
    return (
        f"left out without dp-accounting, which is not installed: {', '.join(out)};"
        " to add them, pip install 'graphveil[peers]'."
    )


def keep_probability(epsilon: float, num_classes: int) -> float:
    """e^epsilon / (e^epsilon + C - 1): how often randomised response keeps the class."""
    return 1 / (1 + (num_classes - 1) * math.exp(-epsilon))


def randomised_response(classes: Tensor, num_classes: int, epsilon: float, seed: int) -> Tensor:
    """Each class (n,) kept with `keep_probability`, else replaced by one of the others at random.

    This is epsilon-local differential privacy of the class that is given. Neighbours whose classes were predicted along
    their links are not protected by it.
    """
    draws = generator(seed, "randomised response", f"{epsilon:g}")
    kept = torch.rand(classes.shape, generator=draws, dtype=torch.float64) < keep_probability(epsilon, num_classes)
    others = (classes + torch.randint(1, num_classes, classes.shape, generator=draws)) % num_classes
    return classes.where(kept, others)


def _gap(graph: Data, split: Split, epsilon: float, seed: int, task: Task) -> Tensor:
    return noisy_classes(graph, split, epsilon, seed, task.utility, _aggregation(task))


def _gap_class(graph: Data, split: Split, epsilon: float, seed: int, task: Task) -> Tensor:
    probabilities = _gap(graph, split, epsilon, seed, task)
    return F.one_hot(probabilities.argmax(dim=-1), probabilities.size(1)).float()


def _aggregation(task: Task) -> Aggregation:
    settings = Aggregation()
    return settings if task.rounds is None else replace(settings, epochs=task.rounds)


def _rr(graph: Data, split: Split, epsilon: float, seed: int, task: Task) -> Tensor:
    num_classes = int(node_classes(graph, task.utility).max()) + 1
    classes = _unprotected(seed, task).fit(graph, split).codes(graph, split)
    return F.one_hot(randomised_response(classes, num_classes, epsilon, seed), num_classes).float()


def _unprotected(seed: int, task: Task) -> Veil:
    """At a trade-off of 1 the codes are the classes that an ordinary encoder predicts."""
    recipe = default_recipe(task.utility, RR_ENCODER, CODES, task.secrets)
    if task.rounds is not None:
        recipe = recipe.but(rounds=task.rounds, warmup=0)
    return Veil(task.utility, task.secrets, RR_ENCODER, 1.0, CODES, recipe=recipe, seed=seed, device="cpu")


RR_ENCODER = "gcn"
ACCOUNTANT = "dp_accounting"
PEERS: Mapping[str, Peer] = {
    "gap": Peer("mlp", _gap, lambda _, task: asdict(_aggregation(task)), ACCOUNTANT),
    "gap-class": Peer("mlp", _gap_class, lambda _, task: asdict(_aggregation(task)), ACCOUNTANT),
    "rr": Peer(RR_ENCODER, _rr, lambda seed, task: _unprotected(seed, task).config()),
}
