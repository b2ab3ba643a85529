"""The one idea: predict a target from embeddings.

The utility head, the training adversary and every attack do the same act on the same noun. A `Target` says where its
examples come from, how a head reads them, and how a reading is scored. Both of the paper's problems, and any node
attribute as a secret, are then two targets and a trade-off.

A target is of one run, or of a batch of runs on one graph, each with its own split. Then every tensor has a leading
dimension of runs, and node numbers count on from run to run, as the rows of the stacked embeddings do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch_geometric.data import Data

from graphveil.data import UNKNOWN, Split, node_classes
from graphveil.data.graph import decode_pairs, encode_pairs
from graphveil.data.splits.nonlinks import count_free, free_before, nth_free
from graphveil.data.splits.split import Knowledge
from graphveil.errors import GraphveilError
from graphveil.models.blocks import ends, in_blocks, score_in_blocks
from graphveil.models.heads import Bilinear
from graphveil.models.sparse import Pattern
from graphveil.randomness import Noise


@dataclass(frozen=True, eq=False)
class Examples:
    """What is asked and its answer: nodes (..., n) or pairs (2, ..., n), and their classes (..., n)."""

    index: Tensor
    y: Tensor


@dataclass(frozen=True, eq=False)
class PairExamples(Examples):
    """Pairs, links first, in ascending order of their codes within links and non-links."""

    links: Pattern
    nonlinks: Pattern


@dataclass(frozen=True, eq=False)
class Rows:
    """What a head reads: embeddings at nodes, or at both ends of pairs, gathered when first asked for.

    Args:
        z: (..., nodes, channels).
    """

    z: Tensor
    examples: Examples

    @cached_property
    def gathered(self) -> tuple[Tensor, ...]:
        """The rows of z at the nodes, or at either end of the pairs, each (..., n, channels)."""
        index = self.examples.index
        return ends(self.z, index if index.dim() > self.examples.y.dim() else index[None])


class Target(Protocol):
    """Something that embeddings may or may not tell.

    Attributes:
        name: "links", "labels" or a node attribute.
        metric: "auc" or "accuracy", both in [0, 1].
        num_classes: how many answers there are.
        prior: the share of each class among the training examples, (..., classes).
        val, test: the held-out examples.
    """

    name: str
    metric: Literal["auc", "accuracy"]
    num_classes: int
    prior: Tensor
    val: Examples
    test: Examples

    def train(self, noise: Noise) -> Examples:
        """The examples of one round."""

    def log_probabilities(self, head: nn.Module, rows: Rows) -> Tensor:
        """log q(class | z) of each example, (..., n, classes)."""


class Links:
    """Is there a link between two nodes? As many fresh non-links as links in every round."""

    name = "links"
    metric: Literal["auc", "accuracy"] = "auc"
    num_classes = 2
    val: Examples
    test: Examples

    def __init__(self, splits: Sequence[Split], device: torch.device) -> None:
        taken = _stack([split.taken_pairs for split in splits])
        self._free = count_free(1, taken.size(-1), splits[0].num_nodes)
        self._before = free_before(taken).to(device)
        self._first_row = _first_rows(splits).to(device)

        def pairs(part: str) -> Tensor:
            ascending = [decode_pairs(encode_pairs(getattr(split, part)).sort(stable=True).values) for split in splits]
            return _stack(ascending, dim=1).to(device) + self._first_row

        self._num_rows = len(splits) * splits[0].num_nodes
        self.links = pairs("train_links")
        self._link_pattern = self._pattern(self.links)
        self.prior = torch.full((2,), 0.5, device=device)
        self.val = self._examples(pairs("val_links"), pairs("val_nonlinks"))
        self.test = self._examples(pairs("test_links"), pairs("test_nonlinks"))

    def train(self, noise: Noise) -> Examples:
        rank = noise.ascending_integers(self._free, self.links.size(-1))
        nonlinks = nth_free(rank.view(self.links.shape[1:]), self._before) + self._first_row
        return self._examples(self.links, nonlinks, self._link_pattern)

    def sampled_links(self, noise: Noise, at_most: int) -> tuple[Tensor, Pattern]:
        """The training links, (2, ..., n), and their pattern among all pairs; of more than `at_most` a fresh sample."""
        count = self.links.size(-1)
        if count <= at_most:
            return self.links, self._link_pattern
        drawn = noise.ascending_integers(count, at_most).view(*self.links.shape[1:-1], at_most)
        links = self.links.gather(-1, drawn.expand(2, *drawn.shape))
        return links, self._pattern(links)

    def log_probabilities(self, head: nn.Module, rows: Rows) -> Tensor:
        if type(head) is Bilinear and isinstance(rows.examples, PairExamples):
            logit = head.at(rows.z, (rows.examples.links, rows.examples.nonlinks))
        elif in_blocks(head, rows.examples.index):
            logit = score_in_blocks(head, rows.z, rows.examples.index)
        else:
            logit = head(*rows.gathered)
        return torch.stack([F.logsigmoid(-logit), F.logsigmoid(logit)], dim=-1)

    def _examples(self, links: Tensor, nonlinks: Tensor, link_pattern: Pattern | None = None) -> PairExamples:
        ones, zeros = links.new_ones(links.shape[1:]), nonlinks.new_zeros(nonlinks.shape[1:])
        return PairExamples(
            index=torch.cat([links, nonlinks], dim=-1),
            y=torch.cat([ones, zeros], dim=-1),
            links=link_pattern or self._pattern(links),
            nonlinks=self._pattern(nonlinks),
        )

    def _pattern(self, pairs: Tensor) -> Pattern:
        """Pairs in ascending order of their codes are in the order of their second ends."""
        return Pattern.from_rows(pairs[1].flatten(), pairs[0].flatten(), (self._num_rows, self._num_rows))


class NodeClasses:
    """Which class does a node have? The classes are the graph's labels or any node attribute.

    Args:
        train_nodes: the nodes whose class may be learned from; unknown ones are left out.
    """

    metric: Literal["auc", "accuracy"] = "accuracy"

    def __init__(
        self,
        name: str,
        graph: Data,
        splits: Sequence[Split],
        train_nodes: Callable[[Split], Tensor],
        device: torch.device,
    ) -> None:
        self.name = name
        y = node_classes(graph, name).cpu()
        self.num_classes = int(y.max()) + 1
        first_row = _first_rows(splits)

        def known(verb: str, part: Callable[[Split], Tensor]) -> Examples:
            nodes = [part(split)[y[part(split)] != UNKNOWN] for split in splits]
            if any(len(part) == 0 for part in nodes):
                raise GraphveilError(f"{name!r} is known for none of the nodes to {verb} on: fill in more values.")
            index = _stack(nodes)
            return Examples((index + first_row).to(device), y[index].to(device))

        self.train_examples = known("train", train_nodes)
        self.val = known("validate", lambda split: split.val_nodes)
        self.test = known("test", lambda split: split.test_nodes)
        self.prior = _class_shares(self.train_examples.y, self.num_classes)
        if self.num_classes < 2 or bool(((self.prior > 0).sum(dim=-1) < 2).any()):
            raise GraphveilError(f"{name!r} has one class only among the nodes to train on: nothing can be learned.")

    def train(self, noise: Noise) -> Examples:  # noqa: ARG002 - the same nodes in every round
        return self.train_examples

    def log_probabilities(self, head: nn.Module, rows: Rows) -> Tensor:
        return F.log_softmax(head(*rows.gathered), dim=-1)


def utility_target(name: str, graph: Data, splits: Sequence[Split], device: torch.device) -> Target:
    """The target to keep: learned from the splits' training parts."""
    if name != "links":
        return class_utility(name, graph, splits, device)
    if any(split.message_edges != "train" for split in splits):
        raise GraphveilError(
            "links are the utility, but this split passes messages along the links it is scored on:"
            ' use message_edges="train".'
        )
    return Links(splits, device)


