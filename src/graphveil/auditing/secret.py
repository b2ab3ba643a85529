"""What an attacker knows and what it is asked, taken from the split once and never built inline.

A node secret is known for 20 nodes a class (*few*) or for every node outside the test part (*all*). A link secret is
known for the training links. Attacks are tuned and compared on known examples that they did not learn from, and scored
on the test part. Of nodes this is cross-validation over all that an attacker may know. Of links it is the split's own
validation part, since links that messages passed along may be easier to tell. Beyond the sizes below a seeded sample is
taken, and the audit says so.
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
from graphveil.data.graph import decode_pairs, encode_pairs, undirected_pairs
from graphveil.data.origin import class_names
from graphveil.data.splits.nonlinks import distinct_nonlinks
from graphveil.data.splits.split import Knowledge
from graphveil.errors import GraphveilError
from graphveil.randomness import generator, stream

MAX_KNOWN = 40_000
"""Nodes, or links, that an attack learns from at most."""
MAX_QUERIES = 20_000
"""Nodes, or links, that an attack is asked about at most; as many non-links."""
FEW = 20
FOLDS = 4
"""Parts of the known nodes; each is in turn what attacks are compared on."""
QUICK = 10_000
"""Nodes that a quick look learns from at most."""
ENOUGH = 8_000
"""Nodes that are enough to compare attacks on: where a part of the folds has so many, no more are held out."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Nodes (n,) or pairs (2, n), and their classes (n,)."""

    index: Integers
    y: Integers

    def concat(self, other: "Queries") -> "Queries":
        """Both together."""
        return Queries(np.concatenate([self.index, other.index], axis=-1), np.concatenate([self.y, other.y]))


@dataclass(frozen=True, eq=False)
class NodeSecret:
    """A class of every node.

    Args:
        known: what an attacker of either knowledge may learn from.
        fold: which of `FOLDS` parts each node of `known["all"]` is in; every part has its share of each class.
        compared: folds that attacks are compared on: each is in turn held out, and the others are learned from.
        links: the public graph, (2, links).
    """

    name: str
    num_nodes: int
    num_classes: int
    known: dict[Knowledge, Queries]
    fold: Integers
    compared: int
    test: Queries
    links: Integers
    class_names: Sequence[str]
    notes: tuple[str, ...] = ()

    @property
    def chance(self) -> float:
        """The accuracy to be expected of naming the most frequent class: its share among all nodes.

        Its share among the test nodes would be a number as uncertain as an attack's reading, and an interval of that
        reading would miss it far more often than once in twenty.
        """
        every = np.concatenate([self.known["all"].y, self.test.y])
        return float(np.bincount(every).max() / len(every))

    def quick(self) -> "NodeSecret":
        """The same for a quick look: fewer nodes are known, and one fold is enough."""
        every = self.known["all"]
        chosen = np.arange(len(every.y))
        if len(every.y) > QUICK:
            chosen = np.sort(np.random.default_rng(0).permutation(chosen)[:QUICK])
        known = self.known | {"all": Queries(every.index[chosen], every.y[chosen])}
        return replace(self, known=known, fold=self.fold[chosen], compared=1)

    @cached_property
    def held_out(self) -> list[tuple[Queries, Queries]]:
        """Of each fold that attacks are compared on: the nodes to learn from, and those held out."""
        every = self.known["all"]

        def part(chosen: NDArray[np.bool_]) -> Queries:
            return Queries(every.index[chosen], every.y[chosen])

        return [(part(self.fold != number), part(self.fold == number)) for number in range(self.compared)]

    @cached_property
    def val(self) -> Queries:
        """All nodes that are held out once, fold by fold."""
        return reduce(Queries.concat, (held for _, held in self.held_out))


@dataclass(frozen=True, eq=False)
class Matched:
    """Links beside non-links of the same two classes: to learn from, to tune on, to be scored on."""

    known: Queries
    val: Queries
    test: Queries


