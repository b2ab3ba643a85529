"""The page of a search: the chosen run, the front of its candidates, and all of them."""

from collections.abc import Sequence
from pathlib import PurePath

from graphveil.formats import Interval
from graphveil.formats.audit import AuditRecord
from graphveil.formats.tune import PointRecord, TuneRecord
from graphveil.reporting.explorer import Dot, front_chart
from graphveil.reporting.findings import attack_table
from graphveil.reporting.headline import headline, missed_mark, sentence
from graphveil.reporting.maps import Picture, maps
from graphveil.reporting.parts import Column, Explorer, Mark, Page, Part, Prose, Section, Step, Table, percent
from graphveil.reporting.read import Search
from graphveil.reporting.rows import Gauge, gauge_figure
from graphveil.target import Target, gain_over_chance

VALIDATION = (
    "A candidate is one training. Its utility is measured on the validation part. Its leak is the best possible attack"
    " on its codes alone: for a class, a forecast of the certificate of all nodes; for links, the certificate of the"
    " links outside the test part. Only the chosen run is audited on the test part."
)


def tune_page(found: Search) -> Page:
    """The results of a search."""
    record, audits = found.record, {audit.secret: audit for audit in found.audits}
    shown = [audits[one.secret] for one in record.secrets if one.secret in audits]
    chosen = next(point for point in record.points if point.folder == record.chosen)
    several = len(record.secrets) > 1
    missed = {} if record.met else record.limits.missed(shown)
    summary = [
        part
        for audit in shown
        for part in headline(audit, f" · {audit.secret}" if several else "", missed.get(audit.secret))
    ]
    secrets = " and ".join(one.secret for one in record.secrets)
    return Page(
        title=f"{PurePath(record.graph).name}: keep {record.utility}, hide {secrets}, by a search",
        answer=[_choice(record, chosen), *(sentence(audit, missed.get(audit.secret)) for audit in shown)],
        verdict=_mark(record),
        facts=[],
        summary=summary,
        sections=[
            Section("Along the front", [_explorer(record, audits)], VALIDATION),
            Section("All candidates", [_table(record, "Candidates", record.points)]),
        ],
    )


def _mark(record: TuneRecord) -> Mark:
    if not record.met:
        return missed_mark(record.limits)
    return Mark("✓", "limit met" if record.min_utility is None else "utility reached", "good")


def _choice(record: TuneRecord, point: PointRecord) -> str:
    if record.min_utility is None:
        what = "has the highest utility within the limit" if point.within else "is nearest to the limit, but above it"
    elif point.utility >= record.min_utility:
        what = f"has the least leak of those with a utility of at least {percent(record.min_utility)} %"
    else:
        what = f"has the highest utility, but it is below {percent(record.min_utility)} %"
    values = f"{_values(record, point)} (measured without the test part)"
    return f"Of {len(record.points)} candidates, {_name(point)} {what}: {values}."


def _name(point: PointRecord) -> str:
    one = point.candidate
    return f"{one.encoder} at λ {one.tradeoff:g} (gain {100 * one.gain:.3g} %, seed {one.seed})"


def _values(record: TuneRecord, point: PointRecord) -> str:
    leaks = zip(record.secrets, point.leaks, strict=True)
    found = [f"at most {percent(leak)} % for {one.secret}" for one, leak in leaks]
    return f"utility {percent(point.utility)} %, attacks {' and '.join(found)}"


def _explorer(record: TuneRecord, audits: dict[str, AuditRecord]) -> Explorer:
    """The front and the chosen candidate, from the least useful to the most useful."""
    steps = [point for point in record.points if point.on_front or point.folder == record.chosen]
    steps.sort(key=lambda point: (point.utility, -max(point.leaks)))
    worst = max(range(len(record.secrets)), key=lambda number: _worst_leak(record, number))
    one = record.secrets[worst]
    dots = [
        Dot(point.leaks[worst], point.utility, _name(point), steps.index(point) if point in steps else None)
        for point in record.points
    ]
    names = (f"certificate of {one.secret}", f"utility ({record.utility})")
    return Explorer(
        "Along the front",
        front_chart(dots, names, one.chance, one.limit if record.min_utility is None else None),
        [_step(record, point, audits) for point in steps],
        start=next(number for number, point in enumerate(steps) if point.folder == record.chosen),
    )


