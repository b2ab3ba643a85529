"""Every random number comes from a named stream of one seed.

A stream is a function of (seed, names) alone: `generator(0, "negatives", 17)` is the same whatever ran before it.
So a resumed run needs no saved generator, and an adversary that draws numbers cannot change what the encoder draws.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def stream(seed: int, *names: str | int) -> int:
    """A 63-bit seed for the stream called `names`."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *names: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """A fresh generator for the stream called `names`."""
    return torch.Generator(device).manual_seed(stream(seed, *names))


@contextmanager
def global_stream(seed: int, *names: str | int) -> Iterator[None]:
    """Inside, torch's global generators (dropout, initialisation) run on this stream; after, as they were before."""
    with torch.random.fork_rng():
        torch.manual_seed(stream(seed, *names))
        yield
