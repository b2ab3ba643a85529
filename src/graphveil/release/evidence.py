"""Read a run's record, embeddings and audits, and collect the objections to their release.

An objection is one sentence. The card of a forced release lists it, so it names secrets and never a path.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphveil.audit.embeddings import check_embeddings, rows_digest
from graphveil.audit.result import METRICS, SCHEMA
from graphveil.errors import GraphveilError, unknown
from graphveil.files import is_sealed, read_json
from graphveil.release.formats import Embeddings
from graphveil.report.checks import Fields, Reading
from graphveil.report.findings import BESIDE
from graphveil.review import audit_file, read_record
from graphveil.run import ids_digest

LIMITED = ("balanced", "class_matched")
"""Further metrics that a limit applies to: a leak about a rare class shows only in these."""


@dataclass(frozen=True)
class Limits:
    """The highest attack accuracy or AUC to accept, compared with the upper ends of 95 % intervals.

    Args:
        everywhere: the limit for every secret that is not in `of`.
        of: limits by the name of a secret.
    """

    everywhere: float | None = None
    of: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def parsed(cls, words: Sequence[str]) -> "Limits":
        """Parse `0.6` as the limit for all secrets and `NAME=0.6` as that for one."""
        everywhere, of = None, dict[str, float]()
        for word in words:
            name, sign, number = word.rpartition("=")
            try:
                limit = float(number)
            except ValueError:
                limit = math.nan
            if not 0 <= limit <= 1 or (sign and not name):
                raise GraphveilError(f"--max-leak {word!r} is not a limit: expected a number from 0 to 1, or NAME=0.6.")
            if (name in of) if sign else (everywhere is not None):
                raise GraphveilError(f"--max-leak {word!r} sets the same limit twice: give it once.")
            if sign:
                of[name] = limit
            else:
                everywhere = limit
        return cls(everywhere, of)

    def limit(self, secret: str) -> float | None:
        """The limit for a secret, or None."""
        return self.of.get(secret, self.everywhere)


@dataclass(frozen=True)
class Beside:
    """A further metric of the audit, such as the balanced accuracy.

    Args:
        name: the name of the metric.
        reading: its value and 95 % interval.
        chance: its value for guessing.
        limited: whether `--max-leak` applies to it.
    """

    name: str
    reading: Reading
    chance: float | None
    limited: bool


@dataclass(frozen=True)
class Attacked:
    """The result of one attack, and whether it also uses the public graph."""

    name: str
    reading: Reading
    with_graph: bool


@dataclass(frozen=True)
class Audited:
    """The fields of one secret's audit that the card uses."""

    secret: str
    verdict: str
    attack: str
    metric: str
    reading: Reading
    chance: float | None
    floor: Reading | None
    joint: float | None
    beside: Sequence[Beside]
    flags: Sequence[tuple[str, str]]
    attacks: Sequence[Attacked]
    told_by: Sequence[str]
    panel: str
    examples: int
    embeddings: str
    split: str


@dataclass(frozen=True)
class Evidence:
    """All that decides whether a run is released.

    Args:
        record: the content of run.json.
        embeddings: the rows and their ids.
        audits: by secret, None for a secret without a readable audit.
        limits: the leak to accept, as `--max-leak` states it.
        objections: the reasons against a release; with none the run is released.
    """

    record: Mapping[str, Any]
    embeddings: Embeddings
    audits: Mapping[str, Audited | None]
    limits: Limits
    objections: Sequence[str]

    @property
    def leaks_without_limit(self) -> bool:
        """Whether a secret has the verdict *leaks* and no limit."""
        return any(
            audit is not None and audit.verdict == "leaks" and self.limits.limit(secret) is None
            for secret, audit in self.audits.items()
        )


def gather(run: Path, limits: Limits) -> Evidence:
    """Read a run's folder and compare it with the limits."""
    record = read_record(run)
    try:
        secrets = Fields.of(record["config"], "config").texts("secrets")
    except ValueError as error:
        raise GraphveilError(
            f"the record of {run} does not name its secrets ({error}): train the run again."
        ) from error
    for name in limits.of:
        if name not in secrets:
            raise unknown("secret of --max-leak", name, secrets)
    embeddings = read_embeddings(run / "embeddings.parquet")
    sha = rows_digest(check_embeddings(embeddings.z, len(embeddings.z)))
    audits, objections = dict[str, Audited | None](), list[str]()
    if not _is_the_same(run / "embeddings.npy", embeddings):
        objections.append("embeddings.parquet and embeddings.npy differ, and it is unknown which of them was audited")
    if record.get("ids_digest") != ids_digest(embeddings.ids):
        objections.append("the ids in embeddings.parquet differ from those of the run, or are in another order")
    for secret in secrets:
        file = audit_file(run, secret, secrets)
        try:
            audits[secret] = audit = read_audit(file, secret)
        except FileNotFoundError:
            audits[secret] = audit = None
            objections.append(f"the secret {secret!r} has not been audited")
        except (OSError, ValueError, OverflowError) as error:
            audits[secret] = audit = None
            reason = error.strerror if isinstance(error, OSError) else str(error)
            objections.append(f"the audit of {secret!r} cannot be read ({reason})")
        if audit is not None:
            objections += _against(audit, sha, record["split_digest"], limits.limit(secret))
    return Evidence(record, embeddings, audits, limits, objections)


