"""Processes that work for an experiment, one thread each. One that dies costs nobody else's work."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, as_completed
from typing import Any

import torch
from joblib.externals.loky import get_reusable_executor

from graphveil.experiments.cells import Cell

Work = Callable[[], str | None]
"""What is done for a cell; gives a sentence if it could not be done."""

DIED = "its process died, perhaps for want of memory: run it again with fewer --jobs"


class Workers:
    """A pool of processes.

    Args:
        settle: called in this process with each cell that is done, and what went wrong with it, if anything.
    """

    def __init__(self, jobs: int, settle: Callable[[Cell, str | None], None]) -> None:
        self._jobs, self._settle = jobs, settle
        self._running: dict[Future[str | None], tuple[Cell, Work]] = {}
        self._lost: list[tuple[Cell, Work]] = []

    def submit(self, cell: Cell, work: Work) -> None:
        """Have it done some time."""
        try:
            self._running[_pool(self._jobs).submit(work)] = (cell, work)
        except BrokenExecutor:
            self._lost.append((cell, work))

    def settle_done(self) -> None:
        """Report what is done by now."""
        for future in [future for future in self._running if future.done()]:
            self._report(future)

    def finish(self) -> None:
        """Wait for all. When a process dies, the pool loses all that it had: that is done again, one by one."""
        for future in as_completed(list(self._running)):
            self._report(future)
        for cell, work in self._lost:
            try:
                self._settle(cell, _pool(1).submit(work).result())
            except BrokenExecutor:
                self._settle(cell, DIED)

    def stop(self) -> None:
        """End the processes at once: what they were at is not done."""
        _pool(self._jobs).shutdown(wait=False, kill_workers=True)

    def _report(self, future: Future[str | None]) -> None:
        cell, work = self._running.pop(future)
        try:
            self._settle(cell, future.result())
        except BrokenExecutor:
            self._lost.append((cell, work))


def _pool(jobs: int) -> Any:
    """joblib's processes: they survive an interrupt of the terminal, and a broken pool is replaced when asked for."""
    return get_reusable_executor(max_workers=jobs, initializer=_begin, initargs=(os.getpid(),))


def _begin(parent: int) -> None:
    """In a worker: one thread, no GPU, and an end when the parent is killed, which would leave it waiting for ever."""
    os.environ |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    torch.set_num_threads(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
