"""Read an audit, the folder of a run or a folder of experiments, and refuse anything else with one sentence."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphveil.errors import GraphveilError
from graphveil.formats.audit import AuditRecord
from graphveil.formats.experiment import SWEEP, ExperimentRecord, History, TableRecord
from graphveil.formats.limits import LimitsRecord
from graphveil.formats.run import RunRecord
from graphveil.formats.store import AnyFile, read_sealed, reason
from graphveil.formats.store import read as read_record
from graphveil.formats.tune import TuneRecord

EXPERIMENTS = ("table1", "table2", "table3", "figure2", "figure3", SWEEP)
Experiment = ExperimentRecord | TableRecord


@dataclass(frozen=True)
class Run:
    """The folder of a run.

    Args:
        histories: the history by secret; empty in a folder of `graphveil embed`.
        audits: the audits in the order of the secrets.
        other_audits: the files of audits of other embeddings.
        limits: the limits of the search that chose the run; None for a run without them.
    """

    record: RunRecord
    histories: Mapping[str, History]
    audits: Sequence[AuditRecord]
    other_audits: Sequence[str]
    limits: LimitsRecord | None = None


@dataclass(frozen=True)
class Search:
    """The folder of `graphveil tune`, with the audits of the chosen run."""

    record: TuneRecord
    audits: Sequence[AuditRecord]


def read(source: Path) -> AuditRecord | Run | Search | Sequence[Experiment]:
    """Read an audit's file or a folder."""
    if not source.is_dir():
        return _load(source, AuditRecord)
    if (source / "run.json").is_file():
        return read_run(source)
    if (source / "tune.json").is_file():
        return Search(_load(source / "tune.json", TuneRecord), read_run(source / "chosen").audits)
    files = [file for name in EXPERIMENTS if (file := source / f"{name}.json").is_file()]
    if not files:
        raise GraphveilError(
            f"{source} holds neither run.json nor tune.json nor any of"
            f" {', '.join(f'{name}.json' for name in EXPERIMENTS)}: give a folder of `graphveil protect`, `tune`,"
            " `reproduce` or `sweep`, or the file of an audit."
        )
    return [_load(file, TableRecord) if file.stem == "table1" else _load(file, ExperimentRecord) for file in files]


def read_run(folder: Path) -> Run:
    """Read a run with its history and its audits."""
    record, history = _load(folder / "run.json", RunRecord), folder / "history.parquet"
    secrets = record.config.secrets
    audits, others = list[AuditRecord](), list[str]()
    for file in sorted(folder.glob("audit*.json")):
        audit = _load(file, AuditRecord)
        if record.audited_as is not None and audit.origin.embeddings != record.audited_as:
            others.append(file.name)
        else:
            audits.append(audit)
    audits.sort(key=lambda audit: secrets.index(audit.secret) if audit.secret in secrets else len(secrets))
    histories = _histories(history, secrets) if history.exists() else {}
    return Run(record, histories, audits, others, _limits(folder / "limits.json"))


def _limits(file: Path) -> LimitsRecord | None:
    if not file.exists():
        return None
    with _one_sentence(file):
        return read_sealed(file, LimitsRecord)


def _load(file: Path, kind: type[AnyFile]) -> AnyFile:
    with _one_sentence(file):
        return read_record(file, kind)


@contextmanager
def _one_sentence(file: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, pa.ArrowException) as error:
        raise GraphveilError(
            f"{file} cannot be shown ({reason(error)}): expected a file that this version of graphveil wrote."
        ) from error


def _histories(file: Path, secrets: Sequence[str]) -> dict[str, History]:
    """The history of each secret; the columns of the second one end in -2."""
    found = {}
    with _one_sentence(file):
        table = pq.read_table(file)
        for number, secret in enumerate(secrets, start=1):
            suffix = "" if number == 1 else f"-{number}"
            columns = (_column(table, name) for name in ("utility", f"adversary{suffix}", f"probe{suffix}"))
            found[secret] = History(tuple(number or 0.0 for number in _column(table, "round")), *columns)
    return found


def _column(table: Any, name: str) -> tuple[float | None, ...]:
    """A column with None for NaN; all None if the table does not have it."""
    if name not in table.column_names:
        return (None,) * len(table)
    values = table[name].cast(pa.float64()).to_pylist()
    return tuple(None if value is None or not math.isfinite(value) else value for value in values)
