"""Work on the machines of a Ray cluster, which is the extra `ray`.

A piece of work is a function of a folder, in which it writes its files. On a cluster this is a temporary folder, and
the files travel back: only the driver, which is the command that was started, writes into the folder of the results. So
the machines need no shared folder for results, and a worker that is lost leaves no incomplete files there: its work is
done again. Ray sends functions and their arguments as pickles, so a cluster must be as trusted as the driver's machine.
"""

import hashlib
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, nullcontext, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from threadpoolctl import threadpool_limits

import graphveil
from graphveil.errors import GraphveilError, first_line, shortened
from graphveil.experiments.cells import made_with
from graphveil.files import is_alive, sha256, write_bytes
from graphveil.interrupts import block_interrupts

LOCAL, AUTO = "local", "auto"
RETRIES = 3
"""How often work is done again after its worker was lost."""
SECONDS = 10
"""How long to wait for the answer of a cluster."""
STORE_BYTES = 200 << 20
"""The shared memory of a local cluster, through which files travel."""
WORK = "graphveil-work-"
"""The beginning of the names of temporary folders; the names of the machine and the number of the process follow."""
LOST = (
    f"the processes that ran it on the Ray cluster died {RETRIES + 1} times, possibly because they ran out of memory:"
    " run the command again with fewer processes for each machine"
)

LONGEST_PARENT = 20
"""Characters of the folder of a local cluster's folder: the path of a socket in it may have about 100."""

Result = TypeVar("Result")
Files = Mapping[str, bytes]
"""The contents of files by their path within a folder."""
Changes = Mapping[str, bytes | None]
"""The contents of the files that work wrote, by their path within a folder; None for a file that it removed."""


class Cluster(Generic[Result]):
    """A connection to a Ray cluster; it is made when the first work is submitted.

    Args:
        address: "local" for a cluster on this machine that ends with the connection, "auto" for the one that runs on
            this machine, or HOST:PORT of the head of a cluster.
        jobs: the number of processes of a local cluster.
    """

    def __init__(self, address: str, jobs: int) -> None:
        self._address, self._jobs = address, jobs
        self._ray: Any = None
        self._task: Any = None
        self._owned: tempfile.TemporaryDirectory[str] | None = None
        self._running: dict[Any, Path] = {}

    def submit(self, work: Callable[[Path], Result], folder: Path, needs: Iterable[Path] = ()) -> object:
        """Queue work, and return what identifies it among the results.

        Args:
            work: writes files into a folder, and returns its result.
            folder: the folder on this machine for its files.
            needs: files in this folder, and folders of them, that the work needs if they exist.
        """
        self._connect()
        scratch = self._owned.name if self._owned is not None else None
        future = self._task.remote(work, _contents(folder, needs), _versions(), str(Path.cwd()), scratch)
        self._running[future] = folder
        return future

    def finished(self, seconds: float | None) -> list[tuple[object, Result | GraphveilError]]:
        """The results of work that has finished, or the errors that stopped it, after its files were written here.

        Files that the work needed and removed are removed here, too.

        Args:
            seconds: how long to wait at most until some work has finished; None until some has, if there is any.
        """
        if not self._running:
            return []
        running = list(self._running)
        done, _ = self._ray.wait(running, num_returns=1, timeout=seconds)
        return [(future, self._fetch(future)) for future in done]

    @property
    def is_idle(self) -> bool:
        """Whether all results were fetched."""
        return not self._running

    def close(self) -> None:
        """Stop all work, and end the connection; a local cluster ends with it."""
        if self._ray is None:
            return
        ray, self._ray = self._ray, None
        for future in self._running:
            with suppress(Exception):  # it may have finished, or its worker may be gone
                ray.cancel(future, force=True)
        self._running.clear()
        ray.shutdown()
        self._remove_owned()

    def _remove_owned(self) -> None:
        if self._owned is not None:
            self._owned.cleanup()
            self._owned = None

    def _connect(self) -> None:
        if self._ray is not None:
            return
        check_address(self._address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
        import ray  # noqa: PLC0415 - an extra, and slow to import

        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "address": self._address}
        if self._address == LOCAL:
            parent = tempfile.gettempdir()
            parent = parent if len(parent) <= LONGEST_PARENT else "/tmp"
            self._owned = tempfile.TemporaryDirectory(prefix="gv-", dir=parent, ignore_cleanup_errors=True)
            options |= {"num_cpus": self._jobs, "include_dashboard": False, "object_store_memory": STORE_BYTES}
            options["_temp_dir"] = self._owned.name
        try:
            with block_interrupts() if self._address == LOCAL else nullcontext(), _quiet():
                ray.init(**options)
        except ConnectionError as error:
            self._remove_owned()
            raise _not_reachable(self._address) if self._address == AUTO else _refused(self._address) from error
        except (RuntimeError, ValueError, OSError) as error:
            self._remove_owned()
            raise GraphveilError(
                f"the Ray cluster at {self._address!r} cannot be used ({first_line(error)}): install the same versions"
                " of Python, Ray and graphveil on all machines, or use --ray local."
            ) from error
        self._ray, self._task = ray, ray.remote(num_cpus=1, max_retries=RETRIES)(_run)

    def _fetch(self, future: Any) -> Result | GraphveilError:
        folder = self._running.pop(future)
        try:
            result, changes = self._ray.get(future)
        except self._ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None) or error
            return GraphveilError(f"{type(cause).__name__}: {first_line(cause)}")
        except self._ray.exceptions.RayError:
            return GraphveilError(LOST)
        for name, content in changes.items():
            if content is None:
                (folder / name).unlink(missing_ok=True)
            else:
                write_bytes(folder / name, content)
        found: Result | GraphveilError = result
        return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide what Ray's C++ code writes to stderr while it connects; errors are exceptions as well."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def check_address(address: str | None) -> None:
    """Refuse an address at which no cluster can be; None is accepted.

    Raises:
        GraphveilError: if Ray is not installed, the address has another form, or nothing answers there.
    """
    if address is None:
        return
    if find_spec("ray") is None:
        raise GraphveilError(
            "--ray needs Ray, which is not installed: install the extra ray (in the clone: pip"
            " install -c constraints.txt '.[ray]')."
        )
    host, _, port = address.rpartition(":")
    if address in (LOCAL, AUTO):
        return
    if not (host and "/" not in host and port.isdecimal() and 0 < int(port) < 2**16):
        shown = shortened(address, 60)
        raise GraphveilError(
            f"--ray {shown!r} is not an address: expected local, auto, or HOST:PORT of the head of a Ray cluster."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS).close()
    except (OSError, ValueError) as error:  # a name that no machine can have is a ValueError
        raise _not_reachable(shortened(address, 60)) from error