def class_utility(name: str, graph: Data, splits: Sequence[Split], device: torch.device) -> NodeClasses:
    """A class to keep."""
    return NodeClasses(name, graph, splits, lambda split: split.train_nodes, device)


def secret_target(name: str, graph: Data, splits: Sequence[Split], knows: Knowledge, device: torch.device) -> Target:
    """The target to hide: the adversary learns it from what the defender may use."""
    if name == "links":
        return Links(splits, device)
    return class_secret(name, graph, splits, knows, device)


def class_secret(
    name: str, graph: Data, splits: Sequence[Split], knows: Knowledge, device: torch.device
) -> NodeClasses:
    """A class to hide."""
    return NodeClasses(name, graph, splits, lambda split: split.defender_nodes(knows), device)


def reading(target: Target, head: nn.Module, z: Tensor, examples: Examples) -> Tensor:
    """How well a head reads the target from z: AUC or accuracy, (...); NaN where z is not finite."""
    return judged(target, answers(target, head, z, examples), examples.y)


def answers(target: Target, head: nn.Module, z: Tensor, examples: Examples) -> Tensor:
    """log q(class | z) of each example, (..., n, classes), without gradients and without dropout."""
    was_training = head.training
    head.eval()
    with torch.no_grad():
        log_q = target.log_probabilities(head, Rows(z, examples))
    head.train(was_training)
    return log_q


def judged(target: Target, scores: Tensor, y: Tensor) -> Tensor:
    """AUC or accuracy, (...), of a score for each class, (..., n, classes); NaN where one is not finite."""
    if target.metric == "auc":
        value = auc(scores[..., 1] - scores[..., 0], y)
    else:
        value = (scores.argmax(dim=-1) == y).double().mean(dim=-1)
    return value.where(scores.isfinite().all(dim=-1).all(dim=-1), torch.nan)


def auc(score: Tensor, y: Tensor) -> Tensor:
    """The share of (link, non-link) pairs in the right order, ties counted half, (...) from two (..., n)."""
    ascending = score.sort(dim=-1).values
    before, until = (torch.searchsorted(ascending, score.contiguous(), right=right) for right in (False, True))
    rank = (before + until + 1).double() / 2
    links = y.sum(dim=-1).double()
    beaten = (rank * y).sum(dim=-1) - links * (links + 1) / 2
    return beaten / (links * (y.size(-1) - links))


def guessing(target: Target, examples: Examples) -> Tensor:
    """What guessing without looking reads: .5 AUC, or the share of the largest class, (...)."""
    if target.metric == "auc":
        return torch.full(examples.y.shape[:-1], 0.5, dtype=torch.float64, device=examples.y.device)
    return _class_shares(examples.y, target.num_classes).double().amax(dim=-1)


def _class_shares(y: Tensor, num_classes: int) -> Tensor:
    return torch.stack([(y == c).float().mean(dim=-1) for c in range(num_classes)], dim=-1)


def _stack(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The parts of a batch along a dimension of runs; a single one is given back as it is."""
    return parts[0] if len(parts) == 1 else torch.stack(list(parts), dim)


def _first_rows(splits: Sequence[Split]) -> Tensor:
    """Where each run's nodes begin in the stacked embeddings: 0, or (runs, 1)."""
    if len(splits) == 1:
        return torch.zeros((), dtype=torch.long)
    return torch.arange(len(splits))[:, None] * splits[0].num_nodes
