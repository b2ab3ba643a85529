"""Ctrl-C goes to every process of a terminal; only the one that a person started should answer it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_from_workers() -> Iterator[None]:
    """Processes and threads that are started in here never see Ctrl-C; their parent does, and ends them.

    One that comes meanwhile waits until the end of the block.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
