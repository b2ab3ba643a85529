"""`release`: write the codes or embeddings of a run, a card and checksums into a folder of their own.

The folder is written under a temporary name and renamed when it is complete. No file of the run is copied: the
embeddings are read and written anew, and the card is rendered from the fields that it names. So the adversary, the
secrets, the links, the features and the training history cannot enter the release.

A release of codes is recorded in the ledger of the run just before the folder is renamed. So a release without an entry
cannot exist; an entry without a release may, if the renaming fails.
"""

import secrets
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from graphveil.auditing.certify import NODES_PER_CODE
from graphveil.errors import GraphveilError, RefusedError, shortened, unknown
from graphveil.files import create_folder, report_write_errors, sha256, try_lock, write_text
from graphveil.release.card import card
from graphveil.release.earlier_releases import Joint
from graphveil.release.evidence import Audited, Evidence, Limits, gather
from graphveil.release.ledger import record_release
from graphveil.release.pseudonyms import read_key, under_pseudonyms
from graphveil.release.writers import FORMATS

CARD, SUMS, LOCK = "CARD.md", "SHA256SUMS", ".lock"


@dataclass(frozen=True)
class Release:
    """A finished release.

    Args:
        folder: the folder of the release.
        files: the sizes of the files in bytes by name, in alphabetical order.
        audits: the audits by secret; None for a secret without a readable audit.
        objections: the objections that `force` has overruled.
        joint: what this release reveals together with earlier ones; None if there are none.
    """

    folder: Path
    files: dict[str, int]
    audits: dict[str, Audited | None]
    objections: tuple[str, ...]
    joint: Joint | None


def release(
    run: Path,
    out: Path,
    formats: Sequence[str] | None = None,
    key_file: Path | None = None,
    max_leak: Limits | None = None,
    force: bool = False,
    released_before: Sequence[Path] = (),
    root: Path | None = None,
) -> Release:
    """Write the codes or embeddings, a card and checksums of an audited run into the folder `out`.

    `graphveil.release.evidence` has the rule by which a run is refused.

    Args:
        run: the folder of a finished run.
        out: a folder that does not exist yet or is empty.
        formats: names of `FORMATS`; None for `codes` if the embeddings have few distinct rows, else `parquet`.
        key_file: a file with a key; ids are replaced by keyed pseudonyms, and rows are sorted by them.
        max_leak: the attack accuracy or AUC to accept, for all secrets or for each; a secret without one has the limit
            of the search that chose the run, if there is one.
        force: release in spite of objections; the card lists them.
        released_before: folders of other runs whose codes of the same nodes have been released. What all releases
            reveal together is computed, stated on the card and compared with the limit.
        root: the folder of the graph's raw files, which are read if there are earlier releases.

    Raises:
        GraphveilError: if the run is refused, or a path, a format or the key is unusable.
    """
    _check_names(formats)
    _check_places(run, out)
    key = None if key_file is None else read_key(key_file, [run, out])
    evidence = gather(run, max_leak or Limits(), released_before, root)
    chosen = _chosen(formats, evidence)
    if evidence.objections and not force:
        raise RefusedError(_refusal(run, evidence))
    embeddings = evidence.embeddings if key is None else under_pseudonyms(evidence.embeddings, key)
    with _in_place_at_the_end(out.resolve()) as folder:
        for name in chosen:
            FORMATS[name](folder, embeddings)
        write_text(folder / CARD, card(evidence, chosen, key is not None))
        write_text(folder / SUMS, "".join(f"{sha256(folder / name)}  {name}\n" for name in _files(folder)))
        files = {name: (folder / name).stat().st_size for name in _files(folder)}
        if evidence.codes is not None:
            record_release(run, evidence.codes, evidence.record, list(files), pseudonymous=key is not None)
    return Release(out, files, dict(evidence.audits), tuple(evidence.objections), evidence.joint)


