"""The lower bound: the bytes that a round must move, over the bandwidth of a plain copy.

Counted is compulsory traffic alone. A product with the whole graph must be finished before the next can start, so each
stage reads its operands once and writes its result once; whatever could be fused into a stage costs nothing, rows that
a product reads again and again are counted once, and so is what fits into a cache. No program moves less, and none
written with a library's separate kernels moves so little.
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
        pairs: that the utility is learned from in a round. weights: of all three players.
    """
    hidden, out = (num_nodes * c * FLOAT for c in (recipe.hidden_channels, recipe.out_channels))
    x, graph = features * (FLOAT + INDEX), entries * (FLOAT + INDEX)
    forward = [x + hidden, graph + 2 * hidden, hidden + out, graph + 2 * out]
    # pairs and their answers are read forward and backward; the embeddings are read, and their gradient is written
    heads = [2 * pairs * (2 * INDEX + FLOAT) + 3 * out]
    backward = [graph + 2 * out, hidden + out, out + 2 * hidden, graph + 2 * hidden, x + hidden]
    optimizer = [7 * weights * FLOAT]
    return sum(forward + heads + backward + optimizer)
