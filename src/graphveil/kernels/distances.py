"""The loss of hyperbolic distances between pairs of nodes with its gradient, without arrays of (pairs, channels).

Nodes are given in polar coordinates: unit vectors and radii r. The distance d of a pair follows from

    h = sinh^2(d / 2) = sinh^2((r_u - r_v) / 2) + sinh(r_u) sinh(r_v) |u/|u| - v/|v||^2 / 4

and its logit is (radius - 4 asinh^2(sqrt(h)) / c) / temperature.
"""

import numpy as np

from graphveil.kernels.compiling import Array, Number, compiled, full, prefetch
from graphveil.kernels.elements import exp_of_negative, log_of_at_least_one, log_of_one_plus

AT_ONCE = 512
"""Entries of a block of rows, unless one row has more."""
AHEAD = 32
"""How many pairs before its use a row is loaded."""
SMALLEST = 1e-14
"""Smaller values of h are replaced by this one and have no gradient, as in `lorentz.squared_distance`."""


@compiled
def pair_losses(
    crow: Array,
    col: Array,
    longest: Number,
    sign: Number,
    share: Number,
    units: Array,
    polar: Array,
    head: Array,
    rows_per_run: Number,
    d_units: Array,
    d_radii: Array,
    sums: Array,
    start: int,
    stop: int,
) -> None:
    """Add the gradients at the nodes of some rows, and the sums of the loss, of slopes, and of slopes times logits.

    Args:
        sign: -1 for links, 1 for non-links.
        share: The weight of a pair.
        units: (nodes, channels).
        polar: (nodes, 4): sinh r, cosh r, e^(r/2) and e^(-r/2).
        head: (runs, 3): radius, temperature and curvature.
        sums: (nodes, 3).
    """
    channels, last = units.shape[1], crow[stop] - 1
    size = max(longest, AT_ONCE)
    room = full(size)
    chord, lift, height = np.zeros(room, np.float32), np.zeros(room, np.float32), np.zeros(room, np.float32)
    product, turn = np.zeros(room, np.float32), np.zeros(room, np.float32)
    slope, loss, logit = np.zeros(room, np.float32), np.zeros(room, np.float32), np.zeros(room, np.float32)
    row = start
    while row < stop:
        first, run, end = crow[row], row // rows_per_run, row + 1
        while end < stop and end // rows_per_run == run and crow[end + 1] - first <= size:
            end += 1
        for i in range(row, end):
            unit, at = units[i], polar[i]
            for k in range(crow[i] - first, crow[i + 1] - first):
                ahead = np.int64(col[min(first + k + AHEAD, last)])
                prefetch(units, ahead)
                prefetch(polar, ahead)
                j = np.uint64(col[first + k])
                other, to = units[j], polar[j]
                square = np.float32(0)
                for c in range(channels):
                    difference = unit[c] - other[c]
                    square += difference * difference
                half = (at[2] * to[3] - to[2] * at[3]) * np.float32(0.5)
                chord[k], lift[k] = square * np.float32(0.25), half
                product[k], turn[k] = at[0] * to[0], at[1] * to[0]
        radius, temperature, curvature = head[run, 0], head[run, 1], head[run, 2]
        for k in range(full(crow[end] - first)):
            half = lift[k]
            exact = half * half + product[k] * chord[k]
            h = max(exact, np.float32(SMALLEST))
            root, up = np.sqrt(h), np.sqrt(np.float32(1) + h)
            near = np.float32(1) - h * (np.float32(1 / 6) - h * np.float32(3 / 40))
            ratio = near if h < np.float32(1e-3) else log_of_at_least_one(root + up) / root
            angle = ratio * root
            value = (radius - np.float32(4) * angle * angle / curvature) / temperature
            x = sign * value
            w = exp_of_negative(-abs(x))
            upper = np.float32(1) / (np.float32(1) + w)
            of_logit = sign * share * (w * upper if x < 0 else upper)
            loss[k] = (np.float32(0) if x < 0 else x) + log_of_one_plus(w)
            logit[k], slope[k] = value * of_logit, of_logit
            of_height = np.float32(-4) * of_logit * ratio / (curvature * temperature * up)
            of_height = np.float32(0) if exact < np.float32(SMALLEST) else of_height
            height[k] = of_height * product[k] * np.float32(0.5)
            turn[k] = of_height * (half * np.sqrt(np.float32(1) + half * half) + turn[k] * chord[k])
        for i in range(row, end):
            unit, d_unit = units[i], d_units[i]
            total, d_radius = np.float32(0), np.float32(0)
            of_loss, of_slope, of_logit = np.float32(0), np.float32(0), np.float32(0)
            for k in range(crow[i] - first, crow[i + 1] - first):
                other, weight = units[np.uint64(col[first + k])], height[k]
                for c in range(channels):
                    d_unit[c] -= weight * other[c]
                total += weight
                d_radius += turn[k]
                of_loss += loss[k]
                of_slope += slope[k]
                of_logit += logit[k]
            for c in range(channels):
                d_unit[c] += total * unit[c]
            d_radii[i] += d_radius
            sums[i, 0] += of_loss
            sums[i, 1] += of_slope
            sums[i, 2] += of_logit
        row = end
