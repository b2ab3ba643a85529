"""The lower bound of the time of a round: the bytes that it must move, divided by the bandwidth of a copy.

Only compulsory traffic is counted. A product with the whole graph must be finished before the next operation starts, so
its operand is written and read once. All operations between two such products work row by row and count as fused. Rows
that a product reads several times count once. Separate kernels, as in a library, move several times as much. A graph
that fits into a cache can be faster than the bound.
"""

import time
from statistics import median

import torch

from graphveil import Recipe

FLOAT, INDEX = 4, 4


def copy_bandwidth(device: torch.device, megabytes: int = 256) -> float:
    """The bandwidth of a copy in bytes per second, reads and writes; the median of nine copies.

    Args:
        device: where to copy.
        megabytes: the size of the array, which should not fit into a cache.
    """
    source = torch.zeros(megabytes << 18, device=device)
    target = torch.zeros_like(source)
    seconds = []
    for _ in range(9):
        started = time.perf_counter()
        target.copy_(source)
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return 2 * source.numel() * FLOAT / median(seconds)


def round_bytes(num_nodes: int, features: int, entries: int, pairs: int, weights: int, recipe: Recipe) -> int:
    """Compulsory bytes of one round of Algorithm 1 with two layers.

    Args:
        num_nodes: nodes of the graph.
        features: non-zero entries of the feature matrix.
        entries: non-zero entries of the adjacency matrix, with self-loops.
        pairs: pairs of nodes that the utility is trained on in a round.
        weights: weights of the encoder; those of the heads are few.
        recipe: the numbers of channels.
    """
    hidden, out = (num_nodes * c * FLOAT for c in (recipe.hidden_channels, recipe.out_channels))
    x, graph = features * (FLOAT + INDEX), entries * (FLOAT + INDEX)
    forward = [
        x + hidden,  # X W1
        graph + hidden + hidden + out,  # A (.), relu, dropout; stored for the backward pass; W2
        graph + out + out,  # A (.)
    ]
    heads = [pairs * (2 * INDEX + FLOAT) + out + out]  # pairs and labels, z in, its gradient out
    backward = [
        graph + out + hidden + hidden,  # A (.), the gradient of W2, backward through dropout and relu
        graph + hidden + x,  # A (.) and the gradient of W1
    ]
    optimizer = [7 * weights * FLOAT]
    return sum(forward + heads + backward + optimizer)
