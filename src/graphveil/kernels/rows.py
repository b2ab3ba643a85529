"""Products of the rows of a matrix with themselves and with a vector, and combinations of its rows with the vector."""

import numpy as np

from graphveil.kernels.compiling import Array, compiled
from graphveil.kernels.elements import ROWS


@compiled
def products(x: Array, vector: Array, out: Array, start: int, stop: int) -> None:
    """Write <x_i, x_i> and <x_i, vector>, (n, 2), for rows from `start` to `stop`."""
    for row in range(start, stop):
        here = x[row]
        square, product = np.float32(0), np.float32(0)
        for c in range(len(here)):
            square += here[c] * here[c]
            product += here[c] * vector[c]
        out[row, 0], out[row, 1] = square, product


@compiled
def products_backward(
    x: Array, vector: Array, gradient: Array, d_x: Array, d_vector: Array, start: int, stop: int
) -> None:
    """Write the gradient at x, and that at the vector for each block of rows, for blocks from `start` to `stop`."""
    for block in range(start, stop):
        sums = d_vector[block]
        sums[:] = 0
        for row in range(block * ROWS, min((block + 1) * ROWS, len(x))):
            of_square, of_product, values, here = 2 * gradient[row, 0], gradient[row, 1], x[row], d_x[row]
            for c in range(len(values)):
                here[c] = of_square * values[c] + of_product * vector[c]
            for c in range(len(values)):
                sums[c] += of_product * values[c]


@compiled
def combinations(x: Array, vector: Array, factors: Array, out: Array, start: int, stop: int) -> None:
    """Write a_i x_i + b_i vector with `factors` (a_i, b_i), for rows from `start` to `stop`."""
    for row in range(start, stop):
        of_x, of_vector, values, here = factors[row, 0], factors[row, 1], x[row], out[row]
        for c in range(len(values)):
            here[c] = of_x * values[c] + of_vector * vector[c]


@compiled
def combinations_backward(
    x: Array,
    vector: Array,
    factors: Array,
    gradient: Array,
    d_x: Array,
    d_factors: Array,
    d_vector: Array,
    start: int,
    stop: int,
) -> None:
    """Write the gradients at x and at the factors, and that at the vector for each block of rows, for some blocks."""
    for block in range(start, stop):
        sums = d_vector[block]
        sums[:] = 0
        for row in range(block * ROWS, min((block + 1) * ROWS, len(x))):
            of_x, of_vector, values, g, here = factors[row, 0], factors[row, 1], x[row], gradient[row], d_x[row]
            first, second = np.float32(0), np.float32(0)
            for c in range(len(values)):
                first += g[c] * values[c]
                second += g[c] * vector[c]
            for c in range(len(values)):
                here[c] = of_x * g[c]
            for c in range(len(values)):
                sums[c] += of_vector * g[c]
            d_factors[row, 0], d_factors[row, 1] = first, second
