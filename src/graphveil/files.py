"""Writing files so that a killed program leaves either the old file or the new one, never half of one.

A folder is written to by one process at a time: it holds a lock, and says in a note beside it who it is. What a killed
process left half-written is swept away by the next one that holds the folder's lock or writes the same file. A folder
that was made for something that failed is gone again, and so is a lock that has nothing to guard.
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

_held: dict[Path, tuple[int, int]] = {}
"""The folders whose lock this process holds, as the file system numbers them."""


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, flush it to the disk, and rename it onto `path`."""
    with blame_the_disk(path):
        check_target(path)
        with making(path.parent):
            sweep(path.parent, path.name)
            temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
            try:
                with temporary.open("xb") as alive:
                    with suppress(OSError):  # a file system may have no locks
                        fcntl.flock(alive, fcntl.LOCK_EX)  # so that nobody takes it for what a killed writer left
                    write(temporary)
                    with temporary.open("rb+") as file:
                        os.fsync(file.fileno())
                    temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value` as readable JSON; NaN and infinity are refused, since JSON has neither."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file; the bytes are made first, so that a full disk is an ordinary OSError."""
    data = safetensors.torch.save({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, metadata)
    write_atomically(path, lambda temporary: temporary.write_bytes(data))


def read_json(path: Path) -> Any:
    """What a JSON file holds; one that is nested without end is a ValueError, as every other that is none."""
    if path.exists() and not path.is_file():
        raise ValueError("it is not a plain file")  # a pipe or a device might never end
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """With a digest of itself, so that an edited file is noticed; whoever means harm can make another."""
    rest = {key: value for key, value in record.items() if key != "sha256"}
    return rest | {"sha256": hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()}


def is_sealed(record: Any) -> bool:
    """Whether what a file holds is a record, as it was when it was sealed."""
    return isinstance(record, dict) and bool(record.get("sha256") == sealed(record)["sha256"])


def sha256(path: Path) -> str:
    """Of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove what killed writers left half-written in a folder, or of one file in it; what is being written stays."""
    start = "." if name is None else f".{name}."
    for rubbish in [file for file in folder.iterdir() if file.name.startswith(start) and file.name.endswith(".part")]:
        with suppress(OSError), rubbish.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            rubbish.unlink()


@contextmanager
def making(folder: Path) -> Iterator[bool]:
    """Make a folder, and those above it, where there is none; gives whether it did. What stays empty goes again."""
    missing = list(takewhile(lambda place: not place.exists(), (folder, *folder.parents)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder in missing
    finally:
        with suppress(OSError):  # above all because something is in it
            for place in missing:
                place.rmdir()


@contextmanager
def hold_lock(file: Path, seconds: float, busy: str, worthless: Collection[str] = ()) -> Iterator[None]:
    """Hold the lock in `file`, waiting for it at most so long; `busy` is the sentence if somebody else keeps it.

    The sentence is followed by who that is. What a killed writer left half-written in the folder is swept away.

    Args:
        worthless: names of files that are of no use alone: a new folder with nothing else in it at the end is removed.
    """
    folder, note = file.parent, file.with_name(f"{file.name}.json")
    deadline = time.monotonic() + seconds
    while True:
        with ExitStack() as stack:
            with blame_the_disk(folder):
                new = stack.enter_context(making(folder))
                lock = _locked(file)
            if lock is not None:
                stack.callback(os.close, lock)
                stack.callback(_leave, file, lock, worthless if new else ())
                sweep(folder)
                write_json(note, _myself())
                _held[folder] = _number(folder)
                yield
                return
        if time.monotonic() >= deadline:
            raise GraphveilError(busy + _holder(note))
        time.sleep(0.05)


@contextmanager
def blame_the_disk(path: Path) -> Iterator[None]:
    """Turn whatever the file system says into one sentence that names the path."""
    try:
        yield
    except (OSError, RecursionError) as error:  # the latter where a path has a thousand folders
        reason = getattr(error, "strerror", None) or str(error)
        raise GraphveilError(
            f"cannot write {path}: {reason}. Free some space, or choose a folder you may write to."
        ) from error


def check_target(path: Path) -> None:
    """Refuse to put a file in place of something else, or into a folder that is no longer the one that was locked."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise GraphveilError(f"cannot write {path}: what is there is not a plain file. Choose another name.")
    folder = path.parent
    if folder in _held and not (folder.exists() and _number(folder) == _held[folder]):
        raise GraphveilError(f"{folder} was removed while it was being written to: start over.")


def check_place(folder: Path, ours: Collection[str]) -> None:
    """Refuse a folder with files of somebody's own, among which ours would be strewn; what a kill left is none.

    Args:
        ours: names of which one is there if it is a folder that we wrote to before, as a lock is.
    """
    with blame_the_disk(folder):
        names = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
    found = [name for name in names if not (name.startswith(".") and name.endswith(".part"))]
    if found and not {".lock", *ours} & {*found}:
        raise GraphveilError(
            f"{folder} holds {found[0]!r} and nothing that such a command wrote: choose a folder that is new or empty."
        )


def _locked(file: Path) -> int | None:
    """An open file that is locked, and lies under its name; None if somebody else keeps it.

    One that its last holder removed, or whose folder has gone, after it was opened here guards nothing any more.
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
    except OSError:  # a file system may have no locks
        pass
    if not _lies_there(file, lock):
        os.close(lock)
        return None
    return lock


def _leave(file: Path, lock: int, worthless: Collection[str]) -> None:
    """Remove the holder's note, and the lock too if nothing of worth is beside it; whoever waits for it notices."""
    _held.pop(file.parent, None)
    with suppress(OSError):
        if not _lies_there(file, lock):
            return  # the folder is somebody else's by now
        file.with_name(f"{file.name}.json").unlink(missing_ok=True)
        others = {found.name for found in file.parent.iterdir()} - {file.name}
        if others <= {*worthless}:
            for name in (*others, file.name):
                file.with_name(name).unlink()


def _lies_there(file: Path, opened: int) -> bool:
    try:
        return os.path.samestat(file.lstat(), os.fstat(opened))
    except FileNotFoundError:
        return False


def _number(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


def _myself() -> dict[str, str | int]:
    """Who holds a lock, for whoever finds it taken."""
    verb = next((word for word in sys.argv[1:] if not word.startswith("-")), "python")
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": socket.gethostname(), "verb": verb, "since": since}


def _holder(note: Path) -> str:
    """Who holds a lock, as a sentence; nothing where the note is torn, or of a process that is no more."""
    try:
        with note.open("rb") as file:
            told = json.loads(file.read(4096))
        pid, since = int(told["pid"]), datetime.fromisoformat(told["since"])
        host, verb = (ascii(told[key][:80]).strip("'\"") for key in ("host", "verb"))
        if host == socket.gethostname() and not _is_alive(pid):
            return ""
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f" It is process {pid} on {host}, at `{verb}` since {since:%Y-%m-%d %H:%M:%S}."


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:  # another user's
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return pid > 0
