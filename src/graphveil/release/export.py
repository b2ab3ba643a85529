"""`release`: from a run's folder, the folder that may be handed on.

It is filled under another name beside its place and renamed when it is whole. Nothing is copied out of the run: the
embeddings are read and written anew, and the card is written from the fields that it names. So the adversary, the
secrets, the links, the features and the history of a training have no way into it.
"""

import secrets
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from graphveil.errors import GraphveilError, unknown
from graphveil.files import blame_the_disk, making, sha256, write_text
from graphveil.release.card import card
from graphveil.release.evidence import Audited, Evidence, Limits, gather
from graphveil.release.formats import FORMATS
from graphveil.release.pseudonyms import read_key, under_pseudonyms

CARD, SUMS, LOCK = "CARD.md", "SHA256SUMS", ".lock"


@dataclass(frozen=True)
class Release:
    """A folder that may leave.

    Args:
        files: names and sizes in bytes, in alphabetical order.
        audits: by secret, None where there is none.
        objections: over which it was forced.
    """

    folder: Path
    files: dict[str, int]
    audits: dict[str, Audited | None]
    objections: tuple[str, ...]


def release(
    run: Path,
    out: Path,
    formats: Sequence[str] = ("parquet",),
    key_file: Path | None = None,
    max_leak: Limits | None = None,
    force: bool = False,
) -> Release:
    """Write embeddings, a card and checksums of a finished and audited run into the folder `out`.

    Args:
        out: must not be there yet, or be empty.
        formats: names of `FORMATS`.
        key_file: give pseudonyms in place of ids, by the key in this file, and the rows in their order.
        max_leak: refuse a run of whose secrets an attack reads more.
        force: go on whatever speaks against it; the card says what does.
    """
    _check_formats(formats)
    _check_places(run, out)
    key = None if key_file is None else read_key(key_file, [run, out])
    evidence = gather(run, max_leak or Limits())
    if evidence.objections and not force:
        raise GraphveilError(_refusal(run, evidence))
    embeddings = evidence.embeddings if key is None else under_pseudonyms(evidence.embeddings, key)
    with _in_place_at_the_end(out.resolve()) as folder:
        for name in dict.fromkeys(formats):
            FORMATS[name](folder, embeddings)
        write_text(folder / CARD, card(evidence, formats, key is not None))
        write_text(folder / SUMS, "".join(f"{sha256(folder / name)}  {name}\n" for name in _files(folder)))
        files = {name: (folder / name).stat().st_size for name in _files(folder)}
    return Release(out, files, dict(evidence.audits), tuple(evidence.objections))


def _check_formats(formats: Sequence[str]) -> None:
    for name in formats:
        if name not in FORMATS:
            raise unknown("format", name, FORMATS)
    if not formats:
        raise GraphveilError(f"no format was given: choose some of {', '.join(FORMATS)}.")


def _check_places(run: Path, out: Path) -> None:
    """Refuse to overwrite anything, and a release that lies in a run or a run in a release."""
    inner, outer = out.resolve(), run.resolve()
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise GraphveilError(f"--out {out} and the run {run} lie one in the other: choose a folder apart from it.")
    if inner == Path.cwd():
        raise GraphveilError("--out is the folder you are in, which cannot be put in place at once: name a new one.")
    with blame_the_disk(out):
        if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
            raise GraphveilError(f"{out} is there already: choose a folder that is not, or remove this one first.")


def _refusal(run: Path, evidence: Evidence) -> str:
    remedy = "" if all(evidence.audits.values()) else f" Audit it first: `graphveil audit {shlex.quote(str(run))}`."
    against = "; ".join(evidence.objections)
    return f"{run} is not released: {against}.{remedy} With --force it is all the same, and the card says so."


@contextmanager
def _in_place_at_the_end(out: Path) -> Iterator[Path]:
    """A folder beside `out` that takes its place when all is written, and is gone if something fails.

    It holds a lock while it is written, by which the next one tells what a killed program left.
    """
    with blame_the_disk(out), making(out.parent):
        start = f".{out.name}."
        for left in out.parent.iterdir():
            if left.name.startswith(start) and left.name.endswith(".unfinished") and not left.is_symlink():
                _remove_if_left(left)
        folder = out.with_name(f"{start}{secrets.token_hex(8)}.unfinished")
        folder.mkdir()
        lock = FileLock(folder / LOCK)
        try:
            with lock.acquire(timeout=0):
                yield folder
                (folder / LOCK).unlink()
                folder.rename(out)  # fails where something has come into its place
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _remove_if_left(folder: Path) -> None:
    try:
        with FileLock(folder / LOCK).acquire(timeout=0):
            shutil.rmtree(folder, ignore_errors=True)
    except (Timeout, OSError):
        return


def _files(folder: Path) -> list[str]:
    found = [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]
    return sorted(name for name in found if name != LOCK)
