"""Every random number comes from a named stream of one seed.

A stream is a function of (seed, names) alone: `generator(0, "split", "links")` is the same whatever ran before it. What
is drawn in every step of a training is `Noise`, a function of (seed, name, step, position) alone. So a resumed run
needs no saved generator, an adversary that draws numbers cannot change what the encoder draws, and a run draws the
same numbers alone, in a batch, on a CPU and on a GPU.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor


def stream(seed: int, *names: str | int) -> int:
    """A 63-bit seed for the stream called `names`."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *names: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """A fresh generator for the stream called `names`."""
    return torch.Generator(device).manual_seed(stream(seed, *names))


def hashed_names(key: str, names: Sequence[str]) -> Tensor:
    """A number of 63 bits for each name, (names,) int64: the same wherever it stands, and unknown without the key."""
    digests = [hashlib.blake2b(name.encode(), digest_size=8, key=key.encode()[:64]).digest() for name in names]
    return torch.from_numpy((np.frombuffer(b"".join(digests), dtype=np.uint64) >> np.uint64(1)).astype(np.int64))


def uniform_by_name(key: str, names: Sequence[str]) -> Tensor:
    """A number of [0, 1) for each name, (names,) float64: the same wherever it stands, and unknown without the key."""
    return (hashed_names(key, names) >> 10).double() / 2**53


def draw(shares: Tensor, uniform: Tensor) -> Tensor:
    """A class for each distribution (..., C) from one number of [0, 1) each, (...) int64."""
    return (shares.double().cumsum(dim=-1) < uniform[..., None]).sum(dim=-1).clamp(max=shares.size(-1) - 1)


@contextmanager
def global_stream(seed: int, *names: str | int) -> Iterator[None]:
    """Inside, torch's global generators (dropout, initialisation) run on this stream; after, as they were before."""
    with torch.random.fork_rng():
        torch.manual_seed(stream(seed, *names))
        yield


class Noise:
    """Random bits of a batch of runs, hashed from each run's key of the step and the position.

    torch's own generators draw one number after the other, which costs twelve times as much on a CPU, and one kernel a
    run on a GPU. A hash needs no state: all runs of a batch draw at once, also inside a recorded CUDA graph.

    Args:
        seeds: of the runs. steps: how many there will be. clock: the present step, (1,) int64.
    """

    def __init__(self, seeds: Sequence[int], name: str, steps: int, clock: Tensor) -> None:
        self.runs = len(seeds)
        self._keys = torch.from_numpy(_keys(seeds, name, steps)).to(clock.device)
        self._clock = clock

    def bits(self, count: int) -> Tensor:
        """Uniform 32-bit integers, (runs, count)."""
        first, second = self._keys.index_select(0, self._clock)[0].unsqueeze(-1).unbind(dim=1)
        x = torch.arange(count, dtype=torch.int32, device=first.device) * -1640531535 + first
        # The finaliser "lowbias32" of hash-prospector; the second key in its middle keeps two steps from drawing
        # the same numbers at a shift. torch shifts arithmetically, hence the masks.
        x ^= (x >> 16) & 0xFFFF
        x *= 0x7FEB352D
        x += second
        x ^= (x >> 15) & 0x1FFFF
        x *= -2073254261
        x ^= (x >> 16) & 0xFFFF
        return x

    def coins(self, probability: float, count: int) -> Tensor:
        """1 with `probability`, in steps of 2^-16 from there to 1, else 0, (runs, count) int16: bool is far slower."""
        halves = self.bits((count + 1) // 2).view(torch.int16)
        ones = min(max(round(probability * 65536), 1), 65536)  # of the 65,536 values that a half may have
        return halves.le_(ones - 32769)[:, :count].contiguous()

    def normal(self, count: int) -> Tensor:
        """Standard normal numbers, (runs, count) float32, by Box and Muller."""
        half = (count + 1) // 2
        radius, angle = ((self.bits(2 * half).long() & 0xFFFFFFFF).double() + 0.5).mul_(2.0**-32).chunk(2, dim=1)
        radius, angle = (-2 * radius.log()).sqrt(), 2 * torch.pi * angle
        return torch.cat([radius * angle.cos(), radius * angle.sin()], dim=1)[:, :count].float()

    def ascending_integers(self, high: int, count: int) -> Tensor:
        """Uniform integers of [0, high), each run's in ascending order, (runs, count) int64; high is below 2^53."""
        low, top = self.bits(2 * count).long().chunk(2, dim=1)
        fraction = ((top & 0x1FFFFF) << 32 | low & 0xFFFFFFFF).double() * 2.0**-53
        integers = (fraction * high).long().clamp_(max=high - 1)
        first = torch.arange(self.runs, device=integers.device)[:, None] * high
        # one vector for all runs, since torch sorts a single vector of integers by radix: ten times as fast
        return (integers + first).flatten().sort(stable=True).values.view(self.runs, count) - first


def _keys(seeds: Sequence[int], name: str, steps: int) -> np.ndarray:
    """Two 32-bit keys a step and run from the runs' streams by SplitMix64, (steps, runs, 2) int32."""
    base = np.array([stream(seed, name) for seed in seeds], dtype=np.uint64)
    with np.errstate(over="ignore"):
        x = base + np.arange(1, steps + 1, dtype=np.uint64)[:, None] * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    halves = np.stack([x & np.uint64(0xFFFFFFFF), x >> np.uint64(32)], axis=-1)
    return halves.astype(np.uint32).view(np.int32)
