"""A pool of single-threaded processes that run cells. If a process dies, the cells of the others are not lost.

`auditing.tasks` starts its processes by `joblib.Parallel` instead. That ends everything if one process dies, while
hours of cells must survive it; and cells share no arrays, since each writes its own file.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Any

from joblib.externals.loky import get_reusable_executor

from graphveil.experiments.cells import Cell
from graphveil.interrupts import block_interrupts

Work = Callable[[], str | None]
"""Runs a cell, and returns the error message or None."""

DIED = "its process died, possibly because it ran out of memory: run the command again with fewer --jobs"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Workers:
    """A pool of processes.

    Args:
        jobs: the number of processes.
        settle: called in this process with each finished cell and its error message, or None.
    """

    def __init__(self, jobs: int, settle: Callable[[Cell, str | None], None]) -> None:
        self._jobs, self._settle = jobs, settle
        self._waiting: deque[tuple[Cell, Work]] = deque()
        self._running: dict[Future[str | None], tuple[Cell, Work]] = {}
        self._lost: list[tuple[Cell, Work]] = []
        self._pool: Any = None

    def submit(self, cell: Cell, work: Work) -> None:
        """Queue the work of a cell."""
        self._waiting.append((cell, work))
        self._feed()

    def settle_done(self) -> None:
        """Call `settle` for the cells that have finished."""
        for future in [future for future in self._running if future.done()]:
            self._report(future)
        self._feed()

    def finish(self) -> None:
        """Wait for all cells. Cells that were lost because a process died are run again, one at a time."""
        while self._running or self._waiting:
            self._feed()
            wait(self._running, return_when=FIRST_COMPLETED)
            self.settle_done()
        for cell, work in self._lost:
            try:
                self._settle(cell, self._start(work, 1).result())
            except BrokenExecutor:
                self._settle(cell, DIED)
        if self._pool is not None:
            self._pool.shutdown()  # `joblib.Parallel` would take this pool for one of its own

    def stop(self) -> None:
        """Kill the processes; the cells that they were running are not finished."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, kill_workers=True)

    def _feed(self) -> None:
        """Submit only one cell more than there are processes: these are lost if a process dies or is interrupted."""
        while self._waiting and len(self._running) < self._jobs + 1:
            cell, work = self._waiting.popleft()
            try:
                self._running[self._start(work, self._jobs)] = (cell, work)
            except BrokenExecutor:
                self._lost.append((cell, work))

    def _report(self, future: Future[str | None]) -> None:
        cell, work = self._running.pop(future)
        try:
            self._settle(cell, future.result())
        except BrokenExecutor:
            self._lost.append((cell, work))

    def _start(self, work: Work, jobs: int) -> Future[str | None]:
        """Submit to the pool of joblib; a broken pool is replaced by a new one."""
        environment = ONE_THREAD | {"CUDA_VISIBLE_DEVICES": ""}
        with block_interrupts():
            self._pool = get_reusable_executor(
                max_workers=jobs, initializer=_watch, initargs=(os.getpid(),), env=environment
            )
            future: Future[str | None] = self._pool.submit(work)
        return future


def _watch(parent: int) -> None:
    """In a worker: exit when the parent has been killed; otherwise the worker would wait forever."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
