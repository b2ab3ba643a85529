"""Encoders and heads: plain `nn.Module`s, and tables of them by name."""

from graphveil.models.build import ENCODERS, LINK_HEADS, NODE_HEADS, build_encoder, build_head
from graphveil.models.sparse import Adjacency, SparseMatrix

__all__ = ["ENCODERS", "LINK_HEADS", "NODE_HEADS", "Adjacency", "SparseMatrix", "build_encoder", "build_head"]
