"""Features for graphs without any, computed from the number of links of each node."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch_geometric.data import Data

from graphveil.data.origin import origin_of

BINS = 24
"""How many powers of two are distinguished; more than sixteen million links count as so many."""


def degree_features(pairs: Tensor, num_nodes: int) -> Tensor:
    """Return a constant, log(1 + degree) and the one-hot power of two of 1 + degree, for each node.

    Args:
        pairs: Distinct links, (2, n).
        num_nodes: The number of nodes.

    Returns:
        (num_nodes, 2 + BINS).
    """
    degree = torch.stack([torch.bincount(ends, minlength=num_nodes) for ends in pairs]).sum(dim=0)
    magnitude = (degree + 1).double().log2().floor().long().clamp(max=BINS - 1)
    x = torch.zeros(num_nodes, 2 + BINS)
    x[:, 0], x[:, 1] = 1, degree.float().log1p()
    return x.scatter_(1, 2 + magnitude[:, None], 1.0)


def is_structural(graph: Data) -> bool:
    """Return whether a graph was read without features and x still holds `degree_features`.

    Then x must be computed again for each split, since it would reveal hidden links. This includes graphs whose links
    were changed after reading. It is false once the user has set other features.
    """
    x = graph.x
    if not origin_of(graph).structural or x.layout != torch.strided or x.size(1) != 2 + BINS:
        return False
    constant, logarithm, bins = x[:, 0], x[:, 1].double(), x[:, 2:]
    magnitude = bins.argmax(dim=1)
    above = logarithm / math.log(2) - magnitude
    fits = (above > -1e-5) & ((above < 1 + 1e-5) | (magnitude == BINS - 1))
    return bool((constant == 1).all() and fits.all() and (bins == F.one_hot(magnitude, BINS)).all())
