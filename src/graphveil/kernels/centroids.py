"""Lorentz centroids of the neighbours of each node, and their gradient.

The weighted sum (t, s) of points has L = t^2 - |s|^2 > 0, and the centroid is the point s / sqrt(c L). L is a
difference of squares, so sums are in float64; points and centroids are in float32.

With the gradient g at a centroid m, whose time coordinate is m_0, the gradient at the sum is

    d_s = (g + c <g, m> m) / sqrt(c L),     d_t = -c <g, m> m_0 / sqrt(c L),

and a point x with time coordinate x_0 gets, from each sum that it is a part of, its weight times d_s + d_t x / x_0.
"""

import numpy as np

from graphveil.kernels.compiling import Array, Number, compiled, inlined, prefetch

AHEAD = 16
"""How many entries before its use a row is loaded."""


@inlined
def add_rows(crow: Array, col: Array, weights: Array, rows: Array, row: int, last: int, total: Array) -> None:
    """Add the weighted rows of the neighbours to `total`, four at once; what is missing to four has a weight of 0."""
    end = crow[row + 1]
    for entry in range(crow[row], end, 4):
        second, third, fourth = min(entry + 1, end - 1), min(entry + 2, end - 1), min(entry + 3, end - 1)
        for ahead in range(entry + AHEAD, entry + AHEAD + 4):
            prefetch(rows, np.int64(col[min(ahead, last)]))
        a, b = rows[np.uint64(col[entry])], rows[np.uint64(col[second])]
        c, d = rows[np.uint64(col[third])], rows[np.uint64(col[fourth])]
        of_a = np.float64(weights[entry])
        of_b = np.float64(weights[second]) if second > entry else 0.0
        of_c = np.float64(weights[third]) if third > second else 0.0
        of_d = np.float64(weights[fourth]) if fourth > third else 0.0
        for k in range(len(total)):
            total[k] += (of_a * a[k] + of_b * b[k]) + (of_c * c[k] + of_d * d[k])


@compiled
def centroids(
    crow: Array,
    col: Array,
    weights: Array,
    times: Array,
    points: Array,
    curvature: Array,
    rows_per_run: Number,
    out: Array,
    lengths: Array,
    start: int,
    stop: int,
) -> None:
    """Write the centroids of some rows, and sqrt(c L).

    Args:
        weights: (entries,).
        times: Time coordinates, (nodes,) float64.
        points: (nodes, channels).
        curvature: (runs,) float64.
        out: (rows, channels).
        lengths: (rows,) float64.
    """
    channels, last = points.shape[1], crow[stop] - 1
    total = np.empty(channels, np.float64)
    for row in range(start, stop):
        total[:] = 0
        time = np.float64(0)
        for entry in range(crow[row], crow[row + 1]):
            time += np.float64(weights[entry]) * times[np.uint64(col[entry])]
        add_rows(crow, col, weights, points, row, last, total)
        square = np.float64(0)
        for c in range(channels):
            square += total[c] * total[c]
        length = np.sqrt(curvature[row // rows_per_run] * (time * time - square))
        lengths[row] = length
        for c in range(channels):
            out[row, c] = total[c] / length


@compiled
def at_sums(
    centers: Array,
    lengths: Array,
    gradient: Array,
    curvature: Array,
    rows_per_run: Number,
    out: Array,
    d_curvature: Array,
    start: int,
    stop: int,
) -> None:
    """Write the gradients at the sums of some rows, and the part of the curvature's gradient that the scaling has.

    Args:
        centers: (rows, channels).
        lengths: (rows,) float64.
        gradient: The gradient at the centroids, (rows, channels).
        curvature: (runs,) float64.
        out: Time first, (rows, 1 + channels) float64.
        d_curvature: (rows,) float64.
    """
    channels = centers.shape[1]
    for row in range(start, stop):
        center, of_center, here = centers[row], gradient[row], out[row]
        product, square = np.float64(0), np.float64(0)
        for c in range(channels):
            at = np.float64(center[c])
            product += of_center[c] * at
            square += at * at
        bend, scale = curvature[row // rows_per_run], 1 / lengths[row]
        here[0] = -bend * product * np.sqrt(1 / bend + square) * scale
        for c in range(channels):
            here[1 + c] = (of_center[c] + bend * product * center[c]) * scale
        d_curvature[row] = -product / (2 * bend)


@compiled
def at_points(
    crow: Array,
    col: Array,
    weights: Array,
    of_sums: Array,
    times: Array,
    points: Array,
    curvature: Array,
    rows_per_run: Number,
    out: Array,
    d_curvature: Array,
    start: int,
    stop: int,
) -> None:
    """Write the gradients at some points, and add the part of the curvature's gradient that their time has.

    Args:
        crow: The rows of the transposed pattern, one for each point.
        weights: (entries,), in the order of the transposed pattern.
        of_sums: The result of `at_sums`.
        times: (nodes,) float64.
        points: (nodes, channels).
        curvature: (runs,) float64.
        out: (nodes, channels).
        d_curvature: (nodes,) float64.
    """
    channels, last = points.shape[1], crow[stop] - 1
    total = np.empty(1 + channels, np.float64)
    for node in range(start, stop):
        total[:] = 0
        add_rows(crow, col, weights, of_sums, node, last, total)
        bend, slope = curvature[node // rows_per_run], total[0] / times[node]
        for c in range(channels):
            out[node, c] = total[1 + c] + slope * points[node, c]
        d_curvature[node] -= slope / (2 * bend * bend)
