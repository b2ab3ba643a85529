"""Loops over the elements of dense arrays: what follows a product, and the loss of logits."""

import numpy as np

from graphveil.kernels.compiling import Array, Number, compiled, inlined
from graphveil.kernels.noise import coin, hashed

ROWS = 256
"""Rows of a block, of which column sums are taken first."""
LOGITS = 4096
"""Logits of a block, of which losses are summed first."""


@inlined
def exp_of_negative(x: Number) -> Number:
    """e^x of a float32 of at most 0, with an error of 2e-7 of the value."""
    x = np.float32(-87.0) if x < np.float32(-87.0) else x
    n = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
    f = (x - n * np.float32(0.693359375)) + n * np.float32(2.12194440e-4)
    p = np.float32(1 / 5040)
    p = p * f + np.float32(1 / 720)
    p = p * f + np.float32(1 / 120)
    p = p * f + np.float32(1 / 24)
    p = p * f + np.float32(1 / 6)
    p = p * f + np.float32(0.5)
    p = p * f + np.float32(1)
    p = p * f + np.float32(1)
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return p * power


@inlined
def log_of_one_plus(w: Number) -> Number:
    """log(1 + w) of a float32 from 0 to 1: 2 artanh(w / (2 + w))."""
    u = w / (np.float32(2) + w)
    s = u * u
    p = np.float32(1 / 13)
    p = p * s + np.float32(1 / 11)
    p = p * s + np.float32(1 / 9)
    p = p * s + np.float32(1 / 7)
    p = p * s + np.float32(1 / 5)
    p = p * s + np.float32(1 / 3)
    p = p * s + np.float32(1)
    return np.float32(2) * u * p


@compiled
def kept_values(
    values: Array,
    places: Array,
    first: Number,
    second: Number,
    ones: Number,
    scale: Number,
    out: Array,
    start: int,
    stop: int,
) -> None:
    """Write scale * values where the coins of their places are 1, else 0."""
    x, place, here = values[start:stop], places[start:stop], out[start:stop]
    for k in range(len(x)):
        kept = coin(place[k], first, second, ones)
        here[k] = x[k] * scale if kept else np.float32(0)


@inlined
def hash_row(position: Number, first: Number, second: Number, hashes: Array) -> Number:
    """Write the hashes of the coins from `position` on, two coins in each; return the half that holds the first one."""
    pair = position >> 1
    for k in range(len(hashes)):
        hashes[k] = hashed(np.uint32(pair + k), first, second) ^ np.uint32(0x80008000)
    return position & 1


