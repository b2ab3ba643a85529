"""A graph and a split without the test part, in which validation takes its place.

Choosing among trained embeddings by their test results would make these results too good. Here the classes of test
nodes are unknown and test links do not exist, so that any score or audit is one on validation, and cannot see more.
"""

import copy
from dataclasses import replace

import torch
from torch_geometric.data import Data

from graphveil.data import UNKNOWN, Split, node_classes
from graphveil.data.graph import both_directions
from graphveil.data.splits.nonlinks import distinct_nonlinks
from graphveil.randomness import generator
from graphveil.target import Target, without_links

EVERY = 5
"""One of so many training nodes and links takes the place of validation."""


def without_test_part(graph: Data, split: Split) -> tuple[Data, Split]:
    """Return the graph and the split as a selection may see them.

    Args:
        graph: the graph.
        split: its split.
    """
    seen = copy.copy(graph)
    for name in without_links(split.targets):
        classes = node_classes(graph, name).clone()
        classes[split.test_nodes] = UNKNOWN
        seen[Target.of(name).key] = classes
    seen.edge_index = both_directions(torch.cat([split.train_links, split.val_links], dim=1))
    held, links = split.train_nodes[::EVERY], split.train_links[:, ::EVERY]
    random = generator(0, "validation", "non-links")
    inner = replace(
        split,
        train_nodes=_others(split.train_nodes),
        val_nodes=held,
        test_nodes=split.val_nodes,
        train_links=_others(split.train_links),
        val_links=links,
        val_nonlinks=distinct_nonlinks(links.size(1), split.taken_pairs, split.num_nodes, random),
        test_links=split.val_links,
        test_nonlinks=split.val_nonlinks,
    )
    return seen, inner


def _others(part: torch.Tensor) -> torch.Tensor:
    return part[..., torch.arange(part.size(-1)) % EVERY != 0]
