"""Processes that die, in calls and in items."""

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from graphveil.errors import GraphveilError
from graphveil.experiments.workers import finishing
from graphveil.pool import Pool, parallel
from tests.forked import happens


def die(_: object = None) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def in_process(number: int) -> tuple[int, int]:
    return number, os.getpid()


def test_results_have_the_order_of_the_calls_and_one_job_needs_no_process() -> None:
    taken: list[int] = []

    def calls() -> Iterator[Callable[[], tuple[int, int]]]:
        for number in range(3):
            taken.append(number)
            yield partial(in_process, number)

    results = parallel(calls(), 1)
    assert next(results) == (0, os.getpid())
    assert taken == [0], "the next call is taken when the process is free"
    assert list(results) == [(1, os.getpid()), (2, os.getpid())]


@pytest.mark.usefixtures("forked_pool")
def test_calls_share_large_arrays() -> None:
    array = np.arange(1_000_000)
    (kind,) = {*parallel([partial(type_of, array)] * 2, 2)}
    assert kind == "memmap"


def type_of(array: object) -> str:
    return type(array).__name__


@pytest.mark.usefixtures("forked_pool")
def test_a_process_that_dies_ends_the_calls_with_a_sentence() -> None:
    with pytest.raises(GraphveilError, match=r"^a process died, possibly .* with fewer --jobs; an audit of a run cont"):
        list(parallel([die, die], 2))


@pytest.mark.usefixtures("forked_workers")
def test_items_that_come_after_a_process_died_run_in_parallel(tmp_path: Path) -> None:
    """The lost item runs alone, in one process; what its end brings does not."""

    def dies_once(folder: Path) -> str | None:
        if not (folder / "died").exists():
            (folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return None

    def meets_another(folder: Path) -> str | None:
        (folder / f"process {os.getpid()}").touch()
        met = happens(lambda: len(list(folder.glob("process *"))) == 2)
        return None if met else "it ran alone"

    settled: list[tuple[str, object]] = []

    def settle(item: str, result: str | GraphveilError | None) -> None:
        settled.append((item, result))
        if item == "lost":
            for name in ("one", "other"):
                pool.submit(name, meets_another)

    pool = Pool(2, tmp_path, settle)
    with finishing(pool):
        pool.submit("lost", dies_once)
    assert sorted(settled) == [("lost", None), ("one", None), ("other", None)]


@pytest.mark.usefixtures("forked_workers")
def test_an_item_whose_process_dies_twice_has_an_error_for_a_result(tmp_path: Path) -> None:
    settled: dict[str, object] = {}
    pool: Pool[str, int] = Pool(2, tmp_path, settled.__setitem__)
    with finishing(pool):
        pool.submit("dies", die)
        pool.submit("lives", lambda _: 1)
    assert settled.pop("lives") == 1
    (error,) = settled.values()
    assert isinstance(error, GraphveilError)
    assert str(error).startswith("its process died")


@pytest.mark.usefixtures("forked_workers")
def test_an_error_in_the_work_of_an_item_ends_the_others(tmp_path: Path) -> None:
    def fails(_: Path) -> None:
        raise GraphveilError("no.")

    def waits(folder: Path) -> None:
        happens((folder / "never").exists)

    def run() -> None:
        pool: Pool[str, None] = Pool(2, tmp_path, lambda *_: None)
        with finishing(pool):
            pool.submit("fails", fails)
            pool.submit("waits", waits)

    with pytest.raises(GraphveilError, match=r"^no\.$"):
        run()
