"""The loss of bilinear logits z_u' phi z_v + b of pairs of nodes with its gradient, without arrays of pairs."""

import numpy as np

from graphveil.kernels.compiling import Array, Number, compiled, full, prefetch
from graphveil.kernels.elements import exp_of_negative, log_of_one_plus

AT_ONCE = 512
"""Pairs of a block of rows, unless one row has more."""
AHEAD = 64
"""How many pairs before its use a row is loaded."""


@compiled
def pair_losses(
    crow: Array,
    col: Array,
    longest: Number,
    sign: Number,
    share: Number,
    left: Array,
    right: Array,
    bias: Array,
    rows_per_run: Number,
    total: Array,
    sums: Array,
    start: int,
    stop: int,
) -> None:
    """Add D right for some rows, where D has the slope of the loss at each pair, and the sums of losses and of slopes.

    Args:
        longest: The number of pairs of the longest row.
        sign: -1 for links, 1 for non-links.
        share: The weight of a pair.
        left: z phi, (nodes, channels).
        right: z, (nodes, channels).
        bias: (runs,).
        total: D right, (nodes, channels).
        sums: (nodes, 2).
    """
    channels = right.shape[1]
    size = max(longest, AT_ONCE)
    slope, loss = np.zeros(full(size), np.float32), np.zeros(full(size), np.float32)
    step, last = sign * share, crow[stop] - 1
    row = start
    while row < stop:
        first, end = crow[row], row + 1
        while end < stop and crow[end + 1] - first <= size:
            end += 1
        for i in range(row, end):
            own, shift = left[i], bias[i // rows_per_run]
            for k in range(crow[i] - first, crow[i + 1] - first):
                prefetch(right, np.int64(col[min(first + k + AHEAD, last)]))
                other = right[np.uint64(col[first + k])]
                logit = np.float32(0)
                for c in range(channels):
                    logit += own[c] * other[c]
                slope[k] = logit + shift
        for k in range(full(crow[end] - first)):
            x = sign * slope[k]
            w = exp_of_negative(-abs(x))
            upper = np.float32(1) / (np.float32(1) + w)
            slope[k] = step * (w * upper if x < 0 else upper)
            loss[k] = (np.float32(0) if x < 0 else x) + log_of_one_plus(w)
        for i in range(row, end):
            here = total[i]
            of_loss, of_slope = np.float32(0), np.float32(0)
            for k in range(crow[i] - first, crow[i + 1] - first):
                other, weight = right[np.uint64(col[first + k])], slope[k]
                for c in range(channels):
                    here[c] += weight * other[c]
                of_loss += loss[k]
                of_slope += weight
            sums[i, 0] += of_loss
            sums[i, 1] += of_slope
        row = end
