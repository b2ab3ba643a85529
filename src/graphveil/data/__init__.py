"""Graphs, splits, and pairs without a link."""

from graphveil.data.catalog import load
from graphveil.data.graph import UNKNOWN, check_graph, digest, node_classes
from graphveil.data.split import Split
from graphveil.data.synthetic import GraphSpec, generate

__all__ = [
    "UNKNOWN",
    "GraphSpec",
    "Split",
    "check_graph",
    "digest",
    "generate",
    "load",
    "node_classes",
]