def _refused(address: str) -> GraphveilError:
    """The error if something listens at an address, but Ray cannot connect to it."""
    return GraphveilError(
        f"{address} answers, but no Ray cluster accepted the connection: check the address. If the cluster asks for a"
        " token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN here, too."
    )


def _not_reachable(address: str) -> GraphveilError:
    where = "runs on this machine" if address == AUTO else f"answers at {address}"
    return GraphveilError(f"no Ray cluster {where}: start one with `ray start --head`, or use --ray local.")


# ----- on the machines of the cluster ---------------------------------------------------------------------------------


def _run(
    work: Callable[[Path], Result], given: Files, versions: Mapping[str, str], current: str, scratch: str | None
) -> tuple[Result | GraphveilError, Changes]:
    """Do work in a temporary folder; return its result, or the error of graphveil that stopped it, and its changes.

    Args:
        work: the work.
        given: the files that it needs.
        versions: the versions of graphveil and of the libraries that results depend on, on the driver's machine.
        current: the folder in which the command was started; names of files are relative to it, if it exists here.
        scratch: the folder of temporary folders; None for that of this machine.
    """
    own = _versions()
    for library in sorted({*own, *versions}):
        here, there = own.get(library, "missing"), versions.get(library, "missing")
        if here != there:
            return GraphveilError(
                f"{library} on the machine {socket.gethostname()} of the Ray cluster is {here}, but {there} where this"
                f" command was started: install the same version on all machines."
            ), {}
    root = Path(scratch or tempfile.gettempdir())
    _remove_abandoned(root)
    torch.set_num_threads(1)
    prefix = f"{_own_work()}{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=root) as name, ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        with suppress(OSError):  # it may be missing here, or not be for this user
            stack.enter_context(chdir(current))
        folder = Path(name)
        for path, content in given.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        try:
            result: Result | GraphveilError = work(folder)
        except GraphveilError as error:
            result = error
        written = _contents(folder, [folder])
    changed = {path: content for path, content in written.items() if given.get(path) != content}
    return result, changed | dict.fromkeys(given.keys() - written.keys())


def _contents(folder: Path, paths: Iterable[Path]) -> dict[str, bytes]:
    """The files at some paths in a folder, in the order in which they were written; no hidden ones, such as locks."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]
    files = [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]
    files.sort(key=lambda file: file.stat().st_mtime_ns)
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def _own_work() -> str:
    """The beginning of the names of this machine's temporary folders; machines may share the folder around them."""
    return f"{WORK}{socket.gethostname()}-"


def _versions() -> dict[str, str]:
    """The versions that the names and the values of results depend on."""
    source = {"the source of graphveil": _digest_of(Path(graphveil.__file__).parent)}
    return {"graphveil": graphveil.__version__} | made_with() | source


@cache
def _digest_of(package: Path) -> str:
    """A digest of the source files of a package, in which two commits of one version differ."""
    found = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        found.update(f"{file.relative_to(package)} {sha256(file)}\n".encode())
    return found.hexdigest()[:12]


def _remove_abandoned(root: Path) -> None:
    """Remove the temporary folders of processes of this machine that were killed."""
    for folder in root.glob(f"{WORK}*"):
        machine, _, process = folder.name.rpartition("-")[0].rpartition("-")  # the name of a machine may have hyphens
        if f"{machine}-" == _own_work() and process.isdecimal() and not is_alive(int(process)):
            shutil.rmtree(folder, ignore_errors=True)