@inlined
def activate_and_drop(
    h: Array,
    bias: Array,
    is_relu: bool,
    first: Number,
    second: Number,
    ones: Number,
    scale: Number,
    out: Array,
    start: int,
    stop: int,
) -> None:
    """The body of `relu_and_drop` and `elu_and_drop`, which is compiled for each of them."""
    channels = h.shape[1]
    most = np.uint16(ones - 1)
    hashes = np.empty(channels // 2 + 2, np.uint32)
    halves = hashes.view(np.uint16)
    for row in range(start, stop):
        odd = hash_row(row * channels, first, second, hashes)
        x, here, half = h[row], out[row], halves[odd : odd + channels]
        for c in range(channels):
            value = x[c] + bias[c]
            if is_relu:
                value = np.float32(0) if value <= 0 else value * scale  # keeps NaN
            else:
                value = (exp_of_negative(value) - np.float32(1) if value <= 0 else value) * scale
            here[c] = value if half[c] <= most else np.float32(0)


@compiled
def relu_and_drop(
    h: Array, bias: Array, first: Number, second: Number, ones: Number, scale: Number, out: Array, start: int, stop: int
) -> None:
    """Write scale * relu(h + bias) where coins are 1, else 0, for rows from `start` to `stop`."""
    activate_and_drop(h, bias, True, first, second, ones, scale, out, start, stop)


@compiled
def elu_and_drop(
    h: Array, bias: Array, first: Number, second: Number, ones: Number, scale: Number, out: Array, start: int, stop: int
) -> None:
    """Write scale * elu(h + bias) where coins are 1, else 0, for rows from `start` to `stop`."""
    activate_and_drop(h, bias, False, first, second, ones, scale, out, start, stop)


@compiled
def relu_and_drop_backward(
    gradient: Array, out: Array, scale: Number, d_h: Array, d_bias: Array, start: int, stop: int
) -> None:
    """Write the gradient at h, and its column sums of each block of rows, for blocks from `start` to `stop`."""
    for block in range(start, stop):
        sums = d_bias[block]
        sums[:] = 0
        for row in range(block * ROWS, min((block + 1) * ROWS, len(out))):
            g, y, here = gradient[row], out[row], d_h[row]
            for c in range(len(g)):
                value = g[c] * scale if y[c] > 0 else np.float32(0)
                here[c] = value
                sums[c] += value


@compiled
def elu_and_drop_backward(
    gradient: Array,
    out: Array,
    first: Number,
    second: Number,
    ones: Number,
    scale: Number,
    d_h: Array,
    d_bias: Array,
    start: int,
    stop: int,
) -> None:
    """Write the gradient at h, and its column sums of each block of rows, for blocks from `start` to `stop`.

    The slope of elu follows from its value, but a value of 0 may also be dropped, so the coins are needed again.
    """
    channels = out.shape[1]
    most = np.uint16(ones - 1)
    hashes = np.empty(channels // 2 + 2, np.uint32)
    halves = hashes.view(np.uint16)
    for block in range(start, stop):
        sums = d_bias[block]
        sums[:] = 0
        for row in range(block * ROWS, min((block + 1) * ROWS, len(out))):
            odd = hash_row(row * channels, first, second, hashes)
            g, y, here, half = gradient[row], out[row], d_h[row], halves[odd : odd + channels]
            for c in range(channels):
                value = g[c] * (scale if y[c] > 0 else y[c] + scale)
                value = value if half[c] <= most else np.float32(0)
                here[c] = value
                sums[c] += value


@compiled
def logistic_loss(
    logits: Array, sign: Number, share: Number, losses: Array, slopes: Array, start: int, stop: int
) -> None:
    """Write the sums of log(1 + e^(sign * logit)) of blocks, and share times their slopes, from `start` to `stop`."""
    step = sign * share
    for block in range(start, stop):
        here = logits[block * LOGITS : (block + 1) * LOGITS]
        slope = slopes[block * LOGITS : (block + 1) * LOGITS]
        total = np.float32(0)
        for k in range(len(here)):
            x = sign * here[k]
            w = exp_of_negative(-abs(x))
            upper = np.float32(1) / (np.float32(1) + w)
            slope[k] = step * (w * upper if x < 0 else upper)
            total += (np.float32(0) if x < 0 else x) + log_of_one_plus(w)
        losses[block] = total


@inlined
def log_of_at_least_one(x: Number) -> Number:
    """log x of a finite float32 of at least 1 (Cephes): x = 2^e m with m near 1, and a polynomial in m - 1."""
    bits = np.float32(x).view(np.int32)
    exponent = np.int32(bits >> np.int32(23)) - np.int32(127)
    m = np.int32((bits & np.int32(0x7FFFFF)) | np.int32(0x3F800000)).view(np.float32)
    is_large = m > np.float32(1.41421356)
    m = m * np.float32(0.5) if is_large else m
    e = np.float32(exponent + (1 if is_large else 0))
    f = m - np.float32(1)
    square = f * f
    p = np.float32(7.0376836292e-2)
    p = p * f - np.float32(1.1514610310e-1)
    p = p * f + np.float32(1.1676998740e-1)
    p = p * f - np.float32(1.2420140846e-1)
    p = p * f + np.float32(1.4249322787e-1)
    p = p * f - np.float32(1.6668057665e-1)
    p = p * f + np.float32(2.0000714765e-1)
    p = p * f - np.float32(2.4999993993e-1)
    p = p * f + np.float32(3.3333331174e-1)
    tail = p * f * square - np.float32(2.12194440e-4) * e - np.float32(0.5) * square
    return f + tail + np.float32(0.693359375) * e
