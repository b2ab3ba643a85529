"""Pools of single-threaded processes. If a process dies, the work of the others is not lost.

`auditing.tasks` starts its processes by `joblib.Parallel` instead. That ends everything if one process dies, while
hours of cells must survive it; and cells share no arrays, since each writes its own file.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from joblib.externals.loky import ProcessPoolExecutor

from graphveil.interrupts import block_interrupts

Item = TypeVar("Item")
Work = Callable[[], str | None]
"""Does the work of an item, and returns the error message or None."""

DIED = "its process died, possibly because it ran out of memory: run the command again with fewer --jobs"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, eq=False)
class _Running(Generic[Item]):
    """An item, its work, the pool that runs it, and whether it runs alone because an earlier process died."""

    item: Item
    work: Work
    pool: Any
    alone: bool


class Workers(Generic[Item]):
    """A pool of processes; `finish_all` waits for its work.

    Args:
        jobs: the number of processes.
        settle: called in this process with each finished item and its error message, or None.
        on_gpu: whether the processes see a GPU.
    """

    def __init__(self, jobs: int, settle: Callable[[Item, str | None], None], on_gpu: bool = False) -> None:
        self._jobs, self._settle = jobs, settle
        self._environment = ONE_THREAD if on_gpu else ONE_THREAD | {"CUDA_VISIBLE_DEVICES": ""}
        self._waiting: deque[tuple[Item, Work]] = deque()
        self._running: dict[Future[str | None], _Running[Item]] = {}
        self._lost: deque[tuple[Item, Work]] = deque()
        self._pool: Any = None

    @property
    def running(self) -> Iterable[Future[str | None]]:
        """The work that has been given to a process; empty if nothing is left to do."""
        return self._running.keys()

    def submit(self, item: Item, work: Work) -> None:
        """Queue the work of an item."""
        self._waiting.append((item, work))
        self._feed()

    def settle_done(self) -> None:
        """Call `settle` for the items that have finished, and start others."""
        for future in [future for future in self._running if future.done()]:
            self._report(future)
        self._feed()

    def stop(self, kill: bool = True) -> None:
        """End the processes; if they are killed, the items that they were running are not finished."""
        if self._pool is not None:
            self._pool.shutdown(wait=not kill, kill_workers=kill)
            self._pool = None

    def _feed(self) -> None:
        """Start as many items as there are processes and one more: these are lost if a process dies.

        Items that were lost run again after all others, each in a new process.
        """
        while self._waiting and len(self._running) < self._jobs + 1:
            item, work = self._waiting.popleft()
            try:
                self._start(item, work, self._jobs)
            except BrokenExecutor:
                self._pool = None
                self._waiting.appendleft((item, work))
        if self._lost and not self._running:
            self.stop(kill=False)
            self._start(*self._lost.popleft(), jobs=1, alone=True)

    def _report(self, future: Future[str | None]) -> None:
        done = self._running.pop(future)
        try:
            self._settle(done.item, future.result())
        except BrokenExecutor:
            if self._pool is done.pool:
                self._pool = None
            if done.alone:
                self._settle(done.item, DIED)
            else:
                self._lost.append((done.item, done.work))

    def _start(self, item: Item, work: Work, jobs: int, alone: bool = False) -> None:
        with block_interrupts():
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    max_workers=jobs, initializer=_watch, initargs=(os.getpid(),), env=self._environment
                )
            future = self._pool.submit(work)
        self._running[future] = _Running(item, work, self._pool, alone)


def finish_all(*pools: Workers[Any]) -> None:
    """Wait until no pool has work left, and end their processes; what one pool settles may be work for another."""
    while running := [future for pool in pools for future in pool.running]:
        wait(running, return_when=FIRST_COMPLETED)
        for pool in pools:
            pool.settle_done()
    for pool in pools:
        pool.stop(kill=False)


def _watch(parent: int) -> None:
    """In a worker: exit when the parent has been killed; otherwise the worker would wait forever."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
