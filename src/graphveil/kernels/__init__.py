"""Compiled loops for training on a CPU: one pass over memory where torch's operations need several.

Each loop has a reference in plain torch, which is used on a GPU, for other types than float32, and where numba is
missing or switched off (`NUMBA_DISABLE_JIT=1`). numba compiles a loop on its first use and stores it beside the source,
or in the user's cache if that folder cannot be written.

Each element of a result is written by one thread, in an order that does not depend on the number of threads.

- `noise`: coins and integers of the named streams, for `randomness`.
- `sparse`: transposes, and non-links from their ranks, for `models.sparse` and `training.targets`.
- `elements`: activations with dropout, and losses of logits, for `models.layers` and `models.pair_loss`.
- `attention`: softmax over neighbours, for `models.sparse`.
- `bilinear`: the loss of bilinear logits of pairs, for `models.pair_loss`.
- `distances`: the loss of hyperbolic distances, for `models.pair_loss`.
- `centroids`: centroids of neighbours in hyperbolic space, for `models.lorentz`.
- `codes`: the outer product of groups of codes, for `models.codes`.
- `rows`: products and combinations of rows with a vector, for `models.rows`.
- `compiling`: compiles loops and runs them on threads.
"""

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import torch
from torch import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from graphveil.kernels import (
        attention,
        bilinear,
        centroids,
        codes,
        compiling,
        distances,
        elements,
        noise,
        rows,
        sparse,
    )

__all__ = [
    "attention",
    "bilinear",
    "centroids",
    "codes",
    "compiling",
    "distances",
    "elements",
    "is_installed",
    "noise",
    "reference",
    "rows",
    "sparse",
    "usable",
]

_uses_reference: ContextVar[bool] = ContextVar("uses_reference", default=False)  # two threads may train two graphs


def usable(*tensors: Tensor) -> bool:
    """Return whether the loops can work on these tensors: on a CPU, and float32 or whole numbers."""
    if _uses_reference.get() or not is_installed():
        return False
    return all(x.is_cpu and x.dtype in (torch.float32, torch.int32, torch.int64) for x in tensors)


@contextmanager
def reference() -> Iterator[None]:
    """Use the reference instead of the loops inside, to compare both."""
    token = _uses_reference.set(True)
    try:
        yield
    finally:
        _uses_reference.reset(token)


def __getattr__(name: str) -> "Any":
    """Import numba only when a loop is used."""
    if name not in __all__:
        raise AttributeError(f"module 'graphveil.kernels' has no attribute {name!r}")
    return importlib.import_module(f"graphveil.kernels.{name}")


@cache
def is_installed() -> bool:
    """Return whether numba is installed and not switched off."""
    return importlib.util.find_spec("numba") is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
