"""Compile loops with numba, and run them on the threads of torch.

The loops release Python's lock, so a pool of Python threads runs them side by side. numba's own parallel loops would
end the process if two threads of a program used them at once, or if it forked.
"""

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
import torch
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from graphveil.interrupts import delay_interrupts

Loop = TypeVar("Loop", bound=Callable[..., Any])
Array = np.ndarray
Number = Any
"""A number of a numpy type, since loops compute in 32 bits."""
_EXACT_ENOUGH = {"contract", "reassoc", "nsz", "arcp"}  # without nnan and ninf: a diverged training must be noticed
WORTH_A_THREAD = 16_384
"""Fewer elements are not worth a second thread."""
CACHE_LINE = 64
"""Bytes that are loaded at once."""
LANES = 64
"""A loop over a multiple of so many elements has no remainder, which is rounded in another way than the rest."""
_pool: ThreadPoolExecutor | None = None


def compiled(loop: Loop) -> Loop:
    """Compile a loop on its first use, and store it for the next process if a folder can be written."""
    try:
        made = numba.njit(nogil=True, fastmath=_EXACT_ENOUGH, error_model="numpy", cache=True)(loop)
        _depend_on_all_loops(made)
    except RuntimeError:  # no folder can be written
        made = numba.njit(nogil=True, fastmath=_EXACT_ENOUGH, error_model="numpy")(loop)
    # numba calls it for each new type, and LLVM's calls back into Python lose a Ctrl-C
    vars(made)["compile"] = delay_interrupts()(made.compile)
    return cast(Loop, made)


def inlined(function: Loop) -> Loop:
    """Mark a function that compiled loops call, and that becomes a part of them."""
    return cast(Loop, numba.njit(inline="always", error_model="numpy")(function))


def _depend_on_all_loops(made: Any) -> None:
    """Compile a stored loop again after a change in any file of loops: numba looks only at the loop's own file."""
    file = made._cache._cache_file
    file._source_stamp = (file._source_stamp, _digest_of_loops())


@cache
def _digest_of_loops() -> str:
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@intrinsic
def _prefetch_line(typing_context: Any, array: Any, row: Any, byte: Any) -> Any:  # noqa: ARG001 - numba's form
    """Load the line of the cache with this byte of a row of a two-dimensional array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        size = builder.extract_value(data.strides, 0)
        place = builder.add(builder.mul(arguments[1], size), arguments[2])
        address = builder.inttoptr(builder.add(builder.ptrtoint(data.data, size.type), place), pointer)
        form = ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
        load = builder.module.declare_intrinsic("llvm.prefetch", [pointer], form)
        builder.call(load, [address, word(0), word(3), word(1)])  # for reading, into all caches, data
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


@inlined
def prefetch(array: Array, row: Number) -> None:
    """Load a row of a two-dimensional array into the cache, which takes effect some hundred instructions later.

    Rows in random order are otherwise waited for one by one.
    """
    for byte in range(0, array.strides[0], CACHE_LINE):
        _prefetch_line(array, row, byte)  # type: ignore[call-arg]  # numba passes its context


@inlined
def full(count: Number) -> Number:
    """`count`, rounded up to a multiple of `LANES`."""
    return (count + LANES - 1) // LANES * LANES


def over(count: int, work: int, loop: Callable[..., None], *arguments: Any) -> None:
    """Run `loop(*arguments, start, stop)` on ranges of 0, ..., count - 1, one for each thread of torch.

    Args:
        count: The number of rows.
        work: The number of elements; few are not worth a second thread.
        loop: The loop.
        *arguments: Its other arguments.
    """
    threads = min(torch.get_num_threads(), count, 1 + work // WORTH_A_THREAD)
    if threads <= 1:
        loop(*arguments, 0, count)
        return
    run_ranges([count * part // threads for part in range(threads + 1)], loop, *arguments)


def over_rows(crow: np.ndarray, loop: Callable[..., None], *arguments: Any) -> None:
    """Run `loop(*arguments, start, stop)` on ranges of the rows of a CSR pattern with about as many entries each."""
    rows, entries = len(crow) - 1, int(crow[-1])
    threads = min(torch.get_num_threads(), rows, 1 + entries // WORTH_A_THREAD)
    if threads <= 1:
        loop(*arguments, 0, rows)
        return
    targets = [entries * part // threads for part in range(1, threads)]
    run_ranges([0, *np.searchsorted(crow, targets).clip(max=rows).tolist(), rows], loop, *arguments)


def run_ranges(bounds: list[int], loop: Callable[..., None], *arguments: Any) -> None:
    """Run a loop on the ranges between neighbouring bounds, each in a thread, the first one in this thread."""
    global _pool  # noqa: PLW0603 - the threads of the process
    if _pool is None:
        _pool = ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), thread_name_prefix="graphveil-loop")
    ranges = list(pairwise(bounds))
    others, own = [], ranges[:1]
    for of_thread in ranges[1:]:
        try:
            others.append(_pool.submit(loop, *arguments, *of_thread))
        except RuntimeError:  # the main thread has ended, and with it the pool, but this thread has not
            own.append(of_thread)
    for of_thread in own:
        loop(*arguments, *of_thread)
    for other in others:
        other.result()


def _forget_pool() -> None:
    """After a fork: the child has no threads but the one that forked."""
    global _pool  # noqa: PLW0603
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