def export(
    run: str | Path,
    out: str | Path,
    formats: str | Sequence[str] | None = None,
    pseudonyms: str | Path | None = None,
    max_leak: float | Mapping[str, float] | None = None,
    force: bool = False,
    released_before: Sequence[str | Path] = (),
    root: str | Path | None = None,
) -> Release:
    """Write a release of an audited run: codes or embeddings, a card and checksums, and nothing else.

    Args:
        run: the folder of a finished run.
        out: a folder that does not exist yet or is empty.
        formats: one or more names of `graphveil.release.writers.FORMATS`, such as "npy"; None for "codes"
            if the run has codes, else "parquet".
        pseudonyms: a file with a key; ids are replaced by keyed pseudonyms, and rows are sorted by them.
        max_leak: the highest attack accuracy or AUC to accept, from 0 to 1, for all secrets or for each by its name; a
            secret without one has the limit of `graphveil.tune`, if that chose the run.
        force: export in spite of objections; the card lists them.
        released_before: folders of other runs whose codes of the same nodes have been released.
        root: the folder of the graph's raw files, which are read if there are earlier releases.

    Raises:
        GraphveilError: if the run is refused, or a path, a format or the key is unusable.
    """
    limits = max_leak.items() if isinstance(max_leak, Mapping) else () if max_leak is None else ((None, max_leak),)
    stated = Limits.parsed([str(limit) if name is None else f"{name}={limit}" for name, limit in limits])
    key_file = None if pseudonyms is None else Path(pseudonyms)
    names = [formats] if isinstance(formats, str) else formats
    earlier, raw = [Path(one) for one in released_before], None if root is None else Path(root)
    return release(Path(run), Path(out), names, key_file, stated, force, earlier, raw)


def _check_names(formats: Sequence[str] | None) -> None:
    for name in formats or ():
        if name not in FORMATS:
            raise unknown("format", name, FORMATS)
    if formats is not None and not formats:
        raise GraphveilError(f"no format was given: choose one or more of {', '.join(FORMATS)}.")


def _chosen(formats: Sequence[str] | None, evidence: Evidence) -> list[str]:
    """The formats to write, each once; refuse codes of embeddings that have none."""
    if formats is None:
        return ["parquet" if evidence.codes is None else "codes"]
    if "codes" in formats and evidence.codes is None:
        raise GraphveilError(
            f"the format 'codes' is for embeddings with few distinct rows: at least {NODES_PER_CODE} nodes for each"
            " distinct row on average. These have more rows: choose another format, or train with --objective codes."
        )
    return list(dict.fromkeys(formats))


def _check_places(run: Path, out: Path) -> None:
    """Refuse a folder that is not empty, or that contains the run or is inside it."""
    inner, outer = out.resolve(), run.resolve()
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise GraphveilError(f"--out {out} and the run {run} overlap: choose a folder outside the run.")
    if inner == Path.cwd():
        raise GraphveilError("--out is the current folder, which cannot be replaced: choose a new folder.")
    with report_write_errors(out):
        if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
            raise GraphveilError(f"{out} already exists: choose a new folder, or remove this one first.")


def _refusal(run: Path, evidence: Evidence) -> str:
    sentences = [f"{run} was not exported: {'; '.join(map(shortened, evidence.objections))}."]
    if not all(evidence.audits.values()):
        sentences.append(f"Audit it first: `graphveil audit {shlex.quote(str(run))}`.")
    if evidence.leaks_without_limit:
        sentences.append("State the highest accuracy or AUC to accept with --max-leak.")
    return " ".join([*sentences, "Use --force to export anyway; the card will say so."])


@contextmanager
def _in_place_at_the_end(out: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `out`; rename it to `out` on success, remove it on failure.

    It is locked while it is written. A temporary folder without a lock was left by a killed process and is removed.
    """
    with report_write_errors(out), create_folder(out.parent):
        start = f".{out.name}."
        for left in out.parent.iterdir():
            if left.name.startswith(start) and left.name.endswith(".unfinished") and not left.is_symlink():
                _remove_if_left(left)
        folder = out.with_name(f"{start}{secrets.token_hex(8)}.unfinished")
        folder.mkdir()
        try:
            with try_lock(folder / LOCK):
                yield folder
                (folder / LOCK).unlink()
                folder.rename(out)  # fails if somebody else has written into `out` meanwhile
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError), try_lock(folder / LOCK) as is_left:
        if is_left:
            shutil.rmtree(folder, ignore_errors=True)


def _files(folder: Path) -> list[str]:
    found = [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]
    return sorted(name for name in found if name != LOCK)
