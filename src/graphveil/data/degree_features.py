"""Features for nodes that have none: how many links a node has."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch_geometric.data import Data

from graphveil.data.origin import origin_of

BINS = 24
"""Powers of two that are told apart: a node with more than sixteen million links counts as one with as many."""


def degree_features(pairs: Tensor, num_nodes: int) -> Tensor:
    """A constant, log(1 + degree) and its power of two, (num_nodes, 2 + BINS), from distinct links (2, n)."""
    degree = torch.bincount(pairs.flatten(), minlength=num_nodes)
    magnitude = (degree + 1).double().log2().floor().long().clamp(max=BINS - 1)
    return torch.cat(
        [torch.ones(num_nodes, 1), degree.float().log1p()[:, None], F.one_hot(magnitude, BINS).float()], dim=1
    )


def is_structural(graph: Data) -> bool:
    """Whether a graph was read without features and x still is made of numbers of links, and so to be made anew.

    Not so once a user has set features. But where links were taken out or added after reading, x stays structural: its
    old numbers would tell of links that are gone.
    """
    x = graph.x
    if not origin_of(graph).structural or x.layout != torch.strided or x.size(1) != 2 + BINS:
        return False
    constant, logarithm, bins = x[:, 0], x[:, 1].double(), x[:, 2:]
    magnitude = bins.argmax(dim=1)
    above = logarithm / math.log(2) - magnitude
    fits = (above > -1e-5) & ((above < 1 + 1e-5) | (magnitude == BINS - 1))
    return bool((constant == 1).all() and fits.all() and (bins == F.one_hot(magnitude, BINS)).all())
