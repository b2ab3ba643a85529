"""Encoders in layers, which can work on a part of a graph.

A layer first maps every node by itself (`project`), then combines what each receiving node gets from its neighbours
(`aggregate`). So a sampled neighbourhood, some rows of a large graph and a whole graph are the same to an encoder: a
`Block` of receivers and senders for each layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from graphveil.models.layers import Features
from graphveil.models.sparse import Adjacency, Pattern, SparseMatrix


@dataclass(frozen=True, eq=False)
class Block:
    """Nodes that receive messages, and the nodes that send them; each receiver is a sender to itself.

    Args:
        normalized: The weights of GCN, (receivers, senders).
        first: Which sender the first receiver is; the other receivers follow it.
        present: (entries,), which entries of the pattern are used; None means all.
    """

    normalized: SparseMatrix
    first: int = 0
    present: Tensor | None = None

    @classmethod
    def of(cls, adjacency: Adjacency) -> "Block":
        """Return a whole graph as a block."""
        return cls(adjacency.normalized, present=adjacency.present)

    @property
    def pattern(self) -> Pattern:
        """The positions of the weights."""
        return self.normalized.pattern

    def receivers(self, h: Tensor, dim: int = -2) -> Tensor:
        """Return the rows of the receivers from those of the senders."""
        count, senders = self.pattern.shape
        return h if count == senders else h.narrow(dim, self.first, count)

    def neighbour_mean(self, h: Tensor) -> Tensor:
        """Return the mean of h over the neighbours of each receiver without itself, zeros without neighbours.

        Args:
            h: (..., senders, channels).
        """
        total = self._links @ h
        return total / self._num_neighbours.view(*total.shape[:-1], 1)

    @cached_property
    def _links(self) -> SparseMatrix:
        """1 for each link that is used, 0 for self-loops."""
        is_link = self.pattern.row + self.first != self.pattern.col
        if self.present is not None:
            is_link &= self.present
        return self.normalized.with_values(is_link.to(self.normalized.values.dtype))

    @cached_property
    def _num_neighbours(self) -> Tensor:
        """How many neighbours each receiver has, at least 1, (receivers,)."""
        count: Tensor = torch.segment_reduce(self._links.values, "sum", offsets=self.pattern.crow, unsafe=True)
        return count.clamp(min=1)


@runtime_checkable
class Layered(Protocol):
    """An encoder in layers.

    Attributes:
        depth: The number of layers.
        smoothing: Steps of `graphveil.models.encoders.smooth` after the layers.
        restart: Its restart probability.
    """

    depth: int
    smoothing: int
    restart: float

    def project(self, layer: int, h: Features) -> Tensor:
        """Map every node by itself: the first half of a layer."""

    def aggregate(self, layer: int, projected: Tensor, block: Block) -> Tensor:
        """Combine the projected senders for each receiver: the second half of a layer."""


def through_layers(encoder: Layered, x: Features, blocks: Sequence[Block]) -> Tensor:
    """Return the output of the last layer for the receivers of the last block.

    Args:
        encoder: The encoder.
        x: The features of the senders of the first block.
        blocks: One for each layer; the receivers of a block are the senders of the next one.
    """
    h: Features = x
    for layer, block in enumerate(blocks):
        h = encoder.aggregate(layer, encoder.project(layer, h), block)
    assert isinstance(h, Tensor)
    return h
