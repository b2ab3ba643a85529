"""Write files atomically: a killed program leaves either the old file or the new one, never a part of it.

One process at a time writes to a folder: it holds a lock, and a note beside the lock identifies the process. Partial
files of a killed process are removed by the next one that holds the lock or writes the same file. If an operation
fails, the folder that it created is removed, and so is a lock in an otherwise empty folder.
"""

import fcntl
import hashlib
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from graphveil.errors import GraphveilError

_locked_folders: dict[Path, tuple[int, int]] = {}
"""The folders whose lock this process holds, with their device and inode numbers."""


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, flush it to the disk, and rename it onto `path`."""
    with report_write_errors(path):
        check_output_file(path)
        with create_folder(path.parent):
            remove_partial_files(path.parent, path.name)
            temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
            try:
                with temporary.open("xb") as alive:
                    with suppress(OSError):  # a file system may not support locks
                        fcntl.flock(alive, fcntl.LOCK_EX)  # marks the file as in use for `remove_partial_files`
                    write(temporary)
                    with temporary.open("rb+") as file:
                        os.fsync(file.fileno())
                    temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value` as indented JSON; NaN and infinity are errors, since JSON has neither."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes."""
    write_atomically(path, lambda temporary: temporary.write_bytes(content))


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file; it is serialised in memory first, so that a full disk is an ordinary OSError."""
    data = safetensors.torch.save({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, metadata)
    write_atomically(path, lambda temporary: temporary.write_bytes(data))


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; invalid JSON, also if nested too deeply, is a ValueError."""
    if path.exists() and not path.is_file():
        raise ValueError("it is not a regular file")  # reading a pipe or a device might never end
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with its own SHA-256, which detects accidental edits, but not deliberate ones."""
    rest = {key: value for key, value in record.items() if key != "sha256"}
    return rest | {"sha256": hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()}


def is_sealed(record: Any) -> bool:
    """Return whether the content of a file is a record with a valid digest."""
    return isinstance(record, dict) and bool(record.get("sha256") == sealed(record)["sha256"])


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_partial_files(folder: Path, name: str | None = None) -> None:
    """Remove the partial files of killed writers in a folder, but none that is being written.

    Args:
        folder: The folder.
        name: Remove only the partial files of this file; None removes all.
    """
    start = "." if name is None else f".{name}."
    for partial in [file for file in folder.iterdir() if file.name.startswith(start) and file.name.endswith(".part")]:
        with suppress(OSError), partial.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            partial.unlink()


@contextmanager
def create_folder(folder: Path) -> Iterator[bool]:
    """Create a folder and its parents if they are missing, and remove those that are still empty at the end.

    Yields:
        Whether the folder was created.
    """
    missing = list(takewhile(lambda parent: not parent.exists(), (folder, *folder.parents)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder in missing
    finally:
        with suppress(OSError):  # usually because it is not empty
            for created in missing:
                created.rmdir()


@contextmanager
def hold_lock(file: Path, seconds: float, busy: str, disposable: Collection[str] = ()) -> Iterator[None]:
    """Hold the lock of a folder, and remove the partial files of killed writers in it.

    Args:
        file: The lock file in the folder.
        seconds: How long to wait for the lock.
        busy: The message of the error if another process still holds it; a sentence about that process is added.
        disposable: Names of files that are of no use alone: a new folder that holds nothing else at the end is removed.

    Raises:
        GraphveilError: If another process holds the lock, or the folder cannot be written.
    """
    folder, note = file.parent, file.with_name(f"{file.name}.json")
    deadline = time.monotonic() + seconds
    while True:
        with ExitStack() as stack:
            with report_write_errors(folder):
                new = stack.enter_context(create_folder(folder))
                lock = _locked(file)
            if lock is not None:
                stack.callback(os.close, lock)
                stack.callback(_release, file, lock, disposable if new else ())
                remove_partial_files(folder)
                write_json(note, _holder_note())
                _locked_folders[folder] = _inode(folder)
                yield
                return
        if time.monotonic() >= deadline:
            raise GraphveilError(busy + _holder_sentence(note))
        time.sleep(0.05)


@contextmanager
def try_lock(file: Path) -> Iterator[bool]:
    """Lock a file without waiting until the end of the block; yields whether this process holds the lock."""
    lock = _locked(file)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            os.close(lock)


@contextmanager
def report_write_errors(path: Path) -> Iterator[None]:
    """Turn errors of the file system into a `GraphveilError` that names the path."""
    try:
        yield
    except (OSError, RecursionError) as error:  # the latter for a path of a thousand folders
        reason = getattr(error, "strerror", None) or str(error)
        advice = "Free some space, or choose a folder that you can write to."
        if isinstance(error, FileExistsError | NotADirectoryError):
            advice = "A file is where a folder is needed: choose another path."
        raise GraphveilError(f"cannot write {path}: {reason}. {advice}") from error


def check_output_file(path: Path) -> None:
    """Refuse to replace anything but a regular file, and to write into a folder that was replaced since its lock."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise GraphveilError(f"cannot write {path}: it exists and is not a regular file. Choose another name.")
    folder = path.parent
    if folder in _locked_folders and not (folder.exists() and _inode(folder) == _locked_folders[folder]):
        raise GraphveilError(f"{folder} was removed while it was being written to: run the same command again.")


