"""The one idea: predict a target from embeddings.

The utility head, the training adversary and every attack do the same act on the same noun. A `Target` says where its
examples come from, how a head reads them, and how a reading is scored. Both of the paper's problems, and any node
attribute as a secret, are then two targets and a trade-off.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch_geometric.data import Data

from graphveil.data import UNKNOWN, Split, node_classes
from graphveil.data.pairs import draw_nonlinks
from graphveil.data.split import Knowledge
from graphveil.errors import GraphveilError


@dataclass(frozen=True, eq=False)
class Examples:
    """What is asked and its answer: nodes (n,) or pairs (2, n), and their classes (n,)."""

    index: Tensor
    y: Tensor


class Target(Protocol):
    """Something that embeddings may or may not tell.

    Attributes:
        name: "links", "labels" or a node attribute.
        metric: "auc" or "accuracy", both in [0, 1].
        num_classes: how many answers there are.
        prior: the share of each class among the training examples, (classes,).
        val, test: the held-out examples.
    """

    name: str
    metric: Literal["auc", "accuracy"]
    num_classes: int
    prior: Tensor
    val: Examples
    test: Examples

    def train(self, random: torch.Generator) -> Examples:
        """The examples of one round."""

    def log_probabilities(self, head: nn.Module, z: Tensor, examples: Examples) -> Tensor:
        """log q(class | z) of each example, (n, classes)."""


class Links:
    """Is there a link between two nodes? As many fresh non-links as links in every round."""

    name = "links"
    metric: Literal["auc", "accuracy"] = "auc"
    num_classes = 2

    def __init__(self, split: Split, device: torch.device) -> None:
        self._num_nodes = split.num_nodes
        self._links = split.train_links.to(device)
        self._taken = split.taken_pairs.to(device)
        self.prior = torch.full((2,), 0.5, device=device)
        self.val = _pairs(split.val_links.to(device), split.val_nonlinks.to(device))
        self.test = _pairs(split.test_links.to(device), split.test_nonlinks.to(device))

    def train(self, random: torch.Generator) -> Examples:
        nonlinks = draw_nonlinks(self._links.size(1), self._taken, self._num_nodes, random)
        return _pairs(self._links, nonlinks)

    def log_probabilities(self, head: nn.Module, z: Tensor, examples: Examples) -> Tensor:
        u, v = examples.index
        logit = head(z.index_select(0, u), z.index_select(0, v))
        return torch.stack([F.logsigmoid(-logit), F.logsigmoid(logit)], dim=1)


class NodeClasses:
    """Which class does a node have? The classes are the graph's labels or any node attribute.

    Args:
        train_nodes: the nodes whose class may be learned from; unknown ones are left out.
    """

    metric: Literal["auc", "accuracy"] = "accuracy"

    def __init__(self, name: str, graph: Data, split: Split, train_nodes: Tensor, device: torch.device) -> None:
        self.name = name
        y = node_classes(graph, name).cpu()
        self.num_classes = int(y.max()) + 1
        self._train, self.val, self.test = (
            _known(nodes, y, device) for nodes in (train_nodes, split.val_nodes, split.test_nodes)
        )
        for part, examples in (("train", self._train), ("validate", self.val), ("test", self.test)):
            if examples.y.numel() == 0:
                raise GraphveilError(f"{name!r} is known for none of the nodes to {part} on: fill in more values.")
        counts = torch.bincount(self._train.y, minlength=self.num_classes)
        if self.num_classes < 2 or int((counts > 0).sum()) < 2:
            raise GraphveilError(f"{name!r} has one class only among the nodes to train on: nothing can be learned.")
        self.prior = counts.float() / counts.sum()

    def train(self, random: torch.Generator) -> Examples:  # noqa: ARG002 - the same nodes in every round
        return self._train

    def log_probabilities(self, head: nn.Module, z: Tensor, examples: Examples) -> Tensor:
        return F.log_softmax(head(z.index_select(0, examples.index)), dim=-1)


def utility_target(name: str, graph: Data, split: Split, device: torch.device) -> Target:
    """The target to keep: learned from the split's training part."""
    if name == "links":
        if split.message_edges != "train":
            raise GraphveilError(
                "links are the utility, but this split passes messages along the links it is scored on:"
                ' use message_edges="train".'
            )
        return Links(split, device)
    return NodeClasses(name, graph, split, split.train_nodes, device)


def secret_target(name: str, graph: Data, split: Split, knows: Knowledge, device: torch.device) -> Target:
    """The target to hide: the adversary learns it from what the defender may use."""
    if name == "links":
        return Links(split, device)
    return NodeClasses(name, graph, split, split.defender_nodes(knows), device)


def reading(target: Target, head: nn.Module, z: Tensor, examples: Examples) -> float:
    """How well a head reads the target from z: AUC or accuracy."""
    was_training = head.training
    head.eval()
    with torch.no_grad():
        log_q = target.log_probabilities(head, z, examples)
    head.train(was_training)
    if not torch.isfinite(log_q).all():
        return float("nan")
    if target.metric == "accuracy":
        return float((log_q.argmax(dim=1) == examples.y).float().mean())
    return float(roc_auc_score(examples.y.cpu().numpy(), (log_q[:, 1] - log_q[:, 0]).cpu().numpy()))


def guessing(target: Target, examples: Examples) -> float:
    """What guessing without looking reads: .5 AUC, or the share of the largest class."""
    if target.metric == "auc":
        return 0.5
    return float(torch.bincount(examples.y).max() / examples.y.numel())


def _pairs(links: Tensor, nonlinks: Tensor) -> Examples:
    y = torch.zeros(links.size(1) + nonlinks.size(1), dtype=torch.long, device=links.device)
    y[: links.size(1)] = 1
    return Examples(torch.cat([links, nonlinks], dim=1), y)


def _known(nodes: Tensor, y: Tensor, device: torch.device) -> Examples:
    nodes = nodes[y[nodes] != UNKNOWN]
    return Examples(nodes.to(device), y[nodes].to(device))
