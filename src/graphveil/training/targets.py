"""Targets with their examples and predictions, from the side of a training.

The utility head, the joint adversary and every attack predict a target. Both of the paper's problems, and those with
any node attribute as a secret, are then a utility, secrets and a trade-off.

A learned target belongs to one run, or to a batch of runs on one graph, each with its own split. In a batch, every
tensor has a leading dimension of runs, and nodes are numbered through all runs, as the rows of the stacked embeddings
are.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch_geometric.data import Data

from graphveil import kernels
from graphveil.data import UNKNOWN, Split, node_classes
from graphveil.data.graph import decode_pairs, encode_pairs
from graphveil.data.splits.nonlinks import count_free, free_before, nth_free
from graphveil.data.splits.split import Knowledge
from graphveil.errors import GraphveilError
from graphveil.models.blocks import ends, in_blocks, score_in_blocks
from graphveil.models.heads import Bilinear, FermiDirac
from graphveil.models.pair_loss import bilinear_loss, distance_loss, logistic_loss
from graphveil.models.sparse import Pattern
from graphveil.randomness import Noise
from graphveil.target import CHANCE_AUC, LINKS, Target
from graphveil.training.objectives import cross_entropy


class Examples(Protocol):
    """Examples of a target.

    Attributes:
        index: Nodes (..., n) or pairs (2, ..., n).
        y: Their classes, (..., n).
    """

    @property
    def index(self) -> Tensor: ...

    @property
    def y(self) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class ListedExamples:
    """Examples in any order.

    Args:
        index: Nodes (..., n) or pairs (2, ..., n).
        y: Their classes, (..., n).
    """

    index: Tensor
    y: Tensor

    def to(self, device: torch.device) -> "ListedExamples":
        """Return the examples on another device."""
        return ListedExamples(self.index.to(device), self.y.to(device))


@dataclass(frozen=True, eq=False)
class PairExamples:
    """Pairs, links first, in ascending order of their codes within links and within non-links.

    Args:
        links: The links as a sparse pattern.
        nonlinks: The non-links as a sparse pattern.
        runs: The leading dimensions: () or (runs,).
    """

    links: Pattern
    nonlinks: Pattern
    runs: tuple[int, ...]

    @cached_property
    def index(self) -> Tensor:
        """The pairs, (2, ..., n), from the patterns, which are all that most heads need."""
        parts = [torch.stack([part.col, part.row]).view(2, *self.runs, -1) for part in (self.links, self.nonlinks)]
        return torch.cat(parts, dim=-1).long()

    @cached_property
    def y(self) -> Tensor:
        """1 for links and 0 for non-links, (..., n)."""
        links, nonlinks = (part.col.view(*self.runs, -1) for part in (self.links, self.nonlinks))
        return torch.cat([torch.ones_like(links), torch.zeros_like(nonlinks)], dim=-1).long()


@dataclass(frozen=True, eq=False)
class Rows:
    """The input of a head: embeddings of nodes, or of both ends of pairs, gathered on first use.

    Args:
        z: (..., nodes, channels).
        examples: The nodes or pairs.
    """

    z: Tensor
    examples: Examples

    @cached_property
    def gathered(self) -> tuple[Tensor, ...]:
        """The rows of z of the nodes, or of both ends of the pairs, (..., n, channels) each."""
        index = self.examples.index
        return ends(self.z, index if index.dim() > self.examples.y.dim() else index[None])


class LearnedTarget(Protocol):
    """A target with the examples that it is learned from and evaluated on.

    Attributes:
        target: The target, which defines the metric.
        num_classes: The number of classes.
        prior: The share of each class among the training examples, (..., classes).
        val: The validation examples.
        test: The test examples.
    """

    target: Target
    num_classes: int
    prior: Tensor
    val: Examples
    test: Examples

    @property
    def num_examples(self) -> int:
        """The number of training examples of a run; of links, without non-links."""

    def train(self, noise: Noise) -> Examples:
        """Return the training examples of one round."""

    def batch(self, places: Tensor, random: torch.Generator) -> ListedExamples:
        """Return some of the training examples of a single run, on the CPU; of links, with as many fresh non-links.

        Args:
            places: Which ones, (n,).
            random: The random numbers.
        """

    def log_probabilities(self, head: nn.Module, rows: Rows) -> Tensor:
        """Return log q(class | z) of each example, (..., n, classes)."""

    def loss(self, head: nn.Module, rows: Rows) -> Tensor:
        """Return the cross-entropy of a head, (...)."""


class Links:
    """Whether two nodes are linked. Every round has as many fresh non-links as links.

    Args:
        splits: The split of each run.
        device: The device.
    """

    target = Target.of(LINKS)
    num_classes = 2
    val: Examples
    test: Examples

    def __init__(self, splits: Sequence[Split], device: torch.device) -> None:
        taken = _stack([split.taken_pairs for split in splits])
        self._free = count_free(1, taken.size(-1), splits[0].num_nodes)
        self._before = free_before(taken).to(device)
        self._first_row = _first_rows(splits).to(device)
        self._runs = tuple(taken.shape[:-1])

        def pairs(part: str) -> Tensor:
            ascending = [decode_pairs(encode_pairs(getattr(split, part)).sort(stable=True).values) for split in splits]
            return _stack(ascending, dim=1).to(device) + self._first_row

        self._num_rows = len(splits) * splits[0].num_nodes
        self.links = pairs("train_links")
        self._link_pattern = self._pattern(self.links)
        self.prior = torch.full((2,), 0.5, device=device)
        self.val = self._examples(pairs("val_links"), pairs("val_nonlinks"))
        self.test = self._examples(pairs("test_links"), pairs("test_nonlinks"))

    @property
    def num_examples(self) -> int:
        return self.links.size(-1)

    def batch(self, places: Tensor, random: torch.Generator) -> ListedExamples:
        rank = torch.randint(self._free, (len(places),), generator=random).sort().values
        pairs = [self.links[:, places.to(self.links.device)].cpu(), nth_free(rank, self._before.cpu())]
        return ListedExamples(torch.cat(pairs, dim=1), (torch.arange(2 * len(places)) < len(places)).long())

    def train(self, noise: Noise) -> PairExamples:
        rank = noise.ascending_integers(self._free, self.links.size(-1))
        if kernels.usable(rank):
            nonlinks = self._free_pattern(rank)
        else:
            nonlinks = self._pattern(nth_free(rank.view(self.links.shape[1:]), self._before) + self._first_row)
        return PairExamples(self._link_pattern, nonlinks, self._runs)

    def log_probabilities(self, head: nn.Module, rows: Rows) -> Tensor:
        logit = self._logits(head, rows)
        return torch.stack([F.logsigmoid(-logit), F.logsigmoid(logit)], dim=-1)

    def loss(self, head: nn.Module, rows: Rows) -> Tensor:
        pairs = rows.examples
        if isinstance(pairs, PairExamples) and kernels.usable(rows.z, *head.parameters()):
            if type(head) is Bilinear:
                return bilinear_loss(rows.z, head.phi(), head.bias, pairs.links, pairs.nonlinks)
            if type(head) is FermiDirac:
                return distance_loss(rows.z, head, pairs.links, pairs.nonlinks)
        logit = self._logits(head, rows)
        if isinstance(pairs, PairExamples) and kernels.usable(logit):
            return logistic_loss(logit, pairs.links.col.numel() // math.prod(self._runs))
        return cross_entropy(torch.stack([F.logsigmoid(-logit), F.logsigmoid(logit)], dim=-1), rows.examples.y)

    def _logits(self, head: nn.Module, rows: Rows) -> Tensor:
        if type(head) is Bilinear and isinstance(rows.examples, PairExamples):
            return head.at(rows.z, (rows.examples.links, rows.examples.nonlinks))
        if in_blocks(head, rows.examples.index):
            return score_in_blocks(head, rows.z, rows.examples.index)
        logit: Tensor = head(*rows.gathered)
        return logit

    def _examples(self, links: Tensor, nonlinks: Tensor) -> PairExamples:
        return PairExamples(self._pattern(links), self._pattern(nonlinks), self._runs)

    def _pattern(self, pairs: Tensor) -> Pattern:
        """The sparse pattern of pairs in ascending order of their codes, and so of their second ends."""
        return Pattern.from_rows(pairs[1].flatten(), pairs[0].flatten(), (self._num_rows, self._num_rows))

    def _free_pattern(self, rank: Tensor) -> Pattern:
        """The sparse pattern of the pairs whose codes are the free codes of ascending ranks, (runs, n)."""
        kind = self._link_pattern.col.dtype
        row, col = torch.empty_like(rank, dtype=kind), torch.empty_like(rank, dtype=kind)
        arrays = (x.view(len(rank), -1).numpy() for x in (rank, self._before, row, col))
        for run, of_run in enumerate(zip(*arrays, strict=True)):
            ranks, before, rows, cols = of_run
            first_row = run * self._num_rows // len(rank)
            arguments = ranks, before, first_row, rows, cols
            kernels.compiling.over(len(ranks), len(ranks), kernels.sparse.nth_free, *arguments)
        return Pattern.from_rows(row.flatten(), col.flatten(), (self._num_rows, self._num_rows))


class NodeClasses:
    """The class of a node: the labels of the graph or a node attribute.

    Args:
        name: "labels" or a node attribute.
        graph: The graph.
        splits: The split of each run.
        train_nodes: The nodes to train on; those of unknown class are excluded.
        device: The device.
    """

    def __init__(
        self,
        name: str,
        graph: Data,
        splits: Sequence[Split],
        train_nodes: Callable[[Split], Tensor],
        device: torch.device,
    ) -> None:
        self.target = Target.of(name)
        y = node_classes(graph, name).cpu()
        self.num_classes = int(y.max()) + 1
        first_row = _first_rows(splits)

        def known(part_name: str, part: Callable[[Split], Tensor]) -> Examples:
            nodes = [part(split)[y[part(split)] != UNKNOWN] for split in splits]
            if any(len(part) == 0 for part in nodes):
                raise GraphveilError(f"{name!r} is known for none of the {part_name} nodes: add values.")
            index = _stack(nodes)
            return ListedExamples((index + first_row).to(device), y[index].to(device))

        self.train_examples = known("training", train_nodes)
        self.val = known("validation", lambda split: split.val_nodes)
        self.test = known("test", lambda split: split.test_nodes)
        self.prior = _class_shares(self.train_examples.y, self.num_classes)
        if self.num_classes < 2 or bool(((self.prior > 0).sum(dim=-1) < 2).any()):
            raise GraphveilError(f"{name!r} has only one class among the training nodes: a target needs at least two.")

    @property
    def num_examples(self) -> int:
        return self.train_examples.y.size(-1)

    def train(self, noise: Noise) -> Examples:  # noqa: ARG002 - the same nodes in every round
        return self.train_examples

    def batch(self, places: Tensor, random: torch.Generator) -> ListedExamples:  # noqa: ARG002 - nothing is drawn
        return some_of(self.train_examples, places)

    def log_probabilities(self, head: nn.Module, rows: Rows) -> Tensor:
        return F.log_softmax(head(*rows.gathered), dim=-1)

    def loss(self, head: nn.Module, rows: Rows) -> Tensor:
        return cross_entropy(self.log_probabilities(head, rows), rows.examples.y)


def utility_target(name: str, graph: Data, splits: Sequence[Split], device: torch.device) -> LearnedTarget:
    """Return the target to keep, which is learned from the training parts of the splits."""
    if not Target.of(name).is_links:
        return class_utility(name, graph, splits, device)
    if any(split.message_edges != "train" for split in splits):
        raise GraphveilError(
            "links are the utility, but this split passes messages along validation and test links:"
            ' use message_edges="train".'
        )
    return Links(splits, device)


def class_utility(name: str, graph: Data, splits: Sequence[Split], device: torch.device) -> NodeClasses:
    """Return a class to keep."""
    return NodeClasses(name, graph, splits, lambda split: split.train_nodes, device)


def secret_target(
    name: str, graph: Data, splits: Sequence[Split], knows: Knowledge, device: torch.device
) -> LearnedTarget:
    """Return a target to hide, which the adversary learns from the nodes or links that the defender may use."""
    if Target.of(name).is_links:
        return Links(splits, device)
    return class_secret(name, graph, splits, knows, device)


def class_secret(
    name: str, graph: Data, splits: Sequence[Split], knows: Knowledge, device: torch.device
) -> NodeClasses:
    """Return a class to hide."""
    return NodeClasses(name, graph, splits, lambda split: split.defender_nodes(knows), device)


def some_of(examples: Examples, places: Tensor) -> ListedExamples:
    """Return some of the examples of a single run, on the CPU."""
    places = places.to(examples.y.device)
    return ListedExamples(examples.index[places].cpu(), examples.y[places].cpu())


def evaluate(learned: LearnedTarget, head: nn.Module, z: Tensor, examples: Examples) -> Tensor:
    """Return the AUC or accuracy of a head on examples, (...); NaN if z is not finite.

    Args:
        learned: The target.
        head: The head.
        z: (..., nodes, channels).
        examples: The examples.
    """
    return metric_value(learned, log_probs(learned, head, z, examples), examples.y)


def log_probs(learned: LearnedTarget, head: nn.Module, z: Tensor, examples: Examples) -> Tensor:
    """Return log q(class | z) of each example, (..., n, classes), without gradients and without dropout."""
    was_training = head.training
    head.eval()
    with torch.no_grad():
        log_q = learned.log_probabilities(head, Rows(z, examples))
    head.train(was_training)
    return log_q


def metric_value(learned: LearnedTarget, scores: Tensor, y: Tensor) -> Tensor:
    """Return the AUC or accuracy, (...); NaN if a score is not finite.

    Args:
        learned: The target, which defines the metric.
        scores: A score for each class, (..., n, classes).
        y: The true classes, (..., n).
    """
    if learned.target.is_links:
        value = auc(scores[..., 1] - scores[..., 0], y)
    else:
        value = (scores.argmax(dim=-1) == y).double().mean(dim=-1)
    return value.where(scores.isfinite().all(dim=-1).all(dim=-1), torch.nan)


def auc(score: Tensor, y: Tensor) -> Tensor:
    """Return the AUC, (...): the share of (link, non-link) pairs in the right order, where ties count half.

    Args:
        score: (..., n).
        y: 1 for links and 0 for non-links, (..., n).
    """
    ascending = score.sort(dim=-1).values
    before, until = (torch.searchsorted(ascending, score.contiguous(), right=right) for right in (False, True))
    rank = (before + until + 1).double() / 2
    links = y.sum(dim=-1).double()
    beaten = (rank * y).sum(dim=-1) - links * (links + 1) / 2
    return beaten / (links * (y.size(-1) - links))


def chance_level(learned: LearnedTarget, examples: Examples) -> Tensor:
    """Return the chance level, (...): an AUC of 0.5, or the share of the largest class."""
    if learned.target.is_links:
        return torch.full(examples.y.shape[:-1], CHANCE_AUC, dtype=torch.float64, device=examples.y.device)
    return _class_shares(examples.y, learned.num_classes).double().amax(dim=-1)


def _class_shares(y: Tensor, num_classes: int) -> Tensor:
    return torch.stack([(y == c).float().mean(dim=-1) for c in range(num_classes)], dim=-1)


def _stack(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Stack the parts of a batch along a dimension of runs; a single part is returned unchanged."""
    return parts[0] if len(parts) == 1 else torch.stack(list(parts), dim)


def _first_rows(splits: Sequence[Split]) -> Tensor:
    """The first row of each run in the stacked embeddings: 0, or (runs, 1)."""
    if len(splits) == 1:
        return torch.zeros((), dtype=torch.long)
    return torch.arange(len(splits))[:, None] * splits[0].num_nodes