def check_output_folder(folder: Path, ours: Collection[str]) -> None:
    """Refuse an output folder that holds other files, except partial ones.

    Args:
        folder: The folder.
        ours: Names of files that mark a folder as written by the same command before; a lock does so too.
    """
    with report_write_errors(folder):
        names = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
    existing = [name for name in names if not (name.startswith(".") and name.endswith(".part"))]
    if existing and not {".lock", *ours} & {*existing}:
        raise GraphveilError(
            f"{folder} holds {existing[0]!r} and no files of this command: choose a folder that is new or empty."
        )


def _locked(file: Path) -> int | None:
    """The descriptor of the locked file; None if another process holds the lock.

    It is also None if the file, or its folder, was removed after it was opened here, since such a lock is void.
    """
    try:
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.close(lock)
        return None
    except OSError:  # a file system may not support locks
        pass
    if not _is_current(file, lock):
        os.close(lock)
        return None
    return lock


def _release(file: Path, lock: int, disposable: Collection[str]) -> None:
    """Remove the note, and also the lock if all other files are disposable; waiting processes notice that."""
    _locked_folders.pop(file.parent, None)
    with suppress(OSError):
        if not _is_current(file, lock):
            return  # the folder was replaced
        file.with_name(f"{file.name}.json").unlink(missing_ok=True)
        others = {other.name for other in file.parent.iterdir()} - {file.name}
        if others <= {*disposable}:
            for name in (*others, file.name):
                file.with_name(name).unlink()


def _is_current(file: Path, opened: int) -> bool:
    try:
        return os.path.samestat(file.lstat(), os.fstat(opened))
    except FileNotFoundError:
        return False


def _inode(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _holder_note() -> dict[str, str | int]:
    """The note about this process as the holder of a lock, for waiting processes."""
    verb = next((word for word in sys.argv[1:] if not word.startswith("-")), "python")
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": socket.gethostname(), "verb": verb, "since": since}


def _holder_sentence(note: Path) -> str:
    """A sentence about the holder of a lock; empty if the note is damaged, or its process has ended."""
    try:
        with note.open("rb") as file:
            holder = json.loads(file.read(4096))
        pid, since = int(holder["pid"]), datetime.fromisoformat(holder["since"])
        host, verb = (ascii(holder[key][:80]).strip("'\"") for key in ("host", "verb"))
        if host == socket.gethostname() and not is_alive(pid):
            return ""
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f" It is process {pid} on {host}, which has run `{verb}` since {since:%Y-%m-%d %H:%M:%S}."


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:  # of another user
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return pid > 0
