"""Methods of other authors that publish classes and hide links; Figure 3 compares them with ours.

Each computes embeddings from (graph, split, epsilon, seed). None depends on the encoder of the experiment.

| name | release | what epsilon protects |
|---|---|---|
| `gap` | class probabilities from noisy sums over neighbours | any one link |
| `gap-class` | the most probable class of `gap` alone | the same |
| `rr` | the class that an unprotected GCN predicts, by randomised response | that class of one node, not links |

The noise is drawn from the seed of the experiment, so that results repeat. A real release must use secret randomness.
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
from graphveil.experiments.gap import Aggregation, noisy_classes
from graphveil.models.codes import CodeBook
from graphveil.models.grid import STEPS, Grid
from graphveil.randomness import generator
from graphveil.training.objectives import CODES
from graphveil.training.recipes import default_recipe
from graphveil.training.score import Score, score_codes
from graphveil.training.targets import secret_target, utility_target
from graphveil.veil import Veil


@dataclass(frozen=True)
class Task:
    """The utility and the secrets of a peer.

    Args:
        utility: the target that is kept.
        secrets: the targets that are hidden.
        rounds: the number of training rounds for a test run; None for the default.
    """

    utility: str = "labels"
    secrets: tuple[str, ...] = ("links",)
    rounds: int | None = None


@dataclass(frozen=True, eq=False)
class Released:
    """The release of a peer.

    Args:
        z: embeddings of shape (num_nodes, classes), float32; the largest entry of a row is the published class.
        score: the score on the test part; secrets are attacked by a table of counts on the published classes.
    """

    z: Tensor
    score: Score


@dataclass(frozen=True)
class Peer:
    """A method of other authors.

    Args:
        encoder: the name of its encoder in tables.
        embed: computes z from (graph, split, epsilon, seed, task).
        config: all other settings that z depends on, as plain values, from (seed, task).
        package: the import name of the optional package that it needs, or None.
    """

    encoder: str
    embed: Callable[[Data, Split, float, int, Task], Tensor]
    config: Callable[[int, Task], dict[str, Any]]
    package: str | None = None

    @property
    def is_installed(self) -> bool:
        """Whether the optional package is installed."""
        return self.package is None or importlib.util.find_spec(self.package) is not None


def release(name: str, graph: Data, split: Split, epsilon: float, seed: int, task: Task | None = None) -> Released:
    """Compute the release of a peer.

    Args:
        name: one of `PEERS`.
        graph: the graph.
        split: its split.
        epsilon: the privacy parameter of the peer.
        seed: the seed of the training and the noise.
        task: the utility and the secrets; None for labels and links.
    """
    task, cpu = task or Task(), torch.device("cpu")
    z = PEERS[name].embed(graph, split, epsilon, seed, task)
    classes, numbers = z.argmax(dim=-1), torch.arange(z.size(1))
    book = CodeBook.of(numbers, torch.eye(len(numbers)), torch.ones(len(numbers)), torch.arange(len(z)), classes)
    utility = utility_target(task.utility, graph, [split], cpu)
    secrets = {secret: secret_target(secret, graph, [split], "all", cpu) for secret in task.secrets}
    return Released(z, score_codes(classes, book, utility, secrets))


def missing_extra(names: Iterable[str]) -> str | None:
    """A sentence that names the peers whose package is not installed; None if all are installed."""
    out = [name for name in names if not PEERS[name].is_installed]
    if not out:
        return None
    return (
        f"skipped, because dp-accounting is not installed: {', '.join(out)};"
        " install the extra peers (in the clone: pip install -c constraints.txt '.[peers]')."
    )


def keep_probability(epsilon: float, num_classes: int) -> float:
    """The probability e^epsilon / (e^epsilon + C - 1) that randomised response keeps a class."""
    return 1 / (1 + (num_classes - 1) * math.exp(-epsilon))


def randomised_response(classes: Tensor, num_classes: int, epsilon: float, seed: int) -> Tensor:
    """Keep each class with `keep_probability`, and replace it by a random other class otherwise.

    This is epsilon-local differential privacy of the given classes. It does not protect the links, if the classes were
    predicted along links.

    Args:
        classes: (n,).
        num_classes: the number of classes, C.
        epsilon: the privacy parameter.
        seed: the seed of the random replacement.

    Returns:
        Classes of shape (n,).
    """
    draws = generator(seed, "randomised response", f"{epsilon:g}")
    kept = torch.rand(classes.shape, generator=draws, dtype=torch.float64) < keep_probability(epsilon, num_classes)
    others = (classes + torch.randint(1, num_classes, classes.shape, generator=draws)) % num_classes
    return classes.where(kept, others)


def _gap(graph: Data, split: Split, epsilon: float, seed: int, task: Task) -> Tensor:
    probabilities = noisy_classes(graph, split, epsilon, seed, task.utility, _aggregation(task))
    rounded: Tensor = Grid.of(probabilities)(probabilities)  # as in our releases
    return rounded


def _gap_class(graph: Data, split: Split, epsilon: float, seed: int, task: Task) -> Tensor:
    probabilities = noisy_classes(graph, split, epsilon, seed, task.utility, _aggregation(task))
    return F.one_hot(probabilities.argmax(dim=-1), probabilities.size(1)).float()


def _aggregation(task: Task) -> Aggregation:
    settings = Aggregation()
    return settings if task.rounds is None else replace(settings, epochs=task.rounds)


def _rr(graph: Data, split: Split, epsilon: float, seed: int, task: Task) -> Tensor:
    num_classes = int(node_classes(graph, task.utility).max()) + 1
    classes = _unprotected(seed, task).fit(graph, split).codes(graph, split)
    return F.one_hot(randomised_response(classes, num_classes, epsilon, seed), num_classes).float()


def _unprotected(seed: int, task: Task) -> Veil:
    """A veil with trade-off 1, whose codes are the classes that an unprotected encoder predicts."""
    recipe = default_recipe(task.utility, RR_ENCODER, CODES, task.secrets)
    if task.rounds is not None:
        recipe = recipe.but(rounds=task.rounds, warmup=0)
    return Veil(task.utility, task.secrets, RR_ENCODER, 1.0, CODES, recipe=recipe, seed=seed, device="cpu")


RR_ENCODER = "gcn"
ACCOUNTANT = "dp_accounting"
PEERS: Mapping[str, Peer] = {
    "gap": Peer("mlp", _gap, lambda _, task: asdict(_aggregation(task)) | {"grid": STEPS}, ACCOUNTANT),
    "gap-class": Peer("mlp", _gap_class, lambda _, task: asdict(_aggregation(task)), ACCOUNTANT),
    "rr": Peer(RR_ENCODER, _rr, lambda seed, task: _unprotected(seed, task).config()),
}
