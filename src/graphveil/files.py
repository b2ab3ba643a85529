"""Writing files so that a killed program leaves either the old file or the new one, never half of one."""

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors.torch
from filelock import FileLock, Timeout
from torch import Tensor

from graphveil.errors import GraphveilError


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, flush it to the disk, and rename it onto `path`."""
    with blame_the_disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        try:
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


@contextmanager
def hold_lock(file: Path, seconds: float, busy: str) -> Iterator[None]:
    """Hold the lock in `file`, waiting for it at most so long; `busy` is the sentence if somebody else keeps it.

    What a killed writer left half-written in the folder is swept away.
    """
    with blame_the_disk(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(file)
        try:
            lock.acquire(timeout=seconds)
        except Timeout as error:
            raise GraphveilError(busy) from error
    try:
        for rubbish in file.parent.glob(".*.part"):
            rubbish.unlink(missing_ok=True)
        yield
    finally:
        lock.release()


@contextmanager
def blame_the_disk(path: Path) -> Iterator[None]:
    """Turn whatever the file system says into one sentence that names the path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise GraphveilError(
            f"cannot write {path}: {reason}. Free some space, or choose a folder you may write to."
        ) from error
