"""The graph of a training: as a whole, or by mini-batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphveil import processes
from graphveil.data import Split
from graphveil.data.graph import undirected_pairs
from graphveil.data.sampler import Neighbours
from graphveil.models.layers import Features
from graphveil.models.sparse import Adjacency
from graphveil.processes import ALONE, Processes
from graphveil.training.inputs import FeatureRows, adjacency, features
from graphveil.training.players import embed
from graphveil.training.recipes import Recipe
from graphveil.training.sampled import SampledGraph


@dataclass(frozen=True)
class WholeGraph:
    """A graph that encoders are trained on as a whole; in a batch of runs, the graph of every run.

    Args:
        x: Features, (..., num_nodes, channels).
        adjacency: The links that messages pass along.
    """

    x: Features
    adjacency: Adjacency
    processes: ClassVar[Processes] = ALONE

    def embed(self, encoder: nn.Module) -> Tensor:
        """Return the encoder's output for every node, without gradients and without dropout."""
        return embed(encoder, self.x, self.adjacency)


def graph_of(
    graph: Data, splits: Sequence[Split], scaling: str, recipe: Recipe, device: torch.device
) -> WholeGraph | SampledGraph:
    """Return the graph that an encoder is trained on or applied to.

    Args:
        graph: The graph.
        splits: The split of each run, a single one by mini-batches; empty for all links.
        scaling: That of the features.
        recipe: Its `batch_size` decides.
        device: The device of the encoder.
    """
    if not in_batches(recipe, graph):
        return WholeGraph(features(graph, splits, scaling, device), adjacency(graph, splits, device))
    assert recipe.batch_size is not None
    assert len(splits) <= 1
    pairs = splits[0].message_pairs if splits else undirected_pairs(graph.edge_index.cpu())
    neighbours = Neighbours.of(pairs, graph.x.size(0))
    rows = FeatureRows.of(graph, splits, scaling)
    return SampledGraph(neighbours, rows, recipe.batch_size, recipe.fanout, device, processes.current())


def features_of(
    graph: Data, splits: Sequence[Split], scaling: str, recipe: Recipe, device: torch.device
) -> Features | FeatureRows:
    """Return the features for a model of features only, by mini-batches as rows to be read; see `graph_of`."""
    if in_batches(recipe, graph):
        return FeatureRows.of(graph, splits, scaling)
    return features(graph, splits, scaling, device)


def in_batches(recipe: Recipe, graph: Data) -> bool:
    """Return whether a recipe has mini-batches that are smaller than a graph, else every round has the whole graph."""
    largest = max(graph.x.size(0), graph.edge_index.size(1) // 2)
    return recipe.batch_size is not None and recipe.batch_size < largest
