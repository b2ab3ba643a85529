"""Thousands of cases, in forked processes that may crash, hang or run out of memory without affecting the tests.

A case is a name and a number, which determine it together with the seed, so that a fault can be reproduced.
Set GRAPHVEIL_SEED for other cases.
"""

import json
import multiprocessing as mp
import os
import random
import resource
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.forked import IMPORTED

SECONDS = 10
"""Processor time after which a case hangs: it is ended and is a fault. Other work on the machine does not count."""
WAIT = 50
"""The same for the time on the clock, for a case that waits for something."""
MEGABYTES = 1000
"""The most memory that a case may add to the peak of the process."""
LONGEST = 600
"""The longest message, in characters."""

Case = tuple[str, int]
Try = Callable[[str, random.Random, Path], Sequence[str]]
"""Runs a case in its own folder; returns how it ended, and its faults."""


@dataclass
class Tally:
    """The results of all cases."""

    tried: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        tried = ", ".join(f"{name} {count:,}" for name, count in sorted(self.tried.items()))
        ended = ", ".join(f"{name} {count:,}" for name, count in sorted(self.ended.items()))
        return (
            f"{self.tried.total():,} cases, {len(self.faults)} faults, {self.seconds:.0f} s"
            f"\n  tried: {tried}\n  ended: {ended}"
        )


def chosen_seed() -> int:
    return int(os.environ.get("GRAPHVEIL_SEED", "0"))


def run_cases(cases: Sequence[Case], attempt: Try, folder: Path, batch: int = 200) -> Tally:
    """Try all cases; one that kills its process is a fault, and the rest goes on in another."""
    tally, started = Tally(), time.monotonic()
    waiting = list(cases)
    while waiting:
        results = _in_a_process(waiting[:batch], attempt, folder)
        for (name, number), line in zip(waiting, results, strict=False):
            tally.tried[name] += 1
            tally.ended[line["ended"]] += 1
            tally.faults += [f"{name} {number}: {fault}" for fault in line["faults"]]
        waiting = waiting[len(results) :]
    tally.seconds = time.monotonic() - started
    return tally


def _in_a_process(cases: Sequence[Case], attempt: Try, folder: Path) -> list[dict[str, Any]]:
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    log = folder / "results.jsonl"
    log.write_text("")
    process = context.Process(target=_try_all, args=(cases, attempt, folder, log, chosen_seed()))
    process.start()
    heard, since = 0, time.monotonic()
    while process.is_alive():
        process.join(0.05)
        if (size := log.stat().st_size) != heard:
            heard, since = size, time.monotonic()
        if time.monotonic() - since > WAIT + SECONDS:
            process.kill()
            process.join()
    results = [json.loads(line) for line in log.read_text().splitlines()]
    if len(results) < len(cases):
        code = process.exitcode
        results.append(
            {"ended": "crash", "faults": [f"the process ended with {code} after {time.monotonic() - since:.0f} s"]}
        )
    return results


def _try_all(cases: Sequence[Case], attempt: Try, folder: Path, log: Path, seed: int) -> None:
    soft = _used() + (8 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (soft, soft))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with log.open("a") as lines:
        for name, number in cases:
            place = folder / f"{name.replace(' ', '-')}-{number}"
            place.mkdir(parents=True)
            memory = _peak()
            try:
                with _limited():
                    ended, *faults = attempt(name, random.Random(f"{seed}/{name}/{number}"), place)
            except Late as late:
                ended, faults = "hang", [str(late)]
            except BaseException as error:
                ended, faults = "escaped", [f"{type(error).__name__}: {error}"[:300]]
            if (more := _peak() - memory) > MEGABYTES:
                faults.append(f"it needed {more:.0f} MB")
            if faults and os.environ.get("GRAPHVEIL_KEEP"):
                shutil.copytree(
                    place, Path(os.environ["GRAPHVEIL_KEEP"]) / place.name, symlinks=True, dirs_exist_ok=True
                )
            shutil.rmtree(place, ignore_errors=True)
            lines.write(json.dumps({"ended": ended, "faults": faults}) + "\n")
            lines.flush()
    os._exit(0)


class Late(BaseException):
    """Not an `Exception`, so that no program catches it."""


@contextmanager
def _limited() -> Iterator[None]:
    def late(number: int, _: object) -> None:
        spent = f"{SECONDS} s of processor time" if number == signal.SIGPROF else f"{WAIT} s"
        raise Late(f"it took more than {spent}")

    signal.signal(signal.SIGPROF, late)
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(WAIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _used() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
