"""Graphs, splits, and pairs without a link."""

from graphveil.data.catalog import load
from graphveil.data.graph import UNKNOWN, check_graph, check_targets, digest, node_classes
from graphveil.data.split import SPLITS, Split
from graphveil.data.synthetic import GraphSpec, generate

__all__ = [
    "SPLITS",
    "UNKNOWN",
    "GraphSpec",
    "Split",
    "check_graph",
    "check_targets",
    "digest",
    "generate",
    "load",
    "node_classes",
]
