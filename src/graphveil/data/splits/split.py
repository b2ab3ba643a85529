"""Who sees what: every role of every node and pair, named once and checked for leaks.

| role | nodes | links |
|---|---|---|
| the model learns its utility from | `train_nodes` | `train_links` and fresh non-links |
| selection looks at | `val_nodes` | `val_links`, `val_nonlinks` |
| results are scored on | `test_nodes` | `test_links`, `test_nonlinks` |
| the defender may train its adversary on | `defender_nodes("few" or "all")` | `train_links` |
| an attacker knows | `attacker_nodes("few" or "all")` | `train_links` |
| messages pass along | | `message_pairs` |

Code takes its indices from here and never builds a mask of its own. A `Split` that leaks cannot be made: the check
runs in its constructor.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphveil.data.graph import (
    UNKNOWN,
    both_directions,
    encode_pairs,
    node_attributes,
    node_classes,
    undirected_pairs,
)
from graphveil.data.splits.node_split import Counts, Known, draw_nodes, papers_counts, proportional_counts
from graphveil.data.splits.nonlinks import distinct_nonlinks
from graphveil.errors import GraphveilError, LeakError, unknown
from graphveil.randomness import generator

Knowledge = Literal["few", "all"]
MessageEdges = Literal["train", "all"]


@dataclass(frozen=True, eq=False)
class Split:
    """The roles of nodes and pairs. Nodes are (n,) indices; pairs are (2, n) with u < v, each link once.

    Args:
        message_edges: "train" keeps validation and test links out of message passing, as they must be when links
            are the utility; "all" embeds the true graph, which is the owner's own situation when links are the secret.
        spare_nodes: nodes of known classes in no other part.
        targets: what it was drawn for, so that it can be drawn again.
    """

    num_nodes: int
    message_edges: MessageEdges
    train_nodes: Tensor
    val_nodes: Tensor
    test_nodes: Tensor
    spare_nodes: Tensor
    train_links: Tensor
    val_links: Tensor
    val_nonlinks: Tensor
    test_links: Tensor
    test_nonlinks: Tensor
    targets: tuple[str, ...] = ("labels",)

    def __post_init__(self) -> None:
        if self.message_edges not in ("train", "all"):
            raise unknown("message_edges", self.message_edges, ("train", "all"))
        _check_nodes(self)
        _check_pairs(self)

    @classmethod
    def paper(
        cls,
        graph: Data,
        seed: int = 0,
        message_edges: MessageEdges = "train",
        targets: Sequence[str] | None = None,
    ) -> "Split":
        """Section 5.1: 20 nodes a class, 500 and 1,000 nodes; 85 / 5 / 10 % of the links; all at random.

        Args:
            targets: what is kept and hidden. Nodes of which one is known have a part; the classes are of the first
                that is not links. Where all are links, no node has a part. None is the labels, if the graph has some,
                else the first of its attributes that has two classes, else links; `targets` of the split says which.
        """
        return _draw(graph, seed, message_edges, targets, papers_counts)

    @classmethod
    def proportional(
        cls,
        graph: Data,
        seed: int = 0,
        message_edges: MessageEdges = "train",
        targets: Sequence[str] | None = None,
    ) -> "Split":
        """For graphs too small for the paper's counts: a third of each class, a sixth and the rest of the nodes.

        A class of one or two nodes gives one of them to training, so that every class is known.

        Args:
            targets: as of `paper`.
        """
        return _draw(graph, seed, message_edges, targets, proportional_counts)

    @property
    def message_pairs(self) -> Tensor:
        """The links messages pass along, (2, n) with u < v."""
        if self.message_edges == "train":
            return self.train_links
        return torch.cat([self.train_links, self.val_links, self.test_links], dim=1)

    @property
    def message_edge_index(self) -> Tensor:
        """`message_pairs` in both directions, as PyG's layers want them."""
        return both_directions(self.message_pairs)

    @property
    def taken_pairs(self) -> Tensor:
        """Ascending codes of what no training non-link may be: every link, and the held-out non-links."""
        pairs = (self.train_links, self.val_links, self.test_links, self.val_nonlinks, self.test_nonlinks)
        return encode_pairs(torch.cat(pairs, dim=1)).sort(stable=True).values

    def defender_nodes(self, knowledge: Knowledge) -> Tensor:
        """Nodes whose secret the training adversary may learn: 20 a class, or all outside validation and test."""
        return _known({"few": [self.train_nodes], "all": [self.train_nodes, self.spare_nodes]}, knowledge)

    def attacker_nodes(self, knowledge: Knowledge) -> Tensor:
        """Nodes whose secret an attacker knows: 20 a class, or every one that it is not scored on."""
        everything = [self.train_nodes, self.spare_nodes, self.val_nodes]
        return _known({"few": [self.train_nodes], "all": everything}, knowledge)

    def check_links(self, graph: Data) -> None:
        """Refuse a graph whose links are not exactly the links of this split."""
        parts = torch.cat([self.train_links, self.val_links, self.test_links], dim=1)
        links = encode_pairs(undirected_pairs(graph.edge_index.cpu()))
        if not encode_pairs(parts).sort(stable=True).values.equal(links):
            raise LeakError(
                f"the split's {parts.size(1)} links are not the graph's {links.numel()}, so that what counts as no link"
                " might be one: build the split from this graph."
            )

    def sizes(self, graph: Data, targets: Sequence[str]) -> tuple[int, ...]:
        """How many links messages pass along, and how many pairs and nodes with known targets each part has."""
        parts = [getattr(self, field.name) for field in fields(self) if field.name.endswith(("links", "nodes"))]
        sizes = [self.message_pairs.size(1), *(part.size(-1) for part in parts if isinstance(part, Tensor))]
        for name in targets:
            if name != "links":
                known = node_classes(graph, name).cpu() != UNKNOWN
                sizes += [int(known[part].sum()) for part in parts if isinstance(part, Tensor) and part.dim() == 1]
        return tuple(sizes)

    def digest(self) -> str:
        """A SHA-256 of all roles, so that a saved run can tell whether it is given its own split again."""
        sha = hashlib.sha256(f"{self.num_nodes}/{self.message_edges}".encode())
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                sha.update(field.name.encode() + value.contiguous().numpy().tobytes())
        return sha.hexdigest()


