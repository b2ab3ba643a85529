"""Processes that run items, cells or candidates, on this machine or on a Ray cluster."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from graphveil.errors import GraphveilError
from graphveil.experiments.cluster import Cluster
from graphveil.pool import Pool

Item = TypeVar("Item")
Result = TypeVar("Result")

POLL_SECONDS = 0.1
"""How long to wait for one of several pools before looking at the others."""


def workers(
    jobs: int,
    folder: Path,
    settle: Callable[[Item, Result | GraphveilError], None],
    ray: str | None,
    on_gpu: bool = False,
) -> "Workers[Item, Result]":
    """Processes on this machine or, with an address, on a Ray cluster; see `cluster.Cluster`.

    Args:
        jobs: the number of processes on this machine.
        folder: the folder of the results.
        settle: called in this process with each finished item and its result, or the error if it was lost.
        ray: the address of a Ray cluster; None for this machine without Ray.
        on_gpu: whether processes on this machine see a GPU.
    """
    if ray is None:
        return Pool(jobs, folder, settle, on_gpu)
    return ClusterWorkers(Cluster(ray, jobs), folder, settle)


@contextmanager
def finishing(*pools: "Workers[Any, Any]") -> Iterator[None]:
    """Wait for the work that is submitted inside; after an error, above all Ctrl-C, end the processes."""
    try:
        yield
        wait(*pools)
    except BaseException:
        for pool in pools:
            pool.stop()
        raise
    for pool in pools:
        pool.stop(kill=False)


def wait(*pools: "Workers[Any, Any]") -> None:
    """Wait until no pool has work left; what one pool settles may be work for another."""
    while busy := [pool for pool in pools if not pool.is_idle]:
        for pool in busy:
            pool.settle_done(None if len(busy) == 1 else POLL_SECONDS)


class ClusterWorkers(Generic[Item, Result]):
    """Processes of a Ray cluster. Ray runs the items of a lost process again.

    Args:
        cluster: the cluster.
        folder: the folder of the results.
        settle: called in this process with each finished item and its result, or the error if it was lost.
    """

    def __init__(
        self, cluster: Cluster[Result], folder: Path, settle: Callable[[Item, Result | GraphveilError], None]
    ) -> None:
        self._cluster, self._folder, self._settle = cluster, folder, settle
        self._items: dict[object, Item] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no work is left."""
        return self._cluster.is_idle

    def submit(self, item: Item, work: Callable[[Path], Result], needs: Iterable[Path] = ()) -> None:
        """Queue the work of an item.

        Args:
            item: the item.
            work: writes files into a folder, and returns its result.
            needs: files in the folder of the results, and folders of them, that the work needs if they exist.
        """
        self._items[self._cluster.submit(work, self._folder, needs)] = item

    def settle_done(self, seconds: float | None) -> None:
        """Call `settle` for the items that have finished; see `graphveil.pool.Pool`."""
        for future, result in self._cluster.finished(seconds):
            self._settle(self._items.pop(future), result)

    def stop(self, kill: bool = True) -> None:  # noqa: ARG002 - nothing is left to do if it is not to kill
        """Leave the cluster; the items that its processes are running are not finished."""
        self._cluster.close()


Workers = Pool[Item, Result] | ClusterWorkers[Item, Result]
