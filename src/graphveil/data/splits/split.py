"""The role of every node and pair: which train, validate and test, and which an adversary or an attacker knows.

| role | nodes | links |
|---|---|---|
| train the model on the utility | `train_nodes` | `train_links` and fresh non-links |
| select the best round | `val_nodes` | `val_links`, `val_nonlinks` |
| test | `test_nodes` | `test_links`, `test_nonlinks` |
| train the defender's adversary | `defender_nodes("few" or "all")` | `train_links` |
| known secrets of an attacker | `attacker_nodes("few" or "all")` | `train_links` |
| message passing | | `message_pairs` |

All other code takes its indices from here and never builds its own masks. The constructor checks for leaks.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphveil import notebook
from graphveil.data.graph import (
    BLOCK,
    UNKNOWN,
    both_directions,
    class_targets,
    encode_pairs,
    node_classes,
    sorted_codes,
    undirected_pairs,
)
from graphveil.data.splits.node_split import Counts, Known, draw_nodes, paper_counts, proportional_counts
from graphveil.data.splits.nonlinks import distinct_nonlinks
from graphveil.errors import GraphveilError, LeakError, unknown
from graphveil.randomness import check_seed, generator
from graphveil.target import LABELS, LINKS, Target, without_links

Knowledge = Literal["few", "all"]
MessageEdges = Literal["train", "all"]


@dataclass(frozen=True, eq=False)
class Split:
    """Which nodes and pairs train, validate and test. Nodes are indices (n,); pairs are (2, n), u < v, each link once.

    Args:
        num_nodes: The number of nodes of the graph.
        message_edges: "train" passes messages along training links only, which is required if links are the utility;
            "all" passes messages along all links, as the owner of the graph does if links are a secret.
        train_nodes: Training nodes.
        val_nodes: Validation nodes.
        test_nodes: Test nodes.
        spare_nodes: Nodes of known classes in none of these parts.
        train_links: Training links.
        val_links: Validation links.
        val_nonlinks: As many pairs without a link.
        test_links: Test links.
        test_nonlinks: As many pairs without a link.
        targets: The targets that the split was drawn for.

    Raises:
        LeakError: If a node or a pair is in two parts, or a pair is invalid.
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

    def __repr__(self) -> str:
        parts = ("train", "val", "test", "spare")
        nodes = ", ".join(f"{len(getattr(self, f'{part}_nodes')):,} {part}" for part in parts)
        links = ", ".join(f"{getattr(self, f'{part}_links').size(1):,} {part}" for part in parts[:3])
        return f"Split(nodes: {nodes}; links: {links}; messages along {self.message_edges} links)"

    def _repr_html_(self) -> str:
        names = ("train", "val", "test")
        rows = {
            part: f"{len(getattr(self, f'{part}_nodes')):,} nodes, {getattr(self, f'{part}_links').size(1):,} links"
            for part in names
        }
        spare = {"spare": f"{len(self.spare_nodes):,} nodes", "messages": f"along {self.message_edges} links"}
        return notebook.table(f"Split for {' and '.join(self.targets)}", rows | spare)

    @classmethod
    def paper(
        cls,
        graph: Data,
        seed: int = 0,
        message_edges: MessageEdges = "train",
        targets: Sequence[str] | None = None,
    ) -> "Split":
        """Draw the paper's split (Section 5.1) at random.

        Of the nodes, 20 per class train, 500 validate and 1,000 test. Of the links, 85 % train, 5 % validate and 10 %
        test.

        Args:
            graph: The graph.
            seed: The seed.
            message_edges: "train" or "all", as in the class.
            targets: The utility and the secrets. Nodes with at least one known target are split, by the classes of the
                first target that is not links; no node is split if all targets are links. None uses the labels if the
                graph has them, else its first attribute with at least two classes, else links.
        """
        return _draw(graph, seed, message_edges, targets, paper_counts)

    @classmethod
    def proportional(
        cls,
        graph: Data,
        seed: int = 0,
        message_edges: MessageEdges = "train",
        targets: Sequence[str] | None = None,
    ) -> "Split":
        """Draw a split of graphs that are too small for the paper's counts.

        A third of each class trains, a sixth of the nodes validates, and the rest tests. Every class has at least one
        training node. Links are split as in `paper`.

        Args:
            graph: The graph.
            seed: The seed.
            message_edges: "train" or "all", as in the class.
            targets: As in `paper`.
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
        """`message_pairs` in both directions, (2, 2 n), as PyG's layers expect them."""
        return both_directions(self.message_pairs)

    @property
    def taken_pairs(self) -> Tensor:
        """Ascending codes of the pairs that no training non-link may be: all links and the held-out non-links."""
        pairs = (self.train_links, self.val_links, self.test_links, self.val_nonlinks, self.test_nonlinks)
        return encode_pairs(torch.cat(pairs, dim=1)).sort(stable=True).values

    def defender_nodes(self, knowledge: Knowledge) -> Tensor:
        """Return the nodes whose secret the joint adversary may learn from.

        Args:
            knowledge: "few" are the training nodes; "all" are all nodes except validation and test.
        """
        return _known({"few": [self.train_nodes], "all": [self.train_nodes, self.spare_nodes]}, knowledge)

    def attacker_nodes(self, knowledge: Knowledge) -> Tensor:
        """Return the nodes whose secret an attacker knows.

        Args:
            knowledge: "few" are the training nodes; "all" are all nodes except test.
        """
        all_nodes = [self.train_nodes, self.spare_nodes, self.val_nodes]
        return _known({"few": [self.train_nodes], "all": all_nodes}, knowledge)

    def sizes(self, graph: Data, targets: Sequence[str]) -> tuple[int, ...]:
        """Return the number of message-passing links, and of pairs and nodes with known targets in each part."""
        parts = [getattr(self, field.name) for field in fields(self) if field.name.endswith(("links", "nodes"))]
        sizes = [self.message_pairs.size(1), *(part.size(-1) for part in parts if isinstance(part, Tensor))]
        for name in without_links(targets):
            known = node_classes(graph, name).cpu() != UNKNOWN
            sizes += [int(known[part].sum()) for part in parts if isinstance(part, Tensor) and part.dim() == 1]
        return tuple(sizes)

    def without_held_out_links(self, utility: str) -> "Split":
        """Return the split for a utility: if links are the utility, messages pass along training links only."""
        return replace(self, message_edges="train") if Target.of(utility).is_links else self

    def digest(self) -> str:
        """Return a SHA-256 of all parts, by which a saved run recognises its split."""
        sha = hashlib.sha256(f"{self.num_nodes}/{self.message_edges}".encode())
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                sha.update(field.name.encode())
                sha.update(value.contiguous().numpy().ravel().data)
        return sha.hexdigest()


