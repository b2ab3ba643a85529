"""Keeping the memory of one round for the next.

glibc gives freed memory back to the system as soon as it can, and every round then pays for the same pages anew: a
quarter of a round on Pubmed. While a training runs, it keeps them.
"""

import ctypes
import ctypes.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
_LARGEST_MMAP_THRESHOLD = 32 << 20  # glibc takes no more; it comes to this by itself as large blocks are freed


@contextmanager
def kept_memory() -> Iterator[None]:
    """Inside, up to 2 GiB of freed memory stay with the process; after, it goes back to the system. Linux only."""
    library = ctypes.util.find_library("c") if sys.platform == "linux" else None
    libc = ctypes.CDLL(library) if library else None
    if libc is None or not hasattr(libc, "mallopt"):
        yield
        return
    libc.mallopt(_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
    libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    try:
        yield
    finally:
        libc.mallopt(_TRIM_THRESHOLD, 2 * _LARGEST_MMAP_THRESHOLD)
        libc.malloc_trim(0)
