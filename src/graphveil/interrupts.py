"""Ctrl-C, which goes to every process of a terminal; only the one that a person started should answer it."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

IMPORTING = "<frozen importlib._bootstrap>"
"""The file of the code that imports modules."""


def leave_while_importing(sentence: str) -> None:
    """From now on Ctrl-C is a KeyboardInterrupt, as ever, but while a module is imported it is a sentence and the end.

    Libraries take an import that was broken off for one that cannot be made, and fail later, elsewhere. What the end
    leaves behind is what a kill would, and a kill costs nothing.
    """

    def answer(_: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_filename == IMPORTING:
                _leave(sentence)
            frame = frame.f_back
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # as in a shell's background
        signal.signal(signal.SIGINT, answer)


def leave_at_once(sentence: str) -> None:
    """From now on Ctrl-C is a sentence and the end."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: _leave(sentence))


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


def _leave(sentence: str) -> None:
    with suppress(Exception):
        sys.stdout.flush()
    os.write(2, sentence.encode())
    os._exit(130)