def default_message_edges(utility: str) -> MessageEdges:
    """Links that are kept, and so scored, are not passed along; where something else is kept the true graph is."""
    return "train" if utility == "links" else "all"


SPLITS = {"paper": Split.paper, "proportional": Split.proportional}
"""By name."""


def targets_of(graph: Data, secret: str) -> Sequence[str]:
    """What nodes are split by where a secret alone is known: it, or if it is links the labels, where there are some."""
    if secret != "links":
        return (secret,)
    names = [*(["labels"] if "y" in graph else []), *node_attributes(graph)]
    return next(((name,) for name in names if _has_classes(graph, name)), ("links",))


def draw_split(kind: str, graph: Data, seed: int, message_edges: str, targets: Sequence[str]) -> Split:
    """A split by the name of its kind."""
    if kind not in SPLITS:
        raise unknown("split", kind, SPLITS)
    return SPLITS[kind](graph, seed, message_edges, targets)  # type: ignore[arg-type]


def _has_classes(graph: Data, name: str) -> bool:
    """Whether nodes can be told apart by it."""
    try:
        classes = node_classes(graph, name)
    except GraphveilError:
        return False
    return len(classes[classes != UNKNOWN].unique()) > 1


def _known(parts: dict[str, list[Tensor]], knowledge: str) -> Tensor:
    if knowledge not in parts:
        raise unknown("knowledge", knowledge, parts)
    return torch.cat(parts[knowledge])


def _draw(
    graph: Data,
    seed: int,
    message_edges: MessageEdges,
    targets: Sequence[str] | None,
    count_nodes: Callable[[Known], Counts],
) -> Split:
    """Nodes as counted, and 85 / 5 / 10 % of the links."""
    if targets is None:
        targets = ("labels",) if "y" in graph else targets_of(graph, "links")
    nodes = draw_nodes(graph, seed, targets, count_nodes)
    num_nodes = graph.x.size(0)
    links = undirected_pairs(graph.edge_index.cpu())
    count = links.size(1)
    if count < 20:
        raise GraphveilError(
            f"the graph has {count} distinct links, but at least 20 are needed to train, select and test on."
        )
    random = generator(seed, "split", "links")
    links = links[:, torch.randperm(count, generator=random)]
    held_out = count * 15 // 100
    val, test = held_out // 3, held_out - held_out // 3
    codes = encode_pairs(links).sort(stable=True).values
    nonlinks = distinct_nonlinks(held_out, codes, num_nodes, random)

    return Split(
        num_nodes=num_nodes,
        message_edges=message_edges,
        train_nodes=nodes.train,
        val_nodes=nodes.val,
        test_nodes=nodes.test,
        spare_nodes=nodes.spare,
        train_links=links[:, held_out:],
        val_links=links[:, :val],
        val_nonlinks=nonlinks[:, :val],
        test_links=links[:, val : val + test],
        test_nonlinks=nonlinks[:, val:],
        targets=tuple(targets),
    )


def _check_nodes(split: Split) -> None:
    seen = torch.zeros(split.num_nodes, dtype=torch.bool)
    for name in ("train_nodes", "val_nodes", "test_nodes", "spare_nodes"):
        nodes = getattr(split, name)
        if nodes.numel() and (nodes.min() < 0 or nodes.max() >= split.num_nodes):
            raise LeakError(f"{name} names a node outside 0 to {split.num_nodes - 1}: rebuild the split.")
        if bool(seen[nodes].any()) or torch.unique(nodes).numel() != nodes.numel():
            raise LeakError(f"{name} shares a node with another part or names one twice: rebuild the split.")
        seen[nodes] = True


def _check_pairs(split: Split) -> None:
    """Links and non-links of all parts are different pairs, so nothing held out is trained on or passed along."""
    names = ("train_links", "val_links", "test_links", "val_nonlinks", "test_nonlinks")
    for name in names:
        pairs = getattr(split, name)
        if pairs.dim() != 2 or pairs.size(0) != 2:
            raise LeakError(f"{name} has shape {tuple(pairs.shape)}: expected (2, number of pairs).")
        if pairs.numel() and (pairs.min() < 0 or pairs.max() >= split.num_nodes):
            raise LeakError(f"{name} names a node outside 0 to {split.num_nodes - 1}: rebuild the split.")
        if bool((pairs[0] >= pairs[1]).any()):
            raise LeakError(f"{name} holds a pair that is not in the order u < v, so it could hide a duplicate.")
    codes = [encode_pairs(getattr(split, name)) for name in names]
    together, order = torch.cat(codes).sort(stable=True)
    twice = together[1:] == together[:-1]
    if bool(twice.any()):
        place = int(order[1:][twice].min())  # of the second one: in the part that names the pair again
        again = torch.tensor([part.numel() for part in codes]).cumsum(0)
        name = names[int(torch.searchsorted(again, place, right=True))]
        raise LeakError(f"{name} shares a pair with another part or names one twice: rebuild the split.")
