"""The known secrets of an attacker and the queries to it, taken from the split.

A node secret is known for 20 nodes per class (*few*) or for all nodes outside the test part (*all*). A link secret is
known for the training links. Attacks are tuned and compared on a validation part, and scored on the test part. The
validation part of a node secret is by cross-validation over all known nodes. That of a link secret is the validation
part of the split, because links that messages passed along can be easier to predict. Parts larger than the limits below
are sampled, and the audit states it. For a link secret, the links of the graph are read in place, block by block, so
that the memory of an audit does not grow with their number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from graphveil.auditing.metrics import Integers
from graphveil.data import UNKNOWN, Split, node_classes
from graphveil.data.graph import decode_pairs, encode_pairs, sorted_codes, undirected_pairs
from graphveil.data.origin import class_names
from graphveil.data.splits.nonlinks import TakenPairs
from graphveil.data.splits.split import Knowledge
from graphveil.errors import GraphveilError
from graphveil.formats.audit import Sample
from graphveil.randomness import generator, stream
from graphveil.target import CHANCE_AUC, LABELS, LINKS, Target

MAX_KNOWN = 40_000
"""Nodes or links that an attack learns from at most."""
MAX_QUERIES = 20_000
"""Queried nodes at most; of pairs, links at most and non-links at most."""
FEW = 20
"""Known nodes per class of an attacker who knows few secrets."""
FOLDS = 4
"""Folds of the known nodes."""
MAX_KNOWN_QUICK = 10_000
"""Nodes that the quick panel learns from at most."""
MIN_VALIDATION = 8_000
"""Once the folds that are held out have this many nodes, no further fold is held out."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Nodes or pairs, and their classes.

    Args:
        index: nodes, (n,), or pairs, (2, n).
        y: classes, (n,); of pairs, 1 for a link and 0 for a non-link.
    """

    index: Integers
    y: Integers

    def concat(self, other: "Queries") -> "Queries":
        """These queries, followed by others."""
        return Queries(np.concatenate([self.index, other.index], axis=-1), np.concatenate([self.y, other.y]))


@dataclass(frozen=True, eq=False)
class NodeSecret:
    """A secret class of every node.

    Args:
        name: the name of the secret.
        num_nodes: the number of nodes of the graph.
        num_classes: the number of classes of the secret.
        known: the known nodes of an attacker who knows few secrets, and of one who knows all.
        fold: the stratified fold of each node of `known["all"]`, from 0 to `FOLDS` - 1.
        val_folds: the number of folds that are held out, one at a time, for validation.
        test: the queried nodes.
        links: the public graph, (2, links).
        class_names: the names of the classes 0, 1, ...
        samples: how many examples of each part are used, of how many.
    """

    name: str
    num_nodes: int
    num_classes: int
    known: dict[Knowledge, Queries]
    fold: Integers
    val_folds: int
    test: Queries
    links: Integers
    class_names: Sequence[str]
    samples: tuple[Sample, ...] = ()

    @property
    def target(self) -> Target:
        """The target that is attacked."""
        return Target.of(self.name)

    @property
    def chance(self) -> float:
        """The chance level: the share of the most frequent class among all nodes.

        Its share among the test nodes would be as uncertain as the accuracy of an attack, and the interval of that
        accuracy would miss it far more often than in 5 % of cases.
        """
        every = np.concatenate([self.known["all"].y, self.test.y])
        return float(np.bincount(every).max() / len(every))

    def quick(self) -> "NodeSecret":
        """The same secret for the quick panel: with fewer known nodes, and one fold held out."""
        every = self.known["all"]
        chosen = np.arange(len(every.y))
        if len(every.y) > MAX_KNOWN_QUICK:
            chosen = np.sort(np.random.default_rng(0).permutation(chosen)[:MAX_KNOWN_QUICK])
        known = self.known | {"all": Queries(every.index[chosen], every.y[chosen])}
        return replace(self, known=known, fold=self.fold[chosen], val_folds=1)

    @cached_property
    def held_out(self) -> list[tuple[Queries, Queries]]:
        """For each validation fold: the nodes to learn from, and the nodes that are held out."""
        every = self.known["all"]

        def part(chosen: NDArray[np.bool_]) -> Queries:
            return Queries(every.index[chosen], every.y[chosen])

        return [(part(self.fold != number), part(self.fold == number)) for number in range(self.val_folds)]

    @cached_property
    def val(self) -> Queries:
        """The validation part: all held-out nodes, fold by fold."""
        return reduce(Queries.concat, (held for _, held in self.held_out))


@dataclass(frozen=True, eq=False)
class Matched:
    """Class-matched pairs: links, and non-links between nodes of the same two classes.

    Args:
        known: the pairs to learn from.
        val: the pairs to tune on.
        test: the pairs to be scored on.
    """

    known: Queries
    val: Queries
    test: Queries


@dataclass(frozen=True, eq=False)
class LinkSecret:
    """Whether two nodes are linked.

    Args:
        num_nodes: the number of nodes of the graph.
        known: pairs to learn from, as many non-links as links.
        val: pairs to tune on.
        test: the queried pairs.
        matched: the class-matched pairs of the same three parts; None if too few classes are known.
        classes: (num_nodes,), the classes of the utility or else the labels, -1 where unknown; None without any.
        labels: nodes whose class an attacker knows, to learn from and to tune on.
        samples: how many examples of each part are used, of how many.
    """

    num_nodes: int
    known: Queries
    val: Queries
    test: Queries
    matched: "Matched | None"
    classes: Integers | None
    labels: tuple[Queries, Queries] | None
    samples: tuple[Sample, ...] = ()
    target: Target = field(default=Target.of(LINKS), init=False)
    name: str = field(default=LINKS, init=False)
    num_classes: int = field(default=2, init=False)
    chance: float = field(default=CHANCE_AUC, init=False)
    class_names: Sequence[str] = field(default=("no link", "link"), init=False)


Secret = NodeSecret | LinkSecret


def node_secret(graph: Data, split: Split, name: str, seed: int) -> NodeSecret:
    """Take the known nodes and the queries of a node secret from the split; unknown values are left out.

    Args:
        graph: the graph with the attribute.
        split: the split whose test nodes are queried.
        name: "labels" or the name of a node attribute.
        seed: the seed of the samples and the folds.
    """
    y = node_classes(graph, name).cpu().numpy()
    samples: list[Sample] = []

    def part(role: str, nodes: torch.Tensor, limit: int) -> Queries:
        index = nodes.cpu().numpy()
        index = index[y[index] != UNKNOWN]
        if len(index) == 0:
            where = "in" if role == "test" else "outside"
            raise GraphveilError(f"{name!r} has no value {where} the test part: fill in more values.")
        index = _sample(index, limit, f"{role} nodes", samples, seed)
        return Queries(index, y[index])

    test = part("test", split.test_nodes, MAX_QUERIES)
    every = torch.arange(len(y))
    known = part("known", every[~torch.isin(every, split.test_nodes)], MAX_KNOWN)
    if len(np.unique(known.y)) < 2:
        raise GraphveilError(f"{name!r} has only one class among the known nodes: expected at least two classes.")
    few = _few(part("training", split.train_nodes, MAX_KNOWN) if name == LABELS else known, seed)
    return NodeSecret(
        name=name,
        num_nodes=len(y),
        num_classes=int(y.max()) + 1,
        known={"few": few, "all": known},
        fold=stratified(known.y, FOLDS, stream(seed, "audit", "folds")),
        val_folds=min(FOLDS, math.ceil(FOLDS * MIN_VALIDATION / len(known.y))),
        test=test,
        links=undirected_pairs(graph.edge_index.cpu()).numpy(),
        class_names=class_names(graph, name, int(y.max()) + 1),
        samples=tuple(samples),
    )


def link_secret(graph: Data, split: Split, seed: int, classes: str = "labels") -> LinkSecret:
    """Take the known pairs and the queries of a link secret from the split, as many non-links as links in each part.

    Args:
        graph: the graph with the classes.
        split: the split whose test links are queried.
        seed: the seed of the samples and the non-links.
        classes: the node attribute of class-matched pairs and of the floor.
    """
    samples: list[Sample] = []

    def part(name: str, limit: int) -> Integers:
        return _sample(getattr(split, name).numpy(), limit, name.replace("_", " "), samples, seed)

    links = part("train_links", MAX_KNOWN)
    every = undirected_pairs(graph.edge_index.cpu())
    taken = TakenPairs(every, sorted_codes([split.val_nonlinks, split.test_nonlinks]))
    nonlinks = taken.draw_nonlinks(links.shape[1], split.num_nodes, generator(seed, "audit", "non-links"))
    known = _pairs(links, nonlinks.numpy())
    val, test = (
        _pairs(part(f"{name}_links", MAX_QUERIES), part(f"{name}_nonlinks", MAX_QUERIES)) for name in ("val", "test")
    )
    y = matching_classes(graph, classes)
    return LinkSecret(
        num_nodes=split.num_nodes,
        known=known,
        val=val,
        test=test,
        matched=None if y is None else _matched(known, val, test, y, taken.including(nonlinks), samples, seed),
        classes=y,
        labels=None if y is None else _known_labels(split, y, samples, seed),
        samples=tuple(samples),
    )


def matching_classes(graph: Data, name: str) -> Integers | None:
    """The classes that links are matched by, (num_nodes,), -1 where unknown; None if the graph does not have them."""
    return node_classes(graph, name).cpu().numpy() if Target.of(name).key in graph else None


def _matched(
    known: Queries, val: Queries, test: Queries, y: Integers, taken: TakenPairs, samples: list[Sample], seed: int
) -> Matched | None:
    """The class-matched pairs of all three parts; no pair is in two of them."""
    parts = []
    for name, queries in (("test", test), ("val", val), ("known", known)):
        every = queries.index[:, queries.y == 1]
        links = every[:, :MAX_QUERIES]
        matched = class_matched(links, y, taken, stream(seed, "audit", "class-matched", name))
        if matched is None:
            return None
        parts.append(matched)
        samples.append(Sample(f"{name} links, class-matched", int(matched.y.sum()), every.shape[1]))
        taken = taken.including(torch.from_numpy(matched.index[:, matched.y == 0]))
    return Matched(test=parts[0], val=parts[1], known=parts[2])


def class_matched(links: Integers, y: Integers, taken: TakenPairs, seed: int) -> Queries | None:
    """Draw for each link a non-link between nodes of the same two classes, so that classes alone reveal nothing.

    Links with an unknown class are left out, and so are links for which 50 draws found no free non-link.

    Args:
        links: (2, links).
        y: (num_nodes,), classes, -1 where unknown.
        taken: the pairs that must not be drawn.
        seed: the seed of the draws.

    Returns:
        Links and as many non-links; None if no link is left.
    """
    links = links[:, (y[links] != UNKNOWN).all(axis=0)]
    by_class = np.argsort(y, kind="stable")
    first, size = np.searchsorted(y[by_class], np.arange(y.max() + 1)), np.bincount(y[y != UNKNOWN])
    random = np.random.default_rng(seed)
    nonlinks = np.full(links.shape, -1)
    used = np.empty(0, dtype=np.int64)
    pending = np.arange(links.shape[1])
    for _ in range(50):
        classes = y[links[:, pending]]
        drawn = by_class[first[classes] + (random.random(classes.shape) * size[classes]).astype(np.int64)]
        low, high = drawn.min(axis=0), drawn.max(axis=0)
        codes = encode_pairs(torch.from_numpy(np.stack([low, high])))
        free = (low != high) & ~taken.contain(codes).numpy() & ~np.isin(codes.numpy(), used)
        _, first_draw = np.unique(codes.numpy(), return_index=True)
        accepted = np.intersect1d(np.flatnonzero(free), first_draw)
        nonlinks[:, pending[accepted]] = decode_pairs(codes[accepted]).numpy()
        used = np.concatenate([used, codes.numpy()[accepted]])
        pending = np.delete(pending, accepted)
        if len(pending) == 0:
            break
    kept = nonlinks[0] >= 0
    if not kept.any():
        return None
    return _pairs(links[:, kept], nonlinks[:, kept])


def _pairs(links: Integers, nonlinks: Integers) -> Queries:
    return Queries(np.concatenate([links, nonlinks], axis=1), np.repeat([1, 0], [links.shape[1], nonlinks.shape[1]]))


def _known_labels(split: Split, y: Integers, samples: list[Sample], seed: int) -> tuple[Queries, Queries] | None:
    """Nodes whose class is known, to learn from and to tune on."""
    parts = []
    for nodes, limit in ((split.defender_nodes("all"), MAX_KNOWN), (split.val_nodes, MAX_QUERIES)):
        index = nodes.numpy()[y[nodes.numpy()] != UNKNOWN]
        index = _sample(index, limit, "known labels", samples, seed)
        parts.append(Queries(index, y[index]))
    train, val = parts
    return (train, val) if len(np.unique(train.y)) > 1 and len(val.y) else None


def stratified(y: Integers, count: int, seed: int) -> Integers:
    """Draw stratified folds: a number below `count` for each example, (n,)."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(order), dtype=np.int64)
    fold[order] = np.arange(len(order)) % count
    return fold


def _few(known: Queries, seed: int) -> Queries:
    """`FEW` nodes per class, or as many as a class has."""
    order = np.random.default_rng(stream(seed, "audit", "few")).permutation(len(known.y))
    chosen = np.concatenate([order[known.y[order] == c][:FEW] for c in np.unique(known.y)])
    return Queries(known.index[chosen], known.y[chosen])


def _sample(index: Integers, limit: int, what: str, samples: list[Sample], seed: int) -> Integers:
    """Sample at most `limit` entries of the last dimension, and add to `samples` how many are used."""
    count = index.shape[-1]
    samples.append(Sample(what, min(limit, count), count))
    if count <= limit:
        return index
    chosen = np.random.default_rng(stream(seed, "audit", what)).choice(count, limit, replace=False)
    return index[..., np.sort(chosen)]
