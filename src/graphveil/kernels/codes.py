"""Loops of product codes: the distribution over all codes from the logits of each group of values."""

import numpy as np

from graphveil.kernels.compiling import Array, Number, compiled
from graphveil.kernels.elements import exp_of_negative


@compiled
def outer_products(logits: Array, groups: Number, size: Number, p: Array, q: Array, start: int, stop: int) -> None:
    """Write the softmax of each group, and the outer product of all groups, for rows from `start` to `stop`."""
    before = np.empty(q.shape[1], np.float32)
    for row in range(start, stop):
        x, share, out = logits[row], p[row], q[row]
        for first in range(0, groups * size, size):
            top = x[first]
            for k in range(first + 1, first + size):
                top = max(top, x[k])
            total = np.float32(0)
            for k in range(first, first + size):
                share[k] = exp_of_negative(x[k] - top)
                total += share[k]
            for k in range(first, first + size):
                share[k] /= total
        count = size
        for k in range(size):  # copies of slices take numba four times as long to compile as the rest of this loop
            out[k] = share[k]
        for first in range(size, groups * size, size):
            for k in range(count):
                before[k] = out[k]
            for a in range(count):
                factor, place = before[a], a * size
                for b in range(size):
                    out[place + b] = factor * share[first + b]
            count *= size


@compiled
def outer_products_backward(
    d_q: Array, p: Array, groups: Number, size: Number, d_logits: Array, start: int, stop: int
) -> None:
    """Write the gradient at the logits, for rows from `start` to `stop`, from the last group to the first."""
    codes = d_q.shape[1]
    gradient, products = np.empty(codes, np.float32), np.empty((groups, codes), np.float32)
    for row in range(start, stop):
        share, d_x = p[row], d_logits[row]
        for k in range(size):
            products[0, k] = share[k]
        count = size
        for group in range(1, groups):
            for a in range(count):
                factor, place = products[group - 1, a], a * size
                for b in range(size):
                    products[group, place + b] = factor * share[group * size + b]
            count *= size
        for k in range(codes):
            gradient[k] = d_q[row, k]
        for group in range(groups - 1, -1, -1):
            first, count = group * size, count // size
            here = d_x[first : first + size]
            here[:] = 0
            for a in range(count):
                factor, place = products[group - 1, a] if group > 0 else np.float32(1), a * size
                total = np.float32(0)
                for b in range(size):
                    value = gradient[place + b]
                    here[b] += value * factor
                    total += value * share[first + b]
                gradient[a] = total  # the places up to a are not needed any more
            mean = np.float32(0)
            for b in range(size):
                mean += here[b] * share[first + b]
            for b in range(size):
                here[b] = share[first + b] * (here[b] - mean)
