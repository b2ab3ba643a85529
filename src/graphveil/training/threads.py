"""The number of threads of a training on the CPU."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from graphveil import THREADS_SPIN

LARGE = 1_000_000
"""With more links, one thread would cost too much even if threads spin."""
log = logging.getLogger(__name__)


@contextmanager
def suitable_threads(num_links: int) -> Iterator[None]:
    """Use one thread if several would spin while they wait for each other.

    Threads spin if torch was imported before graphveil, which sets `GOMP_SPINCOUNT`. On two cores that were busy with
    other work, two spinning threads took 50 s for a training that takes 2 s with one thread.

    Args:
        num_links: the number of links of the graph.
    """
    threads = torch.get_num_threads()
    if not THREADS_SPIN or threads == 1 or num_links > LARGE:
        yield
        return
    log.info("torch was imported before graphveil, so training uses 1 thread; import graphveil first for %d", threads)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
