"""Graphs, splits, and pairs without a link."""

from graphveil.data.catalog import load, open_graph
from graphveil.data.graph import UNKNOWN, check_graph, check_targets, digest, node_classes
from graphveil.data.origin import Reading
from graphveil.data.readers import read_graph
from graphveil.data.split import SPLITS, Split
from graphveil.data.synthetic import GraphSpec, generate
from graphveil.data.telling import telling_columns

__all__ = [
    "SPLITS",
    "UNKNOWN",
    "GraphSpec",
    "Reading",
    "Split",
    "check_graph",
    "check_targets",
    "digest",
    "generate",
    "load",
    "node_classes",
    "open_graph",
    "read_graph",
    "telling_columns",
]
