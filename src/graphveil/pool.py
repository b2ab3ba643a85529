"""Processes on this machine, by joblib and its executor loky.

- `parallel` is for the calls of one computation, which share large arrays: joblib maps these into memory once. If a
  process dies, all calls end with a sentence.
- `Pool` is for items that take minutes and write files of their own. If a process dies, only its item is lost.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from joblib import Parallel, delayed
from joblib.externals.loky import ProcessPoolExecutor

from graphveil.errors import GraphveilError
from graphveil.interrupts import block_interrupts

Item = TypeVar("Item")
Result = TypeVar("Result")

ITEM_DIED = "its process died, possibly because it ran out of memory: run the command again with fewer --jobs"
DIED = (
    "a process died, possibly because it ran out of memory: run the command again with fewer --jobs; an audit of a run"
    " continues with --resume."
)
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def parallel(calls: Iterable[Callable[[], Result]], jobs: int) -> Iterator[Result]:
    """Call functions in processes, and yield the results in the order of the calls.

    Args:
        calls: the functions; the next one is taken when a process is free.
        jobs: the number of processes; with one job, functions are called in this process.

    Raises:
        GraphveilError: if a process died.
    """
    with block_interrupts():
        results = Parallel(n_jobs=jobs, return_as="generator", pre_dispatch="n_jobs")(delayed(call)() for call in calls)
    try:
        yield from results
    except BrokenExecutor as error:
        raise GraphveilError(DIED) from error


@dataclass(frozen=True, eq=False)
class _Running(Generic[Item, Result]):
    """An item, its work, the executor that runs it, and whether it runs alone because an earlier process died."""

    item: Item
    work: Callable[[Path], Result]
    executor: Any
    alone: bool


class Pool(Generic[Item, Result]):
    """A pool of processes for items.

    Args:
        jobs: the number of processes.
        folder: the folder of the results, the argument of all work.
        settle: called in this process with each finished item and the result of its work, or the error if its process
            died.
        on_gpu: whether the processes see a GPU.
    """

    def __init__(
        self, jobs: int, folder: Path, settle: Callable[[Item, Result | GraphveilError], None], on_gpu: bool = False
    ) -> None:
        self._jobs, self._folder, self._settle = jobs, folder, settle
        self._environment = ONE_THREAD if on_gpu else ONE_THREAD | {"CUDA_VISIBLE_DEVICES": ""}
        self._waiting: deque[tuple[Item, Callable[[Path], Result]]] = deque()
        self._running: dict[Future[Result], _Running[Item, Result]] = {}
        self._lost: deque[tuple[Item, Callable[[Path], Result]]] = deque()
        self._executor: Any = None

    @property
    def is_idle(self) -> bool:
        """Whether no work is left."""
        return not self._running

    def submit(self, item: Item, work: Callable[[Path], Result], needs: Iterable[Path] = ()) -> None:  # noqa: ARG002
        """Queue the work of an item, which finds all files that it needs in the folder."""
        self._waiting.append((item, work))
        self._feed()

    def settle_done(self, seconds: float | None) -> None:
        """Call `settle` for the items that have finished, and start others.

        Args:
            seconds: how long to wait at most until one has finished; None until one has.
        """
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

    def _report(self, future: Future[Result]) -> None:
        done = self._running.pop(future)
        if done.alone:
            self.stop(kill=False)  # its executor has one process only
        try:
            result: Result | GraphveilError = future.result()
        except BrokenExecutor:
            if self._executor is done.executor:
                self._executor = None
            if not done.alone:
                self._lost.append((done.item, done.work))
                return
            result = GraphveilError(ITEM_DIED)
        self._settle(done.item, result)

    def _start(self, item: Item, work: Callable[[Path], Result], jobs: int, alone: bool = False) -> None:
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
