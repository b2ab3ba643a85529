"""Loops over the rows of a pattern for the shares of attention: softmax over j of leaky_relu(receiver_i + sender_j)."""

import numpy as np

from graphveil.kernels.compiling import Array, Number, compiled, full, prefetch
from graphveil.kernels.elements import exp_of_negative

AT_ONCE = 1024
"""Entries of a block of rows, unless one row has more."""
ABSENT = np.float32(-1e30)
"""The score of an entry that is not present."""
AHEAD = 16
"""How many entries before its use a row is loaded."""


@compiled
def shares(
    crow: Array,
    col: Array,
    longest: Number,
    present: Array,
    sender: Array,
    receiver: Array,
    slope: Number,
    out: Array,
    start: int,
    stop: int,
) -> None:
    """Write the share of each entry, (entries, heads), for rows from `start` to `stop`.

    leaky_relu ascends, so the largest score of a row belongs to the largest sender. An entry that is not present gets
    0; without entries that are absent, `present` has one element. Exponentials are computed for a block of rows at
    once.
    """
    heads = sender.shape[1]
    top, total = np.empty(heads, np.float32), np.empty(heads, np.float32)
    scores = np.zeros(full(max(longest, AT_ONCE) * heads), np.float32)
    all_present = len(present) == 1
    row = start
    while row < stop:
        first, end = crow[row], row + 1
        while end < stop and crow[end + 1] - first <= AT_ONCE:
            end += 1
        for i in range(row, end):
            to = receiver[i]
            top[:] = -np.inf
            for entry in range(crow[i], crow[i + 1]):
                is_present = all_present or present[entry]
                place = (entry - first) * heads
                of, here = sender[np.uint64(col[entry])], scores[place : place + heads]
                for h in range(heads):
                    raw = to[h] + of[h]
                    here[h] = raw if raw >= 0 else raw * slope
                    top[h] = max(top[h], here[h]) if is_present else top[h]
            for entry in range(crow[i], crow[i + 1]):
                is_present, place = all_present or present[entry], (entry - first) * heads
                here = scores[place : place + heads]
                for h in range(heads):
                    here[h] = here[h] - top[h] if is_present else ABSENT
        for k in range(full((crow[end] - first) * heads)):
            scores[k] = np.float32(0) if scores[k] <= ABSENT else exp_of_negative(scores[k])  # keeps NaN
        for i in range(row, end):
            total[:] = 0
            for entry in range(crow[i], crow[i + 1]):
                place = (entry - first) * heads
                here = scores[place : place + heads]
                for h in range(heads):
                    total[h] += here[h]
            for h in range(heads):
                total[h] = np.float32(1) / total[h]
            for entry in range(crow[i], crow[i + 1]):
                place = (entry - first) * heads
                here, share = scores[place : place + heads], out[entry]
                for h in range(heads):
                    share[h] = here[h] * total[h]
        row = end


@compiled
def slopes(
    crow: Array,
    col: Array,
    sender: Array,
    receiver: Array,
    slope: Number,
    share: Array,
    gradient: Array,
    out: Array,
    d_receiver: Array,
    start: int,
    stop: int,
) -> None:
    """Write the gradient at each score and at each receiver, for rows from `start` to `stop`."""
    heads = sender.shape[1]
    mean = np.empty(heads, np.float32)
    for row in range(start, stop):
        to, d_to = receiver[row], d_receiver[row]
        mean[:] = 0
        d_to[:] = 0
        for entry in range(crow[row], crow[row + 1]):
            g, s = gradient[entry], share[entry]
            for h in range(heads):
                mean[h] += s[h] * g[h]
        for entry in range(crow[row], crow[row + 1]):
            g, s, of, here = gradient[entry], share[entry], sender[np.uint64(col[entry])], out[entry]
            for h in range(heads):
                d_score = s[h] * (g[h] - mean[h])
                d_raw = d_score if to[h] + of[h] >= 0 else d_score * slope
                here[h] = d_raw
                d_to[h] += d_raw


@compiled
def column_sums(t_crow: Array, t_order: Array, values: Array, out: Array, start: int, stop: int) -> None:
    """Write the sums of values (entries, heads) of each column, by the rows of the transpose."""
    for column in range(start, stop):
        here = out[column]
        here[:] = 0
        for place in range(t_crow[column], t_crow[column + 1]):
            of = values[np.uint64(t_order[place])]
            for h in range(len(here)):
                here[h] += of[h]


@compiled
def product_backward(
    t_crow: Array,
    t_col: Array,
    weights: Array,
    dense: Array,
    gradient: Array,
    d_weights: Array,
    d_dense: Array,
    start: int,
    stop: int,
) -> None:
    """Write the gradients of a product with the shares of one head, reading each row of the product's gradient once.

    Args:
        t_crow: The rows of the transposed pattern; those from `start` to `stop` are done.
        t_col: Its columns.
        weights: (entries,), in the order of the transposed pattern, as are `d_weights`.
        dense: (columns, channels).
        gradient: The gradient at the product, (rows, channels).
        d_weights: (entries,).
        d_dense: (columns, channels).
    """
    channels = dense.shape[1]
    last = t_crow[stop] - 1
    for column in range(start, stop):
        own, d_own = dense[column], d_dense[column]
        d_own[:] = 0
        for place in range(t_crow[column], t_crow[column + 1]):
            prefetch(gradient, np.int64(t_col[min(place + AHEAD, last)]))
            row = gradient[np.uint64(t_col[place])]
            weight, product = weights[place], np.float32(0)
            for c in range(channels):
                product += row[c] * own[c]
            for c in range(channels):
                d_own[c] += weight * row[c]
            d_weights[place] = product
