"""Draw the nodes of each part of a split, in numbers that depend on how many nodes have known targets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphveil.data.graph import UNKNOWN, check_graph, node_classes
from graphveil.data.origin import origin_of
from graphveil.errors import GraphveilError
from graphveil.randomness import generator
from graphveil.target import without_links


@dataclass(frozen=True, eq=False)
class Known:
    """The classes of the first target, and the nodes for which any target is known.

    Args:
        name: The first target that is not links.
        of_node: (num_nodes,) the class of each node.
        sizes: (classes,) how many nodes each class has.
        nodes: (n,) the nodes for which any target is known, in ascending order.
    """

    name: str
    of_node: Tensor
    sizes: Tensor
    nodes: Tensor


@dataclass(frozen=True)
class Counts:
    """How many nodes each part has.

    Args:
        per_class: Training nodes of each class.
        others: Spare nodes of unknown class.
        val: Validation nodes.
        test: Test nodes.
    """

    per_class: Sequence[int]
    others: int
    val: int
    test: int


@dataclass(frozen=True, eq=False)
class NodeParts:
    """The nodes of each part, (n,) each."""

    train: Tensor
    val: Tensor
    test: Tensor
    spare: Tensor


def draw_nodes(graph: Data, seed: int, targets: Sequence[str], count: Callable[[Known], Counts]) -> NodeParts:
    """Draw the nodes of each part for some targets; all parts are empty if the only target is links."""
    check_graph(graph)
    names = without_links(targets)
    if not names:
        return NodeParts(*(torch.empty(0, dtype=torch.long) for _ in range(4)))
    known = known_nodes(graph, names)
    counts = count(known)
    order = torch.randperm(graph.x.size(0), generator=generator(seed, "split", "nodes"))
    order = order[torch.isin(order, known.nodes)]
    drawn = known.of_node[order]
    train = torch.cat([order[drawn == c][:number] for c, number in enumerate(counts.per_class)])
    rest = order[~torch.isin(order, train)]
    without = rest[known.of_node[rest] == UNKNOWN]
    spare = without[: counts.others]
    if len(without):
        # The nodes of known class that do not train come late in the order; without another order, the validation part
        # would have none of them.
        rest = rest[~torch.isin(rest, spare)]
        rest = rest[torch.randperm(len(rest), generator=generator(seed, "split", "rest"))]
    val, test, left = rest.tensor_split([counts.val, counts.val + counts.test])
    return NodeParts(train, val, test, torch.cat([spare, left]))


def known_nodes(graph: Data, targets: Sequence[str]) -> Known:
    """Return the known classes of targets, none of which is links."""
    of_targets = [node_classes(graph, name).cpu() for name in targets]
    name, first = targets[0], of_targets[0]
    sizes = torch.bincount(first[first != UNKNOWN])
    if len(sizes) < 2:
        raise GraphveilError(f"{name!r} has {len(sizes)} class: a target needs at least two.")
    empty = (sizes == 0).nonzero().flatten().tolist()
    if empty and name not in origin_of(graph).encoding.classes:  # else the earlier graph may have them
        raise GraphveilError(
            f"no node has class {empty[0]} of {name!r}: number the classes 0 to {len(sizes) - 1 - len(empty)}."
        )
    nodes = (torch.stack(of_targets) != UNKNOWN).any(dim=0).nonzero().flatten()
    return Known(name, first, sizes, nodes)


def paper_counts(known: Known) -> Counts:
    """Return the counts of the paper's Section 5.1: 20 nodes per class to train, 500 to validate, 1,000 to test."""
    sizes = known.sizes
    too_small = (sizes < 20).nonzero().flatten().tolist()
    if too_small or len(known.nodes) < 20 * len(sizes) + 1500:
        existing = (
            f"class {too_small[0]} of {known.name} has {int(sizes[too_small[0]])}"
            if too_small
            else f"the graph has {len(known.nodes)}"
        )
        raise GraphveilError(
            f"the paper's split needs 20 nodes in each of {len(sizes)} classes and 1,500 more, but {existing}:"
            " use --split proportional (in Python: Split.proportional)."
        )
    return Counts([20] * len(sizes), others=0, val=500, test=1000)


def proportional_counts(known: Known) -> Counts:
    """Return a third of each class to train, a sixth of the nodes to validate, and the rest to test.

    A third of the nodes of unknown class are spare.
    """
    per_class = ((known.sizes + 2) // 3).tolist()
    others = (len(known.nodes) - int(known.sizes.sum())) // 3
    rest = len(known.nodes) - sum(per_class) - others
    if rest < 2:
        raise GraphveilError(
            f"{known.name} is known for {int(known.sizes.sum())} nodes in {len(per_class)} classes, too few to"
            " train, validate and test: add values or merge classes."
        )
    val = max(1, rest // 4)
    return Counts(per_class, others, val, rest - val)