def _worst_leak(record: TuneRecord, number: int) -> float:
    """How far the candidates are above the limit of a secret or, without a limit, their gain over chance."""
    leak, one = max(point.leaks[number] for point in record.points), record.secrets[number]
    return leak - one.limit if record.min_utility is None else gain_over_chance(leak, one.chance)


def _step(record: TuneRecord, point: PointRecord, audits: dict[str, AuditRecord]) -> Step:
    chosen = point.folder == record.chosen
    gauges = [_leak(record, number, leak, audits) for number, leak in enumerate(point.leaks)]
    first = next(iter(audits.values()), None)
    before = None if first is None or first.utility is None else first.utility.unprotected
    gauges.append(
        Gauge(
            f"Utility kept: {record.utility}",
            f"{Target.of(record.utility).metric_name}, validation part",
            ("zero" if first is None or first.utility is None else "chance level", _chance(first)),
            ("this candidate", Interval(point.utility)),
            None if before is None else ("unprotected encoder, test part", before),
            limit=record.min_utility,
            tone="kept",
        )
    )
    within = "It is within the limit." if point.within else "It is above the limit."
    sentences = ["It is the chosen candidate."] if chosen else []
    sentences += [within] if record.min_utility is None else []
    parts: list[Part] = [gauge_figure("Leak and utility", gauges), Prose([" ".join(sentences)])]
    for one, codes in zip(record.secrets, point.codes, strict=True):
        if codes is not None:
            pictures = [*_before(audits.get(one.secret)), Picture("after: this candidate", codes)]
            parts.append(maps(f"Embeddings by {one.secret}", pictures))
    parts.append(_table(record, "This candidate", [point]))
    if chosen:
        parts += [attack_table(f"Attacks on {name}, test part", audit.attacks) for name, audit in audits.items()]
    mark = "★ " if chosen else ""
    return Step(f"{mark}{_name(point)}", f"{mark}{_name(point)}: {_values(record, point)}", parts)


def _chance(audit: AuditRecord | None) -> float:
    return 0.0 if audit is None or audit.utility is None else audit.utility.chance


def _leak(record: TuneRecord, number: int, leak: float, audits: dict[str, AuditRecord]) -> Gauge:
    one = record.secrets[number]
    audit = audits.get(one.secret)
    end = None if audit is None else audit.scale.unprotected
    return Gauge(
        f"Leak of {one.secret}",
        f"{Target.of(one.secret).metric_name}, certificate",
        ("chance level", one.chance),
        ("this candidate", Interval(leak)),
        None if end is None else ("unprotected encoder, test part", end),
        limit=one.limit if record.min_utility is None else None,
    )


def _before(audit: AuditRecord | None) -> list[Picture]:
    if audit is None or audit.map is None or audit.map.before is None:
        return []
    return [Picture("before: unprotected", audit.map.before, audit.map)]


def _table(record: TuneRecord, title: str, points: Sequence[PointRecord]) -> Table:
    columns = [Column("candidate", "name"), Column("encoder", "text"), Column("λ"), Column("gain"), Column("seed")]
    columns += [Column(f"utility: {record.utility}"), *(Column(f"leak: {one.secret}") for one in record.secrets)]
    columns += [Column("within the limit"), Column("on Pareto front")]
    rows = [
        [
            f"★ {point.folder}" if point.folder == record.chosen else point.folder,
            point.candidate.encoder,
            f"{point.candidate.tradeoff:g}",
            percent(point.candidate.gain),
            str(point.candidate.seed),
            percent(point.utility),
            *map(percent, point.leaks),
            "yes" if point.within else "no",
            "yes" if point.on_front else "no",
        ]
        for point in points
    ]
    return Table(
        title,
        columns,
        rows,
        "In percent, without the test part. ★ marks the chosen candidate. Gain: how far, in training, the codes may"
        " predict a hidden class better than chance.",
    )
