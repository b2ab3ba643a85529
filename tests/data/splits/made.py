"""What the tests of the splits share."""

import torch
from torch_geometric.data import Data

from graphveil.data.graph import encode_pairs


def toy(labels: list[int], num_links: int = 40) -> Data:
    n = len(labels)
    pairs = torch.triu_indices(n, n, 1)[:, :num_links]
    return Data(x=torch.ones(n, 1), edge_index=pairs, y=torch.tensor(labels))


def codes(pairs: torch.Tensor) -> set[int]:
    return set(encode_pairs(pairs).tolist())
