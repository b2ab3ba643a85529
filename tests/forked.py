"""The program in processes of its own, forked from one that has imported everything: a kill should not cost an import.

They are real processes with a group of their own, so that a signal to the group reaches their workers too.
"""

import atexit
import contextlib
import multiprocessing as mp
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

IMPORTED = ["graphveil.cli", "graphveil.experiments.reproduce", "graphveil.reporting", "joblib.externals.loky"]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, eq=False)
class Program:
    """A running `graphveil`."""

    process: BaseProcess
    out: Path
    err: Path

    def signal(self, number: int) -> None:
        """To it and to all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid or 0, number)

    def wait(self, seconds: float = 120) -> int:
        """Its exit code; one that hangs is killed, and is a failure."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.signal(signal.SIGKILL)
            self.process.join()
            raise AssertionError(f"it hangs: {self.err.read_text()}")
        return self.process.exitcode

    def wait_for(self, happened: Callable[[], bool], seconds: float = 60) -> bool:
        """Until something has happened; False if the program has left before."""
        deadline = time.monotonic() + seconds
        while not happened():
            if self.process.exitcode is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return True

    @property
    def said(self) -> str:
        """On stderr."""
        return self.err.read_text()


class Forks:
    """Starts programs."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._context = mp.get_context("forkserver")
        self._context.set_forkserver_preload(IMPORTED)
        os.environ.update(ONE_THREAD)

    def start(self, *arguments: str | Path, before: Callable[[], object] | None = None) -> Program:
        """`graphveil ARGUMENTS`.

        Args:
            before: called in the new process before the program is.
        """
        self._count += 1
        out, err = (self._folder / f"{self._count}.{stream}" for stream in ("out", "err"))
        process = self._context.Process(target=_run, args=([str(word) for word in arguments], out, err, before))
        process.start()
        program = Program(process, out, err)
        assert program.wait_for(_begun(err).exists), program.said
        return program

    def __call__(self, *arguments: str | Path, before: Callable[[], object] | None = None) -> tuple[int, str]:
        """Run to the end; exit code and stderr."""
        program = self.start(*arguments, before=before)
        return program.wait(), program.said


def _run(arguments: Sequence[str], out: Path, err: Path, before: Callable[[], object] | None) -> None:
    os.setsid()
    for number, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    from graphveil import cli

    if before is not None:
        before()
    sys.argv = ["graphveil", *arguments]
    _begun(err).touch()
    code: object = 1
    try:
        cli.run()
    except SystemExit as left:
        code = left.code
    except BaseException:
        traceback.print_exc()
    # multiprocessing would leave its own way, which waits for workers; this is how an interpreter leaves
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _begun(err: Path) -> Path:
    """A file that says that the program is about to begin."""
    return err.with_suffix(".begun")


def processes_of_group(group: int) -> list[int]:
    """The ids of all running processes of a process group."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            state, _, process_group = status.read_text().rpartition(")")[2].split()[:3]
            if int(process_group) == group and state != "Z":
                found.append(int(status.parent.name))
    return found
