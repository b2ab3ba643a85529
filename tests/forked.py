"""The program in processes of its own, forked from one that has imported everything: a kill should not cost an import.

They are real processes with a group of their own, so that a signal to the group reaches their workers too.
"""

import atexit
import contextlib
import importlib
import multiprocessing as mp
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path

IMPORTED = [
    "graphveil.cli",
    "graphveil.experiments.reproduce",
    "graphveil.reporting",
    "joblib.externals.loky",
    "networkx",
]


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

    def wait(self, seconds: float = 300) -> int:
        """Its exit code; one that hangs is killed, and is a failure."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.signal(signal.SIGKILL)
            self.process.join()
            raise AssertionError(f"it hangs: {self.err.read_text()}")
        return self.process.exitcode

    def wait_for(self, happened: Callable[[], bool], seconds: float = 60) -> bool:
        """Until something has happened; False if the program has left before."""
        happens(lambda: happened() or self.process.exitcode is not None, seconds)
        return happened()

    @property
    def said(self) -> str:
        """On stderr."""
        return self.err.read_text()

    @property
    def printed(self) -> str:
        """On stdout."""
        return self.out.read_text()


@dataclass(frozen=True)
class Environment:
    """Variables of the environment, as `before`."""

    values: dict[str, str]

    def __call__(self) -> None:
        os.environ |= self.values


@dataclass(frozen=True)
class Shell:
    """A way to start a program, as `before`: in a folder, and on a screen of so many columns.

    Args:
        folder: the folder to work in.
        columns: the width of the screen.
        terminal: the device of a pseudo-terminal, which is its input and its output; with none, these are files.
    """

    folder: Path
    columns: int = 200
    terminal: str | None = None

    def __call__(self) -> None:
        os.chdir(self.folder)
        os.environ |= {"COLUMNS": str(self.columns), "LINES": "20", "TERM": "xterm"}
        if self.terminal is not None:
            for number in range(3):
                os.dup2(os.open(self.terminal, os.O_RDWR), number)
        os.cpu_count = lambda: 1  # a second process would import everything again
        for name in [name for name in sys.modules if name.startswith("graphveil.cli")]:
            del sys.modules[name]  # it looks at the screen when it is loaded


class Forks:
    """Starts programs."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._context = mp.get_context("forkserver")
        self._context.set_forkserver_preload(IMPORTED)
        forkserver.ensure_running()  # now, since it keeps the environment that it is started in

    def start(self, *arguments: str | Path, before: Callable[[], object] | None = None) -> Program:
        """`graphveil ARGUMENTS`.

        Args:
            before: called in the new process before the program is.
        """
        return self._start(_command_line, [str(word) for word in arguments], before)

    def script(self, code: str, before: Callable[[], object] | None = None) -> str:
        """Run Python code to its end, which must be a good one; its output."""
        program = self.start_script(code, before)
        assert program.wait(500) == 0, program.said
        return program.printed

    def start_script(self, code: str, before: Callable[[], object] | None = None) -> Program:
        """`python -c CODE`."""
        return self._start(_execute, [code], before)

    def _start(
        self, work: Callable[[Sequence[str]], None], arguments: Sequence[str], before: Callable[[], object] | None
    ) -> Program:
        self._count += 1
        out, err = (self._folder / f"{self._count}.{stream}" for stream in ("out", "err"))
        process = self._context.Process(target=_run, args=(work, arguments, out, err, before))
        process.start()
        program = Program(process, out, err)
        assert program.wait_for(_begun(err).exists, 300), program.said
        return program

    def __call__(self, *arguments: str | Path, before: Callable[[], object] | None = None) -> tuple[int, str]:
        """Run to the end; exit code and stderr."""
        program = self.start(*arguments, before=before)
        return program.wait(), program.said


def _command_line(arguments: Sequence[str]) -> None:
    sys.argv = ["graphveil", *arguments]
    importlib.import_module("graphveil.cli").run()


def _execute(arguments: Sequence[str]) -> None:
    exec(arguments[0], {"__name__": "__main__"})


def _run(
    work: Callable[[Sequence[str]], None],
    arguments: Sequence[str],
    out: Path,
    err: Path,
    before: Callable[[], object] | None,
) -> None:
    os.setsid()
    for number, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    if before is not None:
        before()
    _begun(err).touch()
    code: object = 1
    try:
        work(arguments)
        code = 0
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


def happens(event: Callable[[], bool], seconds: float = 60) -> bool:
    """Wait until something has happened that nobody reports, such as a new file; False if it never does."""
    deadline = time.monotonic() + seconds
    while not event():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def processes_of_group(group: int) -> list[int]:
    """The ids of all running processes of a process group."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            state, _, process_group = status.read_text().rpartition(")")[2].split()[:3]
            if int(process_group) == group and state != "Z":
                found.append(int(status.parent.name))
    return found
