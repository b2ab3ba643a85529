"""Processes that work for an experiment, one thread each. One that dies costs nobody else's work."""

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
"""What is done for a cell; gives a sentence if it could not be done."""

DIED = "its process died, perhaps for want of memory: run it again with fewer --jobs"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Workers:
    """A pool of processes.

    Args:
        settle: called in this process with each cell that is done, and what went wrong with it, if anything.
    """

    def __init__(self, jobs: int, settle: Callable[[Cell, str | None], None]) -> None:
        self._jobs, self._settle = jobs, settle
        self._waiting: deque[tuple[Cell, Work]] = deque()
        self._running: dict[Future[str | None], tuple[Cell, Work]] = {}
        self._lost: list[tuple[Cell, Work]] = []
        self._pool: Any = None

    def submit(self, cell: Cell, work: Work) -> None:
        """Have it done some time."""
        self._waiting.append((cell, work))
        self._feed()

    def settle_done(self) -> None:
        """Report what is done by now."""
        for future in [future for future in self._running if future.done()]:
            self._report(future)
        self._feed()

    def finish(self) -> None:
        """Wait for all. A process that dies takes along what its pool had in hand: that is done again, one by one."""
        while self._running or self._waiting:
            self._feed()
            wait(self._running, return_when=FIRST_COMPLETED)
            self.settle_done()
        for cell, work in self._lost:
            try:
                self._settle(cell, self._start(work, 1).result())
            except BrokenExecutor:
                self._settle(cell, DIED)

    def stop(self) -> None:
        """End the processes at once: what they were at is not done."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, kill_workers=True)

    def _feed(self) -> None:
        """Hand over only a few more than can be worked on: those are what a death, or an interrupt, has to undo."""
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
        """In one of joblib's processes; a broken pool is replaced when it is asked for."""
        environment = ONE_THREAD | {"CUDA_VISIBLE_DEVICES": ""}
        with block_interrupts():
            self._pool = get_reusable_executor(
                max_workers=jobs, initializer=_watch, initargs=(os.getpid(),), env=environment
            )
            future: Future[str | None] = self._pool.submit(work)
        return future


def _watch(parent: int) -> None:
    """In a worker: end when the parent has been killed, which would leave it waiting for ever."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