SPLITS = {"paper": Split.paper, "proportional": Split.proportional}
"""The kinds of splits by name."""


def targets_of(graph: Data, secret: str) -> Sequence[str]:
    """Return the targets to split nodes by if only a secret is given.

    This is the secret; for links it is the labels or the first attribute with at least two classes, else links.
    """
    if not Target.of(secret).is_links:
        return (secret,)
    return next(((name,) for name in class_targets(graph) if _has_classes(graph, name)), (LINKS,))


def check_split(split: Split, graph: Data) -> None:
    """Refuse a split whose nodes or links are not exactly those of the graph.

    Raises:
        GraphveilError: If it is no split, or is for another number of nodes.
        LeakError: If it has other links, since a non-link of the split may then be a link.
    """
    if not isinstance(split, Split):
        raise GraphveilError(
            f"the split is a {type(split).__name__}: expected a graphveil.Split, such as"
            " Split.proportional(graph, seed=0)."
        )
    if split.num_nodes != graph.x.size(0):
        raise GraphveilError(
            f"the split is for {split.num_nodes} nodes and the graph has {graph.x.size(0)}: build it from this graph."
        )
    links = undirected_pairs(graph.edge_index.cpu())
    own = sorted_codes((split.train_links, split.val_links, split.test_links))
    same = own.numel() == links.size(1) and all(
        part.equal(encode_pairs(pairs)) for part, pairs in zip(own.split(BLOCK), links.split(BLOCK, dim=1), strict=True)
    )
    if not same:
        raise LeakError(
            f"the {own.numel()} links of the split are not the {links.size(1)} links of the graph, so a non-link"
            " of the split may be a link: build the split from this graph."
        )


