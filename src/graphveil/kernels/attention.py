"""Loops over the rows of a pattern for the shares of attention: softmax over j of leaky_relu(receiver_i + sender_j)."""

import numpy as np

from graphveil.kernels.compiling import Array, Number, compiled
from graphveil.kernels.elements import exp_of_negative


@compiled
def shares(
    crow: Array,
    col: Array,
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
    0; without entries that are absent, `present` has one element.
    """
    heads = sender.shape[1]
    top, total = np.empty(heads, np.float32), np.empty(heads, np.float32)
    all_present = len(present) == 1
    for row in range(start, stop):
        to = receiver[row]
        top[:] = -np.inf
        total[:] = 0
        for entry in range(crow[row], crow[row + 1]):
            if all_present or present[entry]:
                of = sender[np.uint64(col[entry])]
                for h in range(heads):
                    top[h] = max(top[h], of[h])
        for h in range(heads):
            raw = to[h] + top[h]
            top[h] = raw if raw >= 0 else raw * slope
        for entry in range(crow[row], crow[row + 1]):
            of, here = sender[np.uint64(col[entry])], out[entry]
            is_present = all_present or present[entry]
            for h in range(heads):
                raw = to[h] + of[h]
                score = raw if raw >= 0 else raw * slope
                here[h] = exp_of_negative(score - top[h]) if is_present else np.float32(0)
                total[h] += here[h]
        for entry in range(crow[row], crow[row + 1]):
            here = out[entry]
            for h in range(heads):
                here[h] /= total[h]


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
