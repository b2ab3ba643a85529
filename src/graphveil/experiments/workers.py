"""Single-threaded processes that run cells, on this machine or on a Ray cluster.

If a process dies, the work of the others is not lost. `auditing.tasks` starts its processes by `joblib.Parallel`
instead. That ends everything if one process dies, while hours of cells must survive it; and cells share no arrays,
since each writes its own file.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from joblib.externals.loky import ProcessPoolExecutor

from graphveil.errors import GraphveilError
from graphveil.experiments.cells import Cell
from graphveil.experiments.cluster import Cluster
from graphveil.interrupts import block_interrupts

Item = TypeVar("Item")
Work = Callable[[Path], str | None]
"""Does the work of an item in the folder of the results, and returns the error message or None."""

DIED = "its process died, possibly because it ran out of memory: run the command again with fewer --jobs"
NOT_WRITTEN = "its worker wrote no result of this configuration: install the same versions on all machines"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
POLL_SECONDS = 0.1
"""How long to wait for one of several pools before looking at the others."""


class Workers(Protocol):
    """Processes that run cells; `finish` waits for them."""

    @property
    def is_idle(self) -> bool:
        """Whether no work is left."""

    def submit(self, cell: Cell, work: Work) -> None:
        """Queue the work of a cell."""

    def settle_done(self, seconds: float | None) -> None:
        """Call `settle` for the cells that have finished.

        Args:
            seconds: how long to wait at most until one has; None until one has.
        """

    def stop(self, kill: bool = True) -> None:
        """End the processes; if they are killed, the cells that they were running are not finished."""


def workers(jobs: int, folder: Path, settle: Callable[[Cell, str | None], None], ray: str | None) -> Workers:
    """Processes on this machine or, with an address, on a Ray cluster; see `cluster.Cluster`.

    Args:
        jobs: the number of processes on this machine.
        folder: the folder of the results.
        settle: called in this process with each finished cell and its error message, or None.
        ray: the address of a Ray cluster; None for this machine without Ray.
    """
    return Pool(jobs, folder, settle) if ray is None else ClusterWorkers(Cluster(ray, jobs), folder, settle)


def finish(*pools: "Workers | Pool[Any]") -> None:
    """Wait until no pool has work left, and end their processes; what one pool settles may be work for another."""
    while busy := [pool for pool in pools if not pool.is_idle]:
        for pool in busy:
            pool.settle_done(None if len(busy) == 1 else POLL_SECONDS)
    for pool in pools:
        pool.stop(kill=False)


class ClusterWorkers:
    """Processes of a Ray cluster. Ray runs the cells of a lost process again.

    Args:
        cluster: the cluster.
        folder: the folder of the results.
        settle: called in this process with each finished cell and its error message, or None.
    """

    def __init__(self, cluster: Cluster[str | None], folder: Path, settle: Callable[[Cell, str | None], None]) -> None:
        self._cluster, self._folder, self._settle = cluster, folder, settle
        self._cells: dict[object, Cell] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no work is left."""
        return self._cluster.is_idle

    def submit(self, cell: Cell, work: Work) -> None:
        """Queue the work of a cell, with its embeddings if they are stored."""
        future = self._cluster.submit(work, self._folder, [cell.embeddings_file(self._folder)])
        self._cells[future] = cell

    def settle_done(self, seconds: float | None) -> None:
        """Call `settle` for the cells that have finished; see `Workers`."""
        for future, result in self._cluster.finished(seconds):
            cell = self._cells.pop(future)
            fault = str(result) if isinstance(result, GraphveilError) else result
            self._settle(cell, NOT_WRITTEN if fault is None and not cell.file(self._folder).exists() else fault)

    def stop(self, kill: bool = True) -> None:  # noqa: ARG002 - nothing is left to do if it is not to kill
        """Leave the cluster; the cells that its processes are running are not finished."""
        self._cluster.close()


@dataclass(frozen=True, eq=False)
class _Running(Generic[Item]):
    """An item, its work, the executor that runs it, and whether it runs alone because an earlier process died."""

    item: Item
    work: Work
    executor: Any
    alone: bool


class Pool(Generic[Item]):
    """A pool of processes on this machine.

    Args:
        jobs: the number of processes.
        folder: the folder of the results.
        settle: called in this process with each finished item and its error message, or None.
        on_gpu: whether the processes see a GPU.
    """

    def __init__(
        self, jobs: int, folder: Path, settle: Callable[[Item, str | None], None], on_gpu: bool = False
    ) -> None:
        self._jobs, self._folder, self._settle = jobs, folder, settle
        self._environment = ONE_THREAD if on_gpu else ONE_THREAD | {"CUDA_VISIBLE_DEVICES": ""}
        self._waiting: deque[tuple[Item, Work]] = deque()
        self._running: dict[Future[str | None], _Running[Item]] = {}
        self._lost: deque[tuple[Item, Work]] = deque()
        self._executor: Any = None

    @property
    def is_idle(self) -> bool:
        """Whether no work is left."""
        return not self._running

    def submit(self, item: Item, work: Work) -> None:
        """Queue the work of an item."""
        self._waiting.append((item, work))
        self._feed()

    def settle_done(self, seconds: float | None) -> None:
        """Call `settle` for the items that have finished, and start others; see `Workers`."""
        wait(self._running, timeout=seconds, return_when=FIRST_COMPLETED)
        for future in [future for future in self._running if future.done()]:
            self._report(future)
        self._feed()

    def stop(self, kill: bool = True) -> None:
        """End the processes; if they are killed, the items that they were running are not finished."""
        if self._executor is not None:
            self._executor.shutdown(wait=not kill, kill_workers=kill)
            self._executor = None

    def _feed(self) -> None:
        """Start as many items as there are processes and one more: these are lost if a process dies.

        Items that were lost run again after all others, each in a new process.
        """
        if any(running.alone for running in self._running.values()):
            return
        while self._waiting and len(self._running) < self._jobs + 1:
            item, work = self._waiting.popleft()
            try:
                self._start(item, work, self._jobs)
            except BrokenExecutor:
                self._executor = None
                self._waiting.appendleft((item, work))
        if self._lost and not self._running:
            self.stop(kill=False)
            self._start(*self._lost.popleft(), jobs=1, alone=True)

    def _report(self, future: Future[str | None]) -> None:
        done = self._running.pop(future)
        if done.alone:
            self.stop(kill=False)  # its executor has one process only
        try:
            fault = future.result()
        except BrokenExecutor:
            if self._executor is done.executor:
                self._executor = None
            if not done.alone:
                self._lost.append((done.item, done.work))
                return
            fault = DIED
        self._settle(done.item, fault)

    def _start(self, item: Item, work: Work, jobs: int, alone: bool = False) -> None:
        with block_interrupts():
            if self._executor is None:
                self._executor = ProcessPoolExecutor(
                    max_workers=jobs, initializer=_watch, initargs=(os.getpid(),), env=self._environment
                )
            future = self._executor.submit(work, self._folder)
        self._running[future] = _Running(item, work, self._executor, alone)


def _watch(parent: int) -> None:
    """In a worker: exit when the parent has been killed; otherwise the worker would wait forever."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
