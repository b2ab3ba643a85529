"""Read a run's record, embeddings and audits, and collect the objections to their release.

An objection is one sentence. The card of a forced release lists it, so it names secrets and never a path.

The rule is the table in docs/how-to/export-with-a-limit.md, and `tests/release/test_evidence.py` has a test for each of
its rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from graphveil.auditing.embeddings import check_embeddings, rows_digest
from graphveil.auditing.flags import OVERRULED
from graphveil.auditing.groups import KINDS, MEASURES
from graphveil.errors import GraphveilError, unknown
from graphveil.formats import Interval
from graphveil.formats.audit import FURTHER, AuditRecord, Scale, UtilityValue
from graphveil.formats.run import RunRecord
from graphveil.formats.store import read_sealed, reason
from graphveil.release.certified import Bound, Certified, certified
from graphveil.release.codes import codes_of
from graphveil.release.earlier_releases import Joint, joint_certificates, released_by
from graphveil.release.ledger import NodeCodes, Released, read_ledger
from graphveil.runs.folder import Embeddings, RunFolder, ids_digest
from graphveil.target import METRIC_NAMES

REFUSED = ("leaks", "unprotected")
"""The verdicts that are released only within `--max-leak` or by `--force`."""
LIMITED = ("balanced", "class_matched")
"""Further metrics that a limit applies to: a leak about a rare class shows only in these."""


@dataclass(frozen=True)
class Limits:
    """The highest attack accuracy or AUC to accept.

    It is compared with the certificate or, if the audit has none, with the upper bound over all attacks.

    Args:
        everywhere: the limit for every secret that is not in `of`.
        of: limits by the name of a secret.
        of_search: the limits of the search that chose the run (`graphveil tune`), for secrets without another one.
    """

    everywhere: float | None = None
    of: Mapping[str, float] = field(default_factory=dict)
    of_search: Mapping[str, float] = field(default_factory=dict)

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
        stated = self.stated(secret)
        return self.of_search.get(secret) if stated is None else stated

    def stated(self, secret: str) -> float | None:
        """The limit for a secret that `--max-leak` states, or None."""
        return self.of.get(secret, self.everywhere)

    def words(self, secret: str) -> str:
        """The limit for a secret as the end of a sentence."""
        whose = "limit" if self.stated(secret) is not None else "search's limit"
        return f"the {whose} of {self.limit(secret):g}"


@dataclass(frozen=True)
class FurtherResult:
    """A further metric of the audit, such as the balanced accuracy.

    Args:
        name: the name of the metric.
        interval: its value and 95 % interval.
        chance: its chance level.
        limited: whether `--max-leak` applies to it.
    """

    name: str
    interval: Interval
    chance: float | None
    limited: bool


@dataclass(frozen=True)
class AttackResult:
    """The result of one attack.

    Args:
        name: the name of the attack.
        interval: its accuracy or AUC, and the 95 % interval.
    """

    name: str
    interval: Interval


@dataclass(frozen=True)
class WorstGroup:
    """The group about which the strongest attack learns most, without its column and its value.

    Args:
        kind: "by class", "by degree" or "by a column".
        measure: "accuracy", "AUC" or "TPR - FPR".
        interval: the value and its interval.
        groups: the number of groups that the interval is corrected for.
        examples: test examples of the group.
        reference: the chance level, or the value of the true classes if the utility keeps classes.
    """

    kind: str
    measure: str
    interval: Interval
    reference: float | None
    examples: int
    groups: int


@dataclass(frozen=True)
class Audited:
    """The values of one secret's audit that the card uses.

    Args:
        secret: the name of the secret.
        verdict: *protected*, *traces*, *leaks*, *unprotected* or *flagged*.
        attack: the name of the strongest attack.
        metric: "accuracy" or "AUC".
        interval: the value of the strongest attack, and its 95 % interval.
        higher: why an attack with a higher value is not the strongest one; None without such an attack.
        upper: the upper bound over all attacks.
        worst_group: the worst group; None if all groups have too few examples.
        scale: the size of the leak.
        utility: how useful the embeddings are; None if it is unknown.
        chance: the chance level.
        floor: for links, the AUC of the best rule on pairs of true classes; for a node secret, the accuracy of attacks
            on the public graph; or None.
        joint: the value of the joint adversary, or None.
        further: further metrics, and attackers who hold more than z.
        flags: the name and the sentence of each flag.
        attacks: the results of all attacks, the strongest first.
        reasons: what is significantly above its reference, one sentence each.
        panel: the name of the panel.
        examples: the number of test examples.
        embeddings: the digest of the audited embeddings.
        split: the digest of the split.
        certificate: the certificate; None for embeddings that are not codes.
    """

    secret: str
    verdict: str
    attack: str
    metric: str
    interval: Interval
    higher: str | None
    upper: float
    worst_group: WorstGroup | None
    scale: Scale
    utility: UtilityValue | None
    chance: float | None
    floor: Interval | None
    joint: float | None
    further: Sequence[FurtherResult]
    flags: Sequence[tuple[str, str]]
    attacks: Sequence[AttackResult]
    reasons: Sequence[str]
    panel: str
    examples: int
    embeddings: str
    split: str
    certificate: Certified | None

    @property
    def amount(self) -> str:
        """How much of the secret the embeddings reveal according to the reasons, as the opening of a phrase."""
        return {"traces": "traces of", "flagged": "at least traces of"}.get(self.verdict, "more than traces of")


@dataclass(frozen=True)
class Evidence:
    """All that decides whether a run is released.

    Args:
        record: the content of run.json.
        embeddings: the rows and their ids.
        audits: the audits by secret; None for a secret without a readable audit.
        limits: the leak to accept, as `--max-leak` or the search that chose the run states it.
        objections: the reasons against a release; with none the run is released.
        codes: the codes of the nodes; None for embeddings that are not codes.
        joint: what this release reveals together with earlier ones, None without earlier ones.
    """

    record: RunRecord
    embeddings: Embeddings
    audits: Mapping[str, Audited | None]
    limits: Limits
    objections: Sequence[str]
    codes: NodeCodes | None = None
    joint: Joint | None = None

    @property
    def leaks_without_limit(self) -> bool:
        """Whether a secret leaks more than traces and has no limit."""
        return any(
            audit is not None and audit.verdict in REFUSED and self.limits.limit(secret) is None
            for secret, audit in self.audits.items()
        )


def gather(run: Path, limits: Limits, released_before: Sequence[Path] = (), root: Path | None = None) -> Evidence:
    """Read a run's folder and compare it with the limits.

    Args:
        run: the folder of a finished run.
        limits: the highest attack accuracy or AUC to accept.
        released_before: folders of other runs whose codes of the same nodes have been released.
        root: the folder of the graph's raw files, which are read if there are earlier releases.
    """
    folder = RunFolder(run)
    record = folder.record()
    secrets = record.config.secrets
    for name in limits.of:
        if name not in secrets:
            raise unknown("secret of --max-leak", name, secrets)
    audits, objections = dict[str, Audited | None](), list[str]()
    try:
        if (of_search := folder.limits()) is not None:
            limits = replace(limits, of_search=of_search.max_leak)
    except GraphveilError as error:
        objections.append(str(error).rstrip("."))
    embeddings = folder.embeddings()
    embeddings = replace(embeddings, signs=folder.link_signs(record.config, embeddings.z.shape[1]))
    sha = rows_digest(check_embeddings(embeddings.z, len(embeddings.z)))
    if record.ids_digest != ids_digest(embeddings.ids):
        objections.append("the ids in embeddings.parquet differ from those of the run, or are in another order")
    found = codes_of(embeddings.z)
    codes = NodeCodes.of(embeddings.ids, found.numbers) if found.are_few else None
    earlier, against = _earlier(run, codes, released_before)
    objections += against
    joint = None if codes is None or not earlier else joint_certificates(run, codes, earlier, root)
    for secret in secrets:
        file = folder.audit_file(secret, secrets)
        try:
            audits[secret] = audit = read_audit(file, secret)
        except FileNotFoundError:
            audits[secret] = audit = None
            objections.append(f"the secret {secret!r} has not been audited")
        except (OSError, ValueError) as error:
            audits[secret] = audit = None
            objections.append(f"the audit of {secret!r} cannot be read ({reason(error)})")
        together = None if joint is None else joint.certificates.get(secret)
        if audit is not None:
            objections += _against(audit, sha, record.split_digest, limits)
        if joint is not None and joint.nodes:
            objections += _against_both(secret, limits, together)
    return Evidence(record, embeddings, audits, limits, objections, codes, joint)


def read_audit(file: Path, secret: str) -> Audited:
    """Read the file of an audit.

    Raises:
        ValueError: says what is wrong with the content, without the name of the file.
    """
    record = read_sealed(file, AuditRecord)
    if record.secret != secret:
        raise ValueError(f"it is the audit of {record.secret[:80]!r}")
    if record.certificate is not None and record.certificate.secret != secret:
        raise ValueError(f"certificate.secret is {record.certificate.secret[:80]!r}")
    best, joint = record.strongest, record.joint_adversary
    by_size = sorted(record.reasons, key=lambda reason: -reason.size)
    return Audited(
        secret=secret,
        verdict=record.verdict,
        attack=best.attack,
        metric=METRIC_NAMES[best.metric],
        interval=best,
        higher=record.higher,
        upper=max(best.upper, best.high),
        worst_group=_worst_group(record),
        scale=record.scale,
        utility=record.utility,
        chance=record.chance,
        floor=record.floor,
        joint=None if joint is None else joint.value,
        further=[
            FurtherResult(FURTHER[name], one, one.chance, name in LIMITED) for name, one in record.further.items()
        ],
        flags=[(flag.name, flag.sentence) for flag in record.flags],
        attacks=[AttackResult(one.attack, one) for one in sorted(record.attacks, key=lambda one: -one.value)],
        reasons=[reason.sentence for reason in by_size],
        panel=record.origin.panel,
        examples=record.test_examples,
        embeddings=record.origin.embeddings,
        split=record.origin.split,
        certificate=None if record.certificate is None else certified(record.certificate),
    )


def _worst_group(record: AuditRecord) -> WorstGroup | None:
    one = record.worst_group
    if one is None or one.interval is None:
        return None
    return WorstGroup(
        kind=KINDS[one.kind],
        measure=MEASURES[one.measure],
        interval=one.interval,
        reference=one.reference,
        examples=one.examples,
        groups=sum(group.interval is not None for group in record.groups),
    )


def _earlier(run: Path, codes: NodeCodes | None, released_before: Sequence[Path]) -> tuple[list[Released], list[str]]:
    """The different codes that were released before, and the objections to a release beside them."""
    found, objections = dict[str, Released](), list[str]()
    if released_before and codes is None:
        return [], ["these embeddings are not codes, so there is no joint certificate with earlier releases"]
    for other in released_before:
        if other.resolve() == run.resolve():
            raise GraphveilError(
                f"--released-before {other} is the run itself, whose earlier releases are counted anyway: leave it out."
            )
        if not (released := released_by(other)):
            objections.append(
                "an earlier release of these nodes has no codes, so there is no joint certificate with it"
            )
        found |= {one.codes.sha256: one for one in released}
    if codes is not None:
        own = [replace(one, same_run=True) for one in read_ledger(run) if one.codes.sha256 != codes.sha256]
        found |= {one.codes.sha256: one for one in own}
    return list(found.values()), objections


def _against(audit: Audited, embeddings: str, split: str, limits: Limits) -> list[str]:
    """The objections of one audit to a release.

    Args:
        audit: the audit of a secret.
        embeddings: the digest of the embeddings to release.
        split: the digest of the split of the run.
        limits: the limits for all secrets.
    """
    found, name, limit = [], repr(audit.secret), limits.limit(audit.secret)
    if audit.embeddings != embeddings:
        found.append(f"the audit of {name} does not match these embeddings")
    if audit.split != split:
        found.append(f"the audit of {name} does not match this split")
    beyond = [] if limit is None else _beyond(audit, limit, limits.words(audit.secret))
    overruled = limit is not None and not beyond
    flags = [f"{flag} ({sentence})" for flag, sentence in audit.flags if not (overruled and flag in OVERRULED)]
    if audit.panel != "full" and "not the full panel" not in [flag for flag, _ in audit.flags]:
        flags.append("not the full panel")
    if flags:
        found.append(f"the audit of {name} is flagged: {', '.join(flags)}")
    if limit is not None:
        return found + beyond
    if audit.verdict in REFUSED:
        found.append(f"the verdict of the audit of {name} is {audit.verdict}: {_reason(audit)}")
    return found


def _against_both(secret: str, limits: Limits, joint: Certified | None) -> list[str]:
    """The objections to a release of nodes that have been released with other codes.

    An audit covers this release alone, so only a limit and the joint certificate can decide.

    Args:
        secret: the name of the secret.
        limits: the limits for all secrets.
        joint: the certificate of this release together with earlier ones, or None.
    """
    if joint is None:
        return [f"{secret!r} has no joint certificate for this release and earlier ones"]
    if (limit := limits.limit(secret)) is None:
        return [f"other codes of these nodes have been released before, and {secret!r} has no limit (--max-leak)"]
    name = f"the certificate of {secret!r} for this release and earlier ones together"
    return [f"{name} allows {_exceeds(bound, limit, limits.words(secret))}" for bound in joint.above(limit)]


def _reason(audit: Audited) -> str:
    """Why a run is refused: the strongest attack or, if that is near chance, the reason with the largest size."""
    near_chance = audit.chance is not None and audit.interval.low <= audit.chance
    if near_chance and audit.reasons:
        return audit.reasons[0]
    chance = "" if audit.chance is None else f" (chance level {100 * audit.chance:.1f} %)"
    return f"the strongest attack ({audit.attack}) has an {audit.metric} of {100 * audit.interval.value:.1f} %{chance}"


def _beyond(audit: Audited, limit: float, words: str) -> list[str]:
    """An objection for each metric above the limit: by the certificate or, if there is none, by an upper bound."""
    if audit.certificate is not None:
        return [
            f"the certificate of {audit.secret!r} allows {_exceeds(bound, limit, words)}"
            for bound in audit.certificate.above(limit)
        ]
    ends = [
        (
            f"an attack on {audit.secret!r} has an {audit.metric}",
            audit.upper,
            "97.5 % upper bound over all attacks on z alone",
        )
    ]
    ends += [
        (
            f"an attack on {audit.secret!r} has a {one.name}",
            one.interval.high,
            "upper limit of the 95 % interval of the best attack",
        )
        for one in audit.further
        if one.limited
    ]
    return [f"{what} of up to {_over(end, limit)} ({how}), above {words}" for what, end, how in ends if end > limit]


def _exceeds(bound: Bound, limit: float, words: str) -> str:
    article = "an" if bound.name.startswith(("a", "A")) else "a"
    return f"{article} {bound.name} of {_over(bound.value, limit)}, above {words}"


def _over(value: float, limit: float) -> str:
    """Format a value that is above the limit, rounded up, with as many digits as keep it close."""
    digits = 3 if value - limit >= 0.001 else next((n for n in range(3, 12) if round(value, n) > limit), 12)
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:.{digits}f}"