@dataclass(frozen=True, eq=False)
class LinkSecret:
    """Whether two nodes are linked.

    Args:
        matched: the same three parts where, for as many links as can be, each link stands beside a non-link between
            nodes of the same two classes; None where too few classes are known.
        classes: what the classes are: of the utility, if it has some, else the labels; -1 where unknown.
        labels: nodes whose class an attacker knows, to learn from and to tune on.
    """

    num_nodes: int
    known: Queries
    val: Queries
    test: Queries
    matched: "Matched | None"
    classes: Integers | None
    labels: tuple[Queries, Queries] | None
    notes: tuple[str, ...] = ()
    name: str = field(default="links", init=False)
    num_classes: int = field(default=2, init=False)
    chance: float = field(default=0.5, init=False)
    class_names: Sequence[str] = field(default=("no link", "link"), init=False)


Secret = NodeSecret | LinkSecret


def node_secret(graph: Data, split: Split, name: str, seed: int) -> NodeSecret:
    """The roles of a node attribute, unknown values left out."""
    y = node_classes(graph, name).cpu().numpy()
    notes: list[str] = []

    def part(what: str, nodes: torch.Tensor, limit: int) -> Queries:
        index = nodes.cpu().numpy()
        index = index[y[index] != UNKNOWN]
        if len(index) == 0:
            raise GraphveilError(f"{name!r} is known for none of the {what} nodes: fill in more values.")
        index = _sample(index, limit, f"{what} nodes", notes, seed)
        return Queries(index, y[index])

    test = part("test", split.test_nodes, MAX_QUERIES)
    every = torch.arange(len(y))
    known = part("known", every[~torch.isin(every, split.test_nodes)], MAX_KNOWN)
    if len(np.unique(known.y)) < 2:
        raise GraphveilError(f"{name!r} has one class only among the known nodes: there is nothing to tell apart.")
    few = _few(part("training", split.train_nodes, MAX_KNOWN) if name == "labels" else known, seed)
    return NodeSecret(
        name=name,
        num_nodes=len(y),
        num_classes=int(y.max()) + 1,
        known={"few": few, "all": known},
        fold=stratified(known.y, FOLDS, stream(seed, "audit", "folds")),
        compared=min(FOLDS, math.ceil(FOLDS * ENOUGH / len(known.y))),
        test=test,
        links=undirected_pairs(graph.edge_index.cpu()).numpy(),
        class_names=class_names(graph, name, int(y.max()) + 1),
        notes=tuple(notes),
    )


def link_secret(graph: Data, split: Split, seed: int, classes: str = "labels") -> LinkSecret:
    """The roles of the links, each part with as many non-links.

    Args:
        classes: the node attribute that links are matched by and the floor is taken from.
    """
    notes: list[str] = []

    def part(name: str, limit: int) -> Integers:
        return _sample(getattr(split, name).numpy(), limit, name.replace("_", " "), notes, seed)

    links = part("train_links", MAX_KNOWN)
    random = generator(seed, "audit", "non-links")
    nonlinks = distinct_nonlinks(links.shape[1], split.taken_pairs, split.num_nodes, random)
    known = _pairs(links, nonlinks.numpy())
    val, test = (
        _pairs(part(f"{name}_links", MAX_QUERIES), part(f"{name}_nonlinks", MAX_QUERIES)) for name in ("val", "test")
    )
    key = "y" if classes == "labels" else classes
    y = node_classes(graph, classes).cpu().numpy() if key in graph else None
    taken = torch.cat([split.taken_pairs, encode_pairs(nonlinks)]).sort(stable=True).values
    return LinkSecret(
        num_nodes=split.num_nodes,
        known=known,
        val=val,
        test=test,
        matched=None if y is None else _matched(known, val, test, y, taken, seed),
        classes=y,
        labels=None if y is None else _known_labels(split, y, notes, seed),
        notes=tuple(notes),
    )


def _matched(
    known: Queries, val: Queries, test: Queries, y: Integers, taken: torch.Tensor, seed: int
) -> Matched | None:
    """All three parts matched, no pair in two of them."""
    parts = []
    for name, asked in (("test", test), ("val", val), ("known", known)):
        links = asked.index[:, asked.y == 1][:, :MAX_QUERIES]
        found = class_matched(links, y, taken, stream(seed, "audit", "class-matched", name))
        if found is None:
            return None
        parts.append(found)
        taken = torch.cat([taken, encode_pairs(torch.from_numpy(found.index[:, found.y == 0]))])
        taken = taken.sort(stable=True).values
    return Matched(test=parts[0], val=parts[1], known=parts[2])


