"""Every random number comes from a named stream of one seed.

A stream is a function of (seed, names) alone: `generator(0, "split", "links")` is the same whatever ran before it. The
random numbers of the steps of a training are `Noise`, a function of (seed, name, step, position) alone. So a resumed
run needs no saved generator, random numbers of an adversary do not affect those of the encoder, and a run draws the
same numbers alone, in a batch, on a CPU and on a GPU.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from graphveil import kernels
from graphveil.errors import GraphveilError


def check_seed(seed: object) -> None:
    """Refuse a seed that is not a whole number: any text could name a stream, but a run could not be repeated by it."""
    if not isinstance(seed, Integral) or isinstance(seed, bool):
        raise GraphveilError(f"seed is {seed!r}: expected a whole number.")


def stream(seed: int, *names: str | int) -> int:
    """Return a 63-bit seed for the stream called `names`."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *names: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a fresh generator for the stream called `names`."""
    return torch.Generator(device).manual_seed(stream(seed, *names))


def hashed_names(key: str, names: Sequence[str]) -> Tensor:
    """Return a 63-bit number for each name, (names,) int64, which depends only on the key and the name."""
    digests = [hashlib.blake2b(name.encode(), digest_size=8, key=key.encode()[:64]).digest() for name in names]
    return torch.from_numpy((np.frombuffer(b"".join(digests), dtype=np.uint64) >> np.uint64(1)).astype(np.int64))


def uniform_by_name(key: str, names: Sequence[str]) -> Tensor:
    """Return a number in [0, 1) for each name, (names,) float64, which depends only on the key and the name."""
    return (hashed_names(key, names) >> 10).double() / 2**53


def draw(shares: Tensor, uniform: Tensor) -> Tensor:
    """Sample a class from each distribution, (...) int64.

    Args:
        shares: Distributions, (..., C).
        uniform: A number in [0, 1) for each of them, (...).
    """
    return (shares.double().cumsum(dim=-1) < uniform[..., None]).sum(dim=-1).clamp(max=shares.size(-1) - 1)


@contextmanager
def global_stream(seed: int, *names: str | int) -> Iterator[None]:
    """Seed torch's global generators (for dropout and initialisation) by this stream inside, and restore them after."""
    with torch.random.fork_rng():
        torch.manual_seed(stream(seed, *names))
        yield


class Noise:
    """Random bits of a batch of runs: a hash of each run's key for the step and of the position.

    torch's generators draw numbers one after the other, which costs twelve times as much on a CPU, and one kernel per
    run on a GPU. A hash has no state: all runs of a batch draw at once, also inside a recorded CUDA graph.

    Args:
        seeds: The seeds of the runs.
        name: The name of the stream.
        steps: The number of steps.
        clock: The present step, (1,) int64.
    """

    def __init__(self, seeds: Sequence[int], name: str, steps: int, clock: Tensor) -> None:
        self.runs = len(seeds)
        self._keys = torch.from_numpy(_keys(seeds, name, steps)).to(clock.device)
        self._clock = clock

    def bits(self, count: int) -> Tensor:
        """Return uniform 32-bit integers, (runs, count)."""
        first, second = self._keys.index_select(0, self._clock)[0].unsqueeze(-1).unbind(dim=1)
        x = torch.arange(count, dtype=torch.int32, device=first.device) * -1640531535 + first
        # The finaliser "lowbias32" of hash-prospector; the second key in its middle prevents two steps from drawing
        # the same numbers at a shift. torch shifts arithmetically, hence the masks.
        x ^= (x >> 16) & 0xFFFF
        x *= 0x7FEB352D
        x += second
        x ^= (x >> 15) & 0x1FFFF
        x *= -2073254261
        x ^= (x >> 16) & 0xFFFF
        return x

    def coins(self, probability: float, count: int) -> Tensor:
        """Return 1 with `probability`, rounded to a positive multiple of 2^-16, else 0, (runs, count).

        The result is int16, since bool is much slower.
        """
        ones = ones_of(probability)
        if kernels.usable(self._keys):
            coins = torch.empty(self.runs, count, dtype=torch.int16)
            for of_run, (first, second) in zip(coins.numpy(), self.keys(), strict=True):
                blocks = -(-count // kernels.noise.BLOCK)
                kernels.compiling.over(blocks, count, kernels.noise.coins, first, second, np.uint32(ones), of_run)
            return coins
        halves = self.bits((count + 1) // 2).view(torch.int16)
        return halves.le_(ones - 32769)[:, :count].contiguous()

    def keys(self) -> np.ndarray:
        """Return the two keys of each run at the present step, (runs, 2) uint32; on a CPU only."""
        return self._keys[int(self._clock)].numpy().view(np.uint32)

    def normal(self, count: int) -> Tensor:
        """Return standard normal numbers, (runs, count) float32, by the Box-Muller transform."""
        half = (count + 1) // 2
        radius, angle = ((self.bits(2 * half).long() & 0xFFFFFFFF).double() + 0.5).mul_(2.0**-32).chunk(2, dim=1)
        radius, angle = (-2 * radius.log()).sqrt(), 2 * torch.pi * angle
        return torch.cat([radius * angle.cos(), radius * angle.sin()], dim=1)[:, :count].float()

    def ascending_integers(self, high: int, count: int) -> Tensor:
        """Return uniform integers in [0, high), ascending for each run, (runs, count) int64; high is below 2^53."""
        integers = self._integers(high, count)
        if kernels.usable(integers):
            integers.numpy().sort(axis=1)  # its vectorised sort is five to twelve times as fast as torch's
            return integers
        first = torch.arange(self.runs, device=integers.device)[:, None] * high
        # one vector for all runs, since torch uses a radix sort for a single vector of integers: ten times as fast
        return (integers + first).flatten().sort(stable=True).values.view(self.runs, count) - first

    def _integers(self, high: int, count: int) -> Tensor:
        if kernels.usable(self._keys):
            integers = torch.empty(self.runs, count, dtype=torch.long)
            for of_run, (first, second) in zip(integers.numpy(), self.keys(), strict=True):
                kernels.compiling.over(count, count, kernels.noise.integers, first, second, high, of_run)
            return integers
        low, top = self.bits(2 * count).long().chunk(2, dim=1)
        fraction = ((top & 0x1FFFFF) << 32 | low & 0xFFFFFFFF).double() * 2.0**-53
        return (fraction * high).long().clamp_(max=high - 1)


def ones_of(probability: float) -> int:
    """Return how many of the 65,536 values of an int16 give a coin of 1: at least one."""
    return min(max(round(probability * 65536), 1), 65536)


def _keys(seeds: Sequence[int], name: str, steps: int) -> np.ndarray:
    """Two 32-bit keys for each step and run, from the streams of the runs by SplitMix64, (steps, runs, 2) int32."""
    base = np.array([stream(seed, name) for seed in seeds], dtype=np.uint64)
    with np.errstate(over="ignore"):
        x = base + np.arange(1, steps + 1, dtype=np.uint64)[:, None] * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    halves = np.stack([x & np.uint64(0xFFFFFFFF), x >> np.uint64(32)], axis=-1)
    return halves.astype(np.uint32).view(np.int32)
