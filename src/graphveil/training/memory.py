"""Keep freed memory for the next round.

glibc returns freed memory to the system as soon as it can, and the next round has to get the same pages again: 35,000
page faults and a sixth of a round of HGCN on Pubmed, 2,800,000 and half a round of GCN on a million nodes. So the
process keeps its memory while a training runs.
"""

import ctypes
import ctypes.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # M_TRIM_THRESHOLD and M_MMAP_MAX of malloc.h
_USUAL_TRIM_THRESHOLD, _USUAL_MMAP_MAX = 64 << 20, 65536


@contextmanager
def keep_freed_memory() -> Iterator[None]:
    """Keep freed memory in the process inside, and return it to the system at the end. Linux only."""
    library = ctypes.util.find_library("c") if sys.platform == "linux" else None
    libc = ctypes.CDLL(library) if library else None
    if libc is None or not hasattr(libc, "mallopt"):
        yield
        return
    libc.mallopt(_MMAP_MAX, 0)
    libc.mallopt(_TRIM_THRESHOLD, -1)
    try:
        yield
    finally:
        libc.mallopt(_MMAP_MAX, _USUAL_MMAP_MAX)
        libc.mallopt(_TRIM_THRESHOLD, _USUAL_TRIM_THRESHOLD)
        libc.malloc_trim(0)