def class_matched(links: Integers, y: Integers, taken: torch.Tensor, seed: int) -> Queries | None:
    """For each link a non-link between nodes of the same two classes, so that classes alone tell nothing.

    A link whose two classes have no non-link left (after many draws) is left out, and so is one of unknown classes.

    Args:
        taken: ascending codes of pairs that may not be drawn.
    """
    links = links[:, (y[links] != UNKNOWN).all(axis=0)]
    by_class = np.argsort(y, kind="stable")
    first, size = np.searchsorted(y[by_class], np.arange(y.max() + 1)), np.bincount(y[y != UNKNOWN])
    random = np.random.default_rng(seed)
    found = np.full(links.shape, -1)
    used = np.empty(0, dtype=np.int64)
    open_ = np.arange(links.shape[1])
    for _ in range(50):
        classes = y[links[:, open_]]
        drawn = by_class[first[classes] + (random.random(classes.shape) * size[classes]).astype(np.int64)]
        low, high = drawn.min(axis=0), drawn.max(axis=0)
        codes = encode_pairs(torch.from_numpy(np.stack([low, high])))
        place = torch.searchsorted(taken, codes).clamp(max=max(len(taken) - 1, 0))
        free = (low != high) & ~(taken[place] == codes).numpy() & ~np.isin(codes.numpy(), used)
        _, once = np.unique(codes.numpy(), return_index=True)
        good = np.intersect1d(np.flatnonzero(free), once)
        found[:, open_[good]] = decode_pairs(codes[good]).numpy()
        used = np.concatenate([used, codes.numpy()[good]])
        open_ = np.delete(open_, good)
        if len(open_) == 0:
            break
    kept = found[0] >= 0
    if not kept.any():
        return None
    return _pairs(links[:, kept], found[:, kept])


def _pairs(links: Integers, nonlinks: Integers) -> Queries:
    return Queries(np.concatenate([links, nonlinks], axis=1), np.repeat([1, 0], [links.shape[1], nonlinks.shape[1]]))


def _known_labels(split: Split, y: Integers, notes: list[str], seed: int) -> tuple[Queries, Queries] | None:
    """Nodes whose class is known, to learn from and to tune on."""
    found = []
    for nodes, limit in ((split.defender_nodes("all"), MAX_KNOWN), (split.val_nodes, MAX_QUERIES)):
        index = nodes.numpy()[y[nodes.numpy()] != UNKNOWN]
        index = _sample(index, limit, "known labels", notes, seed)
        found.append(Queries(index, y[index]))
    learned, tuned_on = found
    return (learned, tuned_on) if len(np.unique(learned.y)) > 1 and len(tuned_on.y) else None


def stratified(y: Integers, count: int, seed: int) -> Integers:
    """A number below `count` for each example, drawn so that every class is divided evenly."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(order), dtype=np.int64)
    fold[order] = np.arange(len(order)) % count
    return fold


def _few(known: Queries, seed: int) -> Queries:
    """Twenty a class, or as many as there are."""
    order = np.random.default_rng(stream(seed, "audit", "few")).permutation(len(known.y))
    chosen = np.concatenate([order[known.y[order] == c][:FEW] for c in np.unique(known.y)])
    return Queries(known.index[chosen], known.y[chosen])


def _sample(index: Integers, limit: int, what: str, notes: list[str], seed: int) -> Integers:
    """At most `limit` of the last dimension, by a stream of the seed, and a note where some were left out."""
    count = index.shape[-1]
    if count <= limit:
        return index
    notes.append(f"{limit:,} of {count:,} {what} were used, drawn at random")
    chosen = np.random.default_rng(stream(seed, "audit", what)).choice(count, limit, replace=False)
    return index[..., np.sort(chosen)]