def draw_split(kind: str, graph: Data, seed: int, message_edges: str, targets: Sequence[str]) -> Split:
    """Draw a split by the name of its kind."""
    if kind not in SPLITS:
        raise unknown("split", kind, SPLITS)
    return SPLITS[kind](graph, seed, message_edges, targets)  # type: ignore[arg-type]


def _has_classes(graph: Data, name: str) -> bool:
    """Whether a target has at least two classes."""
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
    """Draw nodes by `count_nodes`, and 85, 5 and 10 % of the links."""
    check_seed(seed)
    if targets is None:
        targets = (LABELS,) if "y" in graph else targets_of(graph, LINKS)
    nodes = draw_nodes(graph, seed, targets, count_nodes)
    num_nodes = graph.x.size(0)
    links = undirected_pairs(graph.edge_index.cpu())
    count = links.size(1)
    if count < 20:
        raise GraphveilError(
            f"the graph has {count} distinct links, but at least 20 are needed to train, validate and test: use a"
            " larger graph."
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
        train_links=links[:, held_out:].clone(),  # views would keep all links in memory as long as any part
        val_links=links[:, :val].clone(),
        val_nonlinks=nonlinks[:, :val].clone(),
        test_links=links[:, val : val + test].clone(),
        test_nonlinks=nonlinks[:, val:].clone(),
        targets=tuple(targets),
    )


def _check_nodes(split: Split) -> None:
    seen = torch.zeros(split.num_nodes, dtype=torch.bool)
    for name in ("train_nodes", "val_nodes", "test_nodes", "spare_nodes"):
        nodes = getattr(split, name)
        if nodes.numel() and (nodes.min() < 0 or nodes.max() >= split.num_nodes):
            raise LeakError(f"{name} has a node outside 0 to {split.num_nodes - 1}: rebuild the split.")
        if bool(seen[nodes].any()) or torch.unique(nodes).numel() != nodes.numel():
            raise LeakError(f"{name} shares a node with another part or has one twice: rebuild the split.")
        seen[nodes] = True


def _check_pairs(split: Split) -> None:
    """Check that all parts have different pairs, so that no held-out pair is trained on or passed along."""
    names = ("train_links", "val_links", "test_links", "val_nonlinks", "test_nonlinks")
    for name in names:
        pairs = getattr(split, name)
        if pairs.dim() != 2 or pairs.size(0) != 2:
            raise LeakError(f"{name} has shape {tuple(pairs.shape)}: expected (2, number of pairs).")
        if pairs.numel() and (pairs.min() < 0 or pairs.max() >= split.num_nodes):
            raise LeakError(f"{name} has a node outside 0 to {split.num_nodes - 1}: rebuild the split.")
        if bool((pairs[0] >= pairs[1]).any()):
            raise LeakError(f"{name} has a pair that is not in the order u < v: order it, since it may be a duplicate.")
    codes = [encode_pairs(getattr(split, name)) for name in names]
    all_codes, order = torch.cat(codes).sort(stable=True)
    duplicate = all_codes[1:] == all_codes[:-1]
    if bool(duplicate.any()):
        place = int(order[1:][duplicate].min())
        ends = torch.tensor([part.numel() for part in codes]).cumsum(0)
        name = names[int(torch.searchsorted(ends, place, right=True))]
        raise LeakError(f"{name} shares a pair with another part or has one twice: rebuild the split.")
