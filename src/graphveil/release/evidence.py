"""What a run's folder tells about itself, and what speaks against handing its embeddings on.

An objection is a sentence that stands on the card if the release is forced: it names secrets, and never a path.
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
"""Readings beside the strongest attack's that a limit holds for too: what is told of a rare class shows only there."""


@dataclass(frozen=True)
class Limits:
    """How much attacks on a secret may read at most, by the upper ends of their intervals.

    Args:
        everywhere: of every secret. of: of a secret by its name, instead.
    """

    everywhere: float | None = None
    of: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def parsed(cls, words: Sequence[str]) -> "Limits":
        """From `0.6` for all secrets and `NAME=0.6` for one."""
        everywhere, of = None, dict[str, float]()
        for word in words:
            name, sign, number = word.rpartition("=")
            try:
                limit = float(number)
            except ValueError:
                limit = math.nan
            if not 0 <= limit <= 1 or (sign and not name):
                raise GraphveilError(f"--max-leak {word!r} is no limit: expected a number from 0 to 1, or NAME=0.6.")
            if (name in of) if sign else (everywhere is not None):
                raise GraphveilError(f"--max-leak {word!r} gives a second limit of the same: give one.")
            if sign:
                of[name] = limit
            else:
                everywhere = limit
        return cls(everywhere, of)

    def limit(self, secret: str) -> float | None:
        """That of a secret, if it has one."""
        return self.of.get(secret, self.everywhere)


@dataclass(frozen=True)
class Beside:
    """A reading beside the strongest attack's, where guessing has `chance`.

    Args:
        limited: whether the limit of a release holds for it.
    """

    name: str
    reading: Reading
    chance: float | None
    limited: bool


@dataclass(frozen=True)
class Attacked:
    """What one attack reads, and whether it holds the public graph beside the embeddings."""

    name: str
    reading: Reading
    with_graph: bool


@dataclass(frozen=True)
class Audited:
    """An audit of one secret, as far as the card tells it."""

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
    """A run that somebody wants to hand on: its record, its embeddings and its audits, None for a secret without."""

    record: Mapping[str, Any]
    embeddings: Embeddings
    audits: Mapping[str, Audited | None]
    objections: Sequence[str]


def gather(run: Path, limits: Limits) -> Evidence:
    """All that decides about a release."""
    record = read_record(run)
    try:
        secrets = Fields.of(record["config"], "config").texts("secrets")
    except ValueError as error:
        raise GraphveilError(f"{run} does not say what it hides ({error}): train it again.") from error
    for name in limits.of:
        if name not in secrets:
            raise unknown("secret of --max-leak", name, secrets)
    embeddings = read_embeddings(run / "embeddings.parquet")
    sha = rows_digest(check_embeddings(embeddings.z, len(embeddings.z)))
    audits, objections = dict[str, Audited | None](), list[str]()
    if not _is_the_same(run / "embeddings.npy", embeddings):
        objections.append(
            "embeddings.parquet and embeddings.npy are not the same, and it is not known which was audited"
        )
    if record.get("ids_digest") != ids_digest(embeddings.ids):
        objections.append("the ids in embeddings.parquet are not those of the run, or not in their order")
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
    return Evidence(record, embeddings, audits, objections)


def read_embeddings(file: Path) -> Embeddings:
    """The ids and rows that a run wrote."""
    try:
        table = pq.read_table(file)
        columns = [f"z{i}" for i in range(table.num_columns - 1)]
        if not columns or table.column_names != ["id", *columns]:
            strange = [name for name in table.column_names if name not in ("id", *columns)] or table.column_names
            raise ValueError(f"its columns are not id, z0, z1, ...: there is {strange[0][:40]!r}")
        ids = table["id"].combine_chunks()
        if pa.types.is_dictionary(ids.type):
            ids = ids.dictionary_decode()
        if ids.null_count or len(ids.unique()) != len(ids):
            raise ValueError("some rows have no id of their own")
        ids.cast(pa.large_string())  # what no text can be made of has no place in most formats
        z = np.stack([table[name].to_numpy() for name in columns], axis=1)
        if z.dtype != np.float32 or not len(z):
            raise ValueError(f"it holds {len(z)} rows of {z.dtype}, not of float32")
    except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise GraphveilError(
            f"{file} cannot be read as the embeddings of a run ({reason}): expected what `graphveil protect` wrote."
        ) from error
    return Embeddings(ids, z)


def read_audit(file: Path, secret: str) -> Audited:
    """An audit's own file; a ValueError says what is wrong with it, without naming the file."""
    fields = Fields.of(read_json(file), "")
    if fields.content.get("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA}")
    if not is_sealed(fields.content):
        raise ValueError("it was changed since it was written")
    if fields.text("secret") != secret:
        raise ValueError(f"it is of {fields.text('secret')[:80]!r}")
    best, origin, joint = (fields.inner(name) for name in ("strongest", "origin", "joint_adversary"))
    if best is None or origin is None or (reading := best.as_reading()) is None:
        raise ValueError("it does not say what the strongest attack read")
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
    """What an audit says against a release of `embeddings`."""
    found, name = [], repr(audit.secret)
    if audit.embeddings != embeddings:
        found.append(f"the audit of {name} is of other embeddings than these")
    if audit.split != split:
        found.append(f"the audit of {name} is of another split than the run's")
    flags = [f"{flag} ({sentence})" for flag, sentence in audit.flags]
    if audit.panel != "full" and "not the full panel" not in [flag for flag, _ in audit.flags]:
        flags.append("not the full panel")
    if flags:
        found.append(f"the audit of {name} is flagged: {', '.join(flags)}")
    return found if limit is None else found + _beyond(audit, limit)


def _beyond(audit: Audited, limit: float) -> list[str]:
    """The readings of an audit that may be higher than a limit."""
    worst = max((one for one in audit.attacks if not one.with_graph), key=lambda one: one.reading.high, default=None)
    readings = [(f"the strongest attack on {audit.secret!r} reads an {audit.metric}", audit.reading)]
    if worst is not None and worst.reading.high > audit.reading.high:
        readings = [(f"an attack on {audit.secret!r} ({worst.name}) reads an {audit.metric}", worst.reading)]
    readings += [
        (f"an attack on {audit.secret!r} reads a {one.name}", one.reading) for one in audit.beside if one.limited
    ]
    return [
        f"{what} of up to {_over(reading.high, limit)} (the upper end of its 95 % interval), and the limit is {limit:g}"
        for what, reading in readings
        if reading.high > limit
    ]


def _over(value: float, limit: float) -> str:
    """With as many digits as it takes to see that it is over the limit."""
    digits = next((digits for digits in range(3, 12) if round(value, digits) > limit), 12)
    return f"{value:.{digits}f}"


def _is_the_same(file: Path, embeddings: Embeddings) -> bool:
    try:
        return np.array_equal(np.load(file, allow_pickle=False), embeddings.z)
    except FileNotFoundError:
        return True  # nobody can have audited it
    except (OSError, ValueError, EOFError):
        return False