def read_embeddings(file: Path) -> Embeddings:
    """Read the ids and rows that a run wrote."""
    try:
        table = pq.read_table(file)
        columns = [f"z{i}" for i in range(table.num_columns - 1)]
        if not columns or table.column_names != ["id", *columns]:
            strange = [name for name in table.column_names if name not in ("id", *columns)] or table.column_names
            raise ValueError(f"expected the columns id, z0, z1, ..., found {strange[0][:40]!r}")
        ids = table["id"].combine_chunks()
        if pa.types.is_dictionary(ids.type):
            ids = ids.dictionary_decode()
        if ids.null_count or len(ids.unique()) != len(ids):
            raise ValueError("some ids are missing or not unique")
        ids.cast(pa.large_string())  # most formats write ids as text
        z = np.stack([table[name].to_numpy() for name in columns], axis=1)
        if z.dtype != np.float32 or not len(z):
            raise ValueError(f"expected rows of float32, found {len(z)} rows of {z.dtype}")
    except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise GraphveilError(
            f"{file} cannot be read as the embeddings of a run ({reason}): expected the file of `graphveil protect`."
        ) from error
    return Embeddings(ids, z)


def read_audit(file: Path, secret: str) -> Audited:
    """Read the file of an audit.

    Raises:
        ValueError: says what is wrong with the content, without the name of the file.
    """
    fields = Fields.of(read_json(file), "")
    if fields.content.get("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA}")
    if not is_sealed(fields.content):
        raise ValueError("it was changed after it was written")
    if fields.text("secret") != secret:
        raise ValueError(f"it is the audit of {fields.text('secret')[:80]!r}")
    best, origin, joint = (fields.inner(name) for name in ("strongest", "origin", "joint_adversary"))
    if best is None or origin is None or (reading := best.as_reading()) is None:
        raise ValueError("the result of the strongest attack is missing")
    guessing = {"class_matched": 0.5, "with_public_graph": fields.share("chance")}
    beside = [
        Beside(said, read, guessing[name] if name in guessing else inner.share("chance"), name in LIMITED)
        for name, said in BESIDE.items()
        if (inner := fields.inner(name)) is not None and (read := inner.as_reading()) is not None
    ]
    attacks = [
        Attacked(found.text("attack"), read, "graph" in found.texts("needs"))
        for found in fields.objects("attacks")
        if (read := found.as_reading())
    ]
    return Audited(
        secret=secret,
        verdict=fields.text("verdict", ("leaks", "protected", "flagged")),
        attack=best.text("attack"),
        metric=METRICS[best.text("metric", list(METRICS))],
        reading=reading,
        chance=fields.share("chance"),
        floor=fields.reading("floor"),
        joint=None if joint is None else joint.share("value"),
        beside=beside,
        flags=[(flag.text("name"), flag.text("sentence")) for flag in fields.objects("flags")],
        attacks=sorted(attacks, key=lambda found: -found.reading.value),
        told_by=fields.texts("told_by"),
        panel=origin.text("panel"),
        examples=int(fields.number("test_examples") or 0),
        embeddings=origin.text("embeddings"),
        split=origin.text("split"),
    )


def _against(audit: Audited, embeddings: str, split: str, limit: float | None) -> list[str]:
    """The objections of one audit to a release of the embeddings with this digest."""
    found, name = [], repr(audit.secret)
    if audit.embeddings != embeddings:
        found.append(f"the audit of {name} is for other embeddings")
    if audit.split != split:
        found.append(f"the audit of {name} is for another split")
    flags = [f"{flag} ({sentence})" for flag, sentence in audit.flags]
    if audit.panel != "full" and "not the full panel" not in [flag for flag, _ in audit.flags]:
        flags.append("not the full panel")
    if flags:
        found.append(f"the audit of {name} is flagged: {', '.join(flags)}")
    if limit is not None:
        return found + _beyond(audit, limit)
    return [*found, f"the audit of {name} says leaks: {_reason(audit)}"] if audit.verdict == "leaks" else found


def _reason(audit: Audited) -> str:
    """Why an audit says *leaks*: the strongest attack or, where that is near guessing, what the audit gives instead."""
    near_guessing = audit.chance is not None and audit.reading.low <= audit.chance
    if near_guessing and audit.told_by:
        return audit.told_by[0]
    guessing = "" if audit.chance is None else f" where guessing has {100 * audit.chance:.1f} %"
    return f"the strongest attack ({audit.attack}) has an {audit.metric} of {100 * audit.reading.value:.1f} %{guessing}"


def _beyond(audit: Audited, limit: float) -> list[str]:
    """An objection for each metric whose 95 % interval exceeds the limit."""
    worst = max((one for one in audit.attacks if not one.with_graph), key=lambda one: one.reading.high, default=None)
    readings = [(f"the strongest attack on {audit.secret!r} has an {audit.metric}", audit.reading)]
    if worst is not None and worst.reading.high > audit.reading.high:
        readings = [(f"an attack on {audit.secret!r} ({worst.name}) has an {audit.metric}", worst.reading)]
    readings += [
        (f"an attack on {audit.secret!r} has a {one.name}", one.reading) for one in audit.beside if one.limited
    ]
    return [
        f"{what} of up to {_over(reading.high, limit)} (upper end of the 95 % interval), above the limit of {limit:g}"
        for what, reading in readings
        if reading.high > limit
    ]


def _over(value: float, limit: float) -> str:
    """Format a value with as many digits as show that it is above the limit."""
    digits = next((digits for digits in range(3, 12) if round(value, digits) > limit), 12)
    return f"{value:.{digits}f}"


def _is_the_same(file: Path, embeddings: Embeddings) -> bool:
    try:
        return np.array_equal(np.load(file, allow_pickle=False), embeddings.z)
    except FileNotFoundError:
        return True  # then embeddings.parquet was audited
    except (OSError, ValueError, EOFError):
        return False
