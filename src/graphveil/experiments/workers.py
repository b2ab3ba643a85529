"""Single-threaded processes that run cells, on this machine or on a Ray cluster.

If a process dies, the cells of the others are not lost. `auditing.tasks` starts its processes by `joblib.Parallel`
instead. That ends everything if one process dies, while hours of cells must survive it; and cells share no arrays,
since each writes its own file.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from joblib.externals.loky import get_reusable_executor

from graphveil.errors import GraphveilError
from graphveil.experiments.cells import Cell
from graphveil.experiments.cluster import Cluster
from graphveil.interrupts import block_interrupts

Work = Callable[[Path], str | None]
"""Runs a cell in the folder of the results, and returns the error message or None."""
Settle = Callable[[Cell, str | None], None]
"""Is called in the main process with each finished cell and its error message, or None."""

DIED = "its process died, possibly because it ran out of memory: run the command again with fewer --jobs"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Workers(Protocol):
    """Processes that run cells."""

    def submit(self, cell: Cell, work: Work) -> None:
        """Queue the work of a cell."""

    def settle_done(self) -> None:
        """Call `settle` for the cells that have finished."""

    def finish(self) -> None:
        """Wait for all cells. Cells that were lost because a process died are run again."""

    def stop(self) -> None:
        """Kill the processes; the cells that they were running are not finished."""


def workers(jobs: int, folder: Path, settle: Settle, ray: str | None) -> Workers:
    """Processes on this machine or, with an address, on a Ray cluster; see `cluster.Cluster`.

    Args:
        jobs: the number of processes on this machine.
        folder: the folder of the results.
        settle: is called with each finished cell.
        ray: the address of a Ray cluster; None for this machine without Ray.
    """
    return Pool(jobs, folder, settle) if ray is None else ClusterWorkers(Cluster(ray, jobs), folder, settle)


class ClusterWorkers:
    """Processes of a Ray cluster. Ray runs the cells of a lost process again.

    Args:
        cluster: the cluster.
        folder: the folder of the results.
        settle: is called with each finished cell.
    """

    def __init__(self, cluster: Cluster[str | None], folder: Path, settle: Settle) -> None:
        self._cluster, self._folder, self._settle = cluster, folder, settle
        self._cells: dict[object, Cell] = {}

    def submit(self, cell: Cell, work: Work) -> None:
        """Queue the work of a cell, with its embeddings if they are stored."""
        future = self._cluster.submit(work, self._folder, [cell.embeddings_file(self._folder)])
        self._cells[future] = cell

    def settle_done(self) -> None:
        """Call `settle` for the cells that have finished."""
        self._settle_finished(wait=False)

    def finish(self) -> None:
        """Wait for all cells, and leave the cluster."""
        while not self._cluster.is_idle:
            self._settle_finished(wait=True)
        self._cluster.close()

    def stop(self) -> None:
        """Kill the processes; the cells that they were running are not finished."""
        self._cluster.close()

    def _settle_finished(self, wait: bool) -> None:
        for future, result in self._cluster.finished(wait):
            self._settle(self._cells.pop(future), str(result) if isinstance(result, GraphveilError) else result)


class Pool:
    """A pool of processes on this machine.

    Args:
        jobs: the number of processes.
        folder: the folder of the results.
        settle: is called with each finished cell.
    """

    def __init__(self, jobs: int, folder: Path, settle: Settle) -> None:
        self._jobs, self._folder, self._settle = jobs, folder, settle
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
            future: Future[str | None] = self._pool.submit(partial(work, self._folder))
        return future


def _watch(parent: int) -> None:
    """In a worker: exit when the parent has been killed; otherwise the worker would wait forever."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
