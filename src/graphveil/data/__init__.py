"""Graphs, readers, splits and non-links."""

from graphveil.data.datasets.catalog import load, open_graph
from graphveil.data.datasets.synthetic import GraphSpec, generate
from graphveil.data.graph import UNKNOWN, check_graph, check_targets, digest, node_classes
from graphveil.data.leaky_columns import find_leaky_columns
from graphveil.data.origin import ReadOptions
from graphveil.data.readers import read_graph
from graphveil.data.splits.split import SPLITS, Split, check_split

__all__ = [
    "SPLITS",
    "UNKNOWN",
    "GraphSpec",
    "ReadOptions",
    "Split",
    "check_graph",
    "check_split",
    "check_targets",
    "digest",
    "find_leaky_columns",
    "generate",
    "load",
    "node_classes",
    "open_graph",
    "read_graph",
]
