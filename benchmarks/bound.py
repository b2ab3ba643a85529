"""The lower bound: the bytes that a round must move, over the bandwidth of a plain copy.

Counted is compulsory traffic alone: a product with the whole graph must be finished before what follows can start, so
that its operand is written and read once; everything between two such products is row by row and counts as fused; rows
that a product reads again and again count once. Kernels written one by one, as a library's are, move several times as
much, and a graph that fits into a cache can even be faster.
"""

import time
from statistics import median

import torch

from graphveil import Recipe

FLOAT, INDEX = 4, 4


def copy_bandwidth(device: torch.device, megabytes: int = 256) -> float:
    """Bytes a second that a copy moves, reading and writing, of an array that no cache holds; median of nine."""
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
        features: entries of the feature matrix. entries: of the adjacency, self-loops included.
        pairs: that the utility is learned from in a round. weights: of the encoder; those of the heads are few.
    """
    hidden, out = (num_nodes * c * FLOAT for c in (recipe.hidden_channels, recipe.out_channels))
    x, graph = features * (FLOAT + INDEX), entries * (FLOAT + INDEX)
    forward = [
        x + hidden,  # X W1
        graph + hidden + hidden + out,  # A (.), relu, dropout; kept for the way back; W2
        graph + out + out,  # A (.)
    ]
    heads = [pairs * (2 * INDEX + FLOAT) + out + out]  # pairs and answers, z in, its gradient out
    backward = [
        graph + out + hidden + hidden,  # A (.), the gradient of W2 with what was kept, back through dropout and relu
        graph + hidden + x,  # A (.) and the gradient of W1
    ]
    optimizer = [7 * weights * FLOAT]
    return sum(forward + heads + backward + optimizer)
