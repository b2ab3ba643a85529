"""Features for nodes that have none: how many links a node has."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

BINS = 24
"""Powers of two that are told apart: a node with more than sixteen million links counts as one with as many."""


def degree_features(pairs: Tensor, num_nodes: int) -> Tensor:
    """A constant, log(1 + degree) and its power of two, (num_nodes, 2 + BINS), from distinct links (2, n)."""
    degree = torch.bincount(pairs.flatten(), minlength=num_nodes)
    magnitude = (degree + 1).double().log2().floor().long().clamp(max=BINS - 1)
    return torch.cat(
        [torch.ones(num_nodes, 1), degree.float().log1p()[:, None], F.one_hot(magnitude, BINS).float()], dim=1
    )
