"""Noisy aggregation: node classes under edge-level differential privacy, as in GAP.

Sajadmanesh, Shamsabadi, Bellet and Gatica-Perez, "GAP: Differentially private graph neural networks with aggregation
perturbation", USENIX Security 2023, in its edge-level form:

1. An MLP that sees features only is trained on the training labels. Its logits are the channels of each node.
2. For each of K hops: rows are scaled to unit norm, summed over neighbours, and get Gaussian noise.
3. A classifier is trained on the concatenated hops. This is post-processing and costs no privacy. Where the MLP of step
   1 has the better validation accuracy, because the noise is large, its logits are taken instead.

Two graphs are neighbours if they differ in one undirected link {u, v}. The link adds x_v to the sum of u and x_u to the
sum of v. Rows have at most unit norm, so the L2 sensitivity of all sums of a hop together is sqrt(2). (GAP counts
directed edges, for which it is 1.) `dp_accounting` calibrates the noise so that K such sums are (epsilon, delta)-
differentially private. Features, labels and the number of nodes count as public. Needs the extra `peers`.
"""

import copy
import math
from dataclasses import dataclass
from functools import lru_cache, partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch_geometric.data import Data

from graphveil.data import Split
from graphveil.data.degree_features import is_structural
from graphveil.data.graph import both_directions
from graphveil.errors import GraphveilError
from graphveil.models.layers import Features
from graphveil.models.sparse import Pattern, SparseMatrix
from graphveil.models.student import Student
from graphveil.randomness import generator, global_stream
from graphveil.training.inputs import applicable_scaling, features
from graphveil.training.prediction import calibration
from graphveil.training.targets import NodeClasses, class_utility

SENSITIVITY = math.sqrt(2)
"""The L2 sensitivity of the sums of unit rows over neighbours to one undirected link."""


@dataclass(frozen=True)
class Aggregation:
    """The settings of noisy aggregation.

    Args:
        hops: K, the number of noisy sums.
        channels: the width of the hidden layer of both classifiers.
        dropout: the dropout rate of both classifiers.
        epochs: training epochs of each classifier; the epoch with the best validation accuracy is kept.
        learning_rate: the learning rate of Adam.
        weight_decay: the weight decay of Adam.
        largest_delta: the upper bound of delta, which is one over the number of links if that is smaller.
    """

    hops: int = 2
    channels: int = 64
    dropout: float = 0.5
    epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    largest_delta: float = 1e-5

    def delta(self, num_links: int) -> float:
        """The delta for a graph with `num_links` undirected links."""
        return min(self.largest_delta, 1 / max(num_links, 1))


def noisy_classes(
    graph: Data, split: Split, epsilon: float, seed: int, utility: str = "labels", settings: Aggregation | None = None
) -> Tensor:
    """Calibrated class probabilities of every node under edge-level differential privacy.

    Args:
        graph: a graph with node features that do not depend on its links.
        split: the nodes that train and validate, and the links to aggregate over.
        epsilon: the privacy loss of all hops together, per undirected link.
        seed: the seed of the weights and the noise.
        utility: the class to predict.
        settings: the settings; None for the defaults.

    Returns:
        Probabilities of shape (num_nodes, classes).

    Raises:
        GraphveilError: if the features are computed from links.
    """
    if is_structural(graph):
        raise GraphveilError(
            "the features are computed from links, so noisy aggregation cannot hide links: give the nodes features."
        )
    settings = settings or Aggregation()
    cpu = torch.device("cpu")
    x = features(graph, [split], applicable_scaling("sum", graph), cpu)
    target = class_utility(utility, graph, [split], cpu)
    links = split.message_pairs
    scale = noise_scale(epsilon, settings.delta(links.size(1)), settings.hops)
    with global_stream(seed, "noisy aggregation", f"{epsilon:g}"):
        encoder = Student(graph.x.size(1), settings.channels, target.num_classes, settings.dropout)
        own = train_classifier(encoder, x, target, settings)
        hops = [F.normalize(own)]
        for hop in range(settings.hops):
            noise = torch.randn(own.shape, generator=generator(seed, "noisy aggregation", f"{epsilon:g}", hop))
            hops.append(F.normalize(neighbour_sums(hops[-1], links) + scale * noise))
        seen = torch.cat(hops, dim=-1)
        classifier = Student(seen.size(1), settings.channels, target.num_classes, settings.dropout)
        classified = train_classifier(classifier, seen, target, settings)
    logits = max(own, classified, key=lambda logits: validation(logits, target))
    temperature = calibration(logits[target.val.index].log_softmax(dim=-1), target.val.y)
    return (logits / temperature).softmax(dim=-1)


def neighbour_sums(x: Tensor, links: Tensor) -> Tensor:
    """The sum of the rows of each node's neighbours.

    Args:
        x: rows of at most unit norm, (n, channels).
        links: each undirected link once, (2, links).

    Returns:
        Sums of shape (n, channels).
    """
    row, col = both_directions(links)
    row, order = row.sort(stable=True)
    pattern = Pattern.from_rows(row, col[order], (len(x), len(x)), symmetric=True)
    return SparseMatrix(pattern, torch.ones(len(row))) @ x


@lru_cache(maxsize=64)
def noise_scale(epsilon: float, delta: float, hops: int) -> float:
    """The standard deviation of the noise of each hop, so that all hops together are (epsilon, delta)-private.

    Args:
        epsilon: the privacy loss of all hops together.
        delta: the probability that the loss exceeds epsilon.
        hops: the number of noisy sums.
    """
    import dp_accounting  # noqa: PLC0415 - an extra
    from dp_accounting.pld import PLDAccountant  # noqa: PLC0415

    def event(multiplier: float) -> object:
        return dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(multiplier), hops)

    # ten times coarser and faster than the default; the loss is rounded up, here in the seventh digit
    accountant = partial(PLDAccountant, value_discretization_interval=1e-3)
    multiplier = dp_accounting.calibrate_dp_mechanism(accountant, event, epsilon, delta)
    return SENSITIVITY * float(multiplier)


def train_classifier(classifier: nn.Module, x: Features, target: NodeClasses, settings: Aggregation) -> Tensor:
    """Train on the training nodes and keep the epoch that is best on the validation nodes.

    Args:
        classifier: maps `x` to logits; it is trained in place.
        x: input rows of all nodes.
        target: the classes, and the nodes that train and validate.
        settings: epochs, learning rate and weight decay.

    Returns:
        Logits of shape (num_nodes, classes).
    """
    train = target.train_examples
    optimizer = torch.optim.Adam(classifier.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    best, kept = (-1.0, 0.0), copy.deepcopy(classifier.state_dict())
    for _ in range(settings.epochs):
        loss = F.cross_entropy(classifier.train()(x)[train.index], train.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (reached := validation(_logits(classifier, x), target)) > best:
            best, kept = reached, copy.deepcopy(classifier.state_dict())
    classifier.load_state_dict(kept)
    return _logits(classifier, x)


def validation(logits: Tensor, target: NodeClasses) -> tuple[float, float]:
    """Accuracy and log-likelihood on the validation nodes; the second breaks ties of the first."""
    logits, y = logits[target.val.index], target.val.y
    return float((logits.argmax(dim=-1) == y).double().mean()), -float(F.cross_entropy(logits, y))


def _logits(classifier: nn.Module, x: Features) -> Tensor:
    with torch.no_grad():
        logits: Tensor = classifier.eval()(x)
    return logits
