"""Handling of Ctrl-C. It reaches every process of a terminal, and only the one that the user started should react.

While a verb runs, `cli.console.exit_on_interrupt` turns it into a sentence; this module covers imports, compilation and
workers.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

IMPORTING = "<frozen importlib._bootstrap>"
"""The file name of Python's import machinery, as it appears in stack frames."""


def exit_while_importing(sentence: str) -> None:
    """Make Ctrl-C print `sentence` and exit while a module is being imported, and raise KeyboardInterrupt otherwise.

    Libraries treat an interrupted import as a missing package and fail later, elsewhere. Exiting at once leaves no more
    behind than a kill does, and a kill loses nothing. The program ends after a Ctrl-C, so an error in a thread of a
    library that loses its workers is not printed.
    """

    def handle(_: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_filename == IMPORTING:
                _exit(sentence)
            frame = frame.f_back
        threading.excepthook = lambda _: None
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # a shell ignores it for background jobs
        signal.signal(signal.SIGINT, handle)


def exit_at_once(sentence: str) -> None:
    """Make Ctrl-C print `sentence` and exit."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: _exit(sentence))


@contextmanager
def block_interrupts() -> Iterator[None]:
    """Hide Ctrl-C from processes and threads that are started inside; their parent handles it and ends them.

    A Ctrl-C that comes meanwhile is delivered at the end of the block.
    """
    from multiprocessing import resource_tracker  # noqa: PLC0415

    from joblib.externals.loky.backend import resource_tracker as loky  # noqa: PLC0415 - slow to import

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for tracker in (resource_tracker, loky):
            tracker.ensure_running()  # a tracker that is started later would unblock the signal for the workers
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Deliver a Ctrl-C at the end of the block, for libraries that lose a KeyboardInterrupt."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: came.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came.is_set():
            signal.raise_signal(signal.SIGINT)


def _exit(sentence: str) -> None:
    with suppress(Exception):
        sys.stdout.flush()
    os.write(2, sentence.encode())
    os._exit(130)
