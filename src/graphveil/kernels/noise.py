"""Random numbers of `graphveil.randomness.Noise`, and what is made of them in the same pass.

The numbers are those of `Noise`, bit for bit: a hash of two keys of the step and of the position.
"""

import numpy as np

from graphveil.kernels.compiling import Array, Number, compiled, inlined

BLOCK = 2048
"""Coins of a block; the hashes of a block stay in the cache."""


@inlined
def hashed(position: Number, first: Number, second: Number) -> Number:
    """The random 32 bits of a position."""
    x = np.uint32(np.uint32(position) * np.uint32(0x9E3779B1) + first)
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(0x7FEB352D))
    x = np.uint32(x + second)
    x = np.uint32(x ^ (x >> np.uint32(15)))
    x = np.uint32(x * np.uint32(0x846CA68B))
    return np.uint32(x ^ (x >> np.uint32(16)))


@inlined
def coin(position: Number, first: Number, second: Number, ones: Number) -> Number:
    """Whether the coin of a position is 1: half of a hash, as a signed number, is among the `ones` lowest."""
    shift = np.uint32(np.uint32(position & 1) << np.uint32(4))
    half = np.uint32(hashed(np.uint32(position >> 1), first, second) >> shift) ^ np.uint32(0x8000)
    return np.uint32(half & np.uint32(0xFFFF)) < ones


@compiled
def coins(first: Number, second: Number, ones: Number, out: Array, start: int, stop: int) -> None:
    """Write coins as 1 and 0, for blocks from `start` to `stop`."""
    most = np.uint16(ones - 1)
    hashes = np.empty(BLOCK // 2, np.uint32)
    halves = hashes.view(np.uint16)
    for block in range(start, stop):
        first_coin = block * BLOCK
        count = min(BLOCK, len(out) - first_coin)
        for k in range(BLOCK // 2):
            hashes[k] = hashed(first_coin // 2 + k, first, second) ^ np.uint32(0x80008000)
        here = out[first_coin : first_coin + count]
        for k in range(count):
            here[k] = halves[k] <= most


@compiled
def integers(first: Number, second: Number, high: Number, out: Array, start: int, stop: int) -> None:
    """Write integers below `high`, not yet in order, from 53 random bits each."""
    count = len(out)
    for k in range(start, stop):
        low = np.uint64(hashed(k, first, second))
        top = np.uint64(hashed(count + k, first, second)) & np.uint64(0x1FFFFF)
        fraction = np.float64(np.int64(top << np.uint64(32) | low)) * 2.0**-53
        out[k] = min(np.int64(fraction * high), high - 1)
