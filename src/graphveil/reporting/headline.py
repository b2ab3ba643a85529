"""The first screen of an audit: one sentence, the leak and the utility as bars, the certificate, and the terms."""

from collections.abc import Sequence

from graphveil.formats import Interval
from graphveil.formats.audit import AuditRecord
from graphveil.formats.certificate import Certificate, LinkCertificate
from graphveil.formats.limits import HIDDEN, LimitsRecord
from graphveil.reporting.parts import (
    Column,
    Figure,
    Fold,
    Mark,
    Part,
    Prose,
    Table,
    at_most,
    interval,
    metric_name,
    percent,
)
from graphveil.reporting.rows import Gauge, gauge_figure
from graphveil.target import Target

VERDICTS = {
    "unprotected": Mark("✗", "unprotected", "bad"),
    "leaks": Mark("✗", "leaks", "bad"),
    "flagged": Mark("⚠", "flagged", "warn"),
    "traces": Mark("✓", "traces", "good"),
    "protected": Mark("✓", "protected", "good"),
}
"""The marks of verdicts, the worst first."""
LIMIT_MISSED = Mark("✗", "limit not met", "bad")
UTILITY_MISSED = Mark("✗", "utility not reached", "bad")
WAY = "of the way from its reference to the unprotected encoder"
MEANING = {
    "unprotected": f"At least one attack result is more than 75 % {WAY}.",
    "leaks": f"At least one attack result is significantly above its reference, and more than 10 % {WAY}.",
    "traces": f"At least one attack result is significantly above its reference, but at most 10 % {WAY}.",
    "protected": "No attack result is significantly above its reference, and the audit has no flags.",
    "flagged": f"No attack result is significantly more than 10 % {WAY}, but the audit has flags, which rule out the"
    ' verdicts "protected" and "traces".',
}
MISSED = (
    "A limit was stated for the search that chose this run. A limit on the leak is compared with the certificate or,"
    " without one, with upper bounds of the attack results."
)
TERMS = {
    "strongest attack": "The attack on the embeddings alone with the best value on held-out examples. Its value is"
    " measured on the test part.",
    "reference": "What is possible without the embeddings: the chance level or, if links are hidden and a class is"
    " kept, the floor.",
    "chance level": "What is possible without any knowledge: the share of the largest class, or an AUC of 50 %.",
    "floor": "For links: the AUC of the best rule on pairs of true classes. Embeddings that keep the class imply it.",
    "unprotected encoder": "The same encoder, trained for the utility alone.",
    "certificate": "The best possible attack on the released codes alone, computed from the counts of codes. It holds"
    " for every method, but not for attackers who also hold other data.",
    "95 % interval": "The range [low, high] that covers the true value in 95 % of samples of test examples.",
    "control": "Other input for the same attacks, for comparison: the raw features, the graph, another encoder.",
    "z adds": "What attackers gain from the embeddings z beyond what they hold already.",
}
SIZES = {"traces": "a trace of", "leaks": "part of", "unprotected": "most of"}
"""The size of a leak in words, by verdict."""


def missed_mark(limits: LimitsRecord) -> Mark:
    """The mark of a run that misses a limit of its search."""
    return LIMIT_MISSED if limits.min_utility is None else UTILITY_MISSED


def sentence(audit: AuditRecord, missed: str | None = None) -> str:
    """The verdict with its size, in one sentence.

    Args:
        audit: the audit.
        missed: what the audit is called in place of its verdict, because a limit is missed; None for the verdict.
    """
    if missed is not None:
        bound = f"Attacks on the embeddings alone reach at most {at_most(audit.bound).removeprefix('≤ ')}."
        rest = [] if audit.verdict in HIDDEN else [_verdict(audit)]
        return " ".join([f"Audit of {audit.secret}: {missed}.", bound, *rest])
    return _verdict(audit)


def _verdict(audit: AuditRecord) -> str:
    best, scale = audit.strongest, audit.scale
    reason = max(audit.reasons, key=lambda one: one.size, default=None)
    if audit.verdict in SIZES and reason is not None:
        end = "a perfect attack reveals" if scale.unprotected is None else "the unprotected encoder reveals"
        size = f"{SIZES[audit.verdict]} {audit.secret}, {percent(reason.size)} % of what {end}"
        return f"Attackers learn {size} ({reason.sentence})."
    value = f"the strongest attack has an {metric_name(best.metric)} of {interval(best)} %"
    value += f", and the {scale.compared_with} is {percent(scale.reference)} %"
    if audit.verdict == "flagged":
        return f"The audit has flags, so it cannot show that the release hides {audit.secret}: {value}."
    return f"No attack predicts {audit.secret} significantly better than without the embeddings: {value}."


def headline(audit: AuditRecord, about: str = "", missed: str | None = None) -> list[Part]:
    """What follows the sentence: the bars, the certificate, flags, and what the words mean.

    Args:
        audit: the audit.
        about: a text for the titles; empty if there is one audit.
        missed: as in `sentence`.
    """
    parts: list[Part] = [_bars(audit, about)]
    if audit.higher is not None:
        parts.append(Prose([f"Highest value{about}: {audit.higher}."]))
    if audit.certificate is not None:
        parts.append(Prose([f"Certificate{about}: {audit.certificate.sentence}"]))
    if audit.flags:
        parts.append(Prose([f"⚠ {flag.name}{about}: {flag.sentence}" for flag in audit.flags], listed=True))
    return [*parts, _explained(audit, about, missed)]


def certified_value(one: Certificate | None) -> float | None:
    """The best possible value by the metric of the headline."""
    if one is None:
        return None
    return one.auc if isinstance(one, LinkCertificate) else one.accuracy


def _bars(audit: AuditRecord, about: str) -> Figure:
    scale, utility, best = audit.scale, audit.utility, audit.strongest
    metric, certified = metric_name(best.metric), certified_value(audit.certificate)
    end = None if scale.unprotected is None else ("unprotected encoder", scale.unprotected)
    this = ("this release", Interval(best.value, best.ci))
    leak = Gauge(
        f"Leak of {audit.secret}", f"{metric} of attacks", (scale.compared_with, scale.reference), this, end, certified
    )
    gauges = [leak]
    if utility is not None:
        end = None if utility.unprotected is None else ("unprotected encoder", utility.unprotected)
        what, now = f"Utility kept: {utility.name}", ("this release", Interval(utility.value))
        metric = Target.of(utility.name).metric_name
        gauges.append(Gauge(what, metric, ("chance level", utility.chance), now, end, tone="kept"))
    return gauge_figure(f"Leak and utility{about}", gauges)


def _explained(audit: AuditRecord, about: str, missed: str | None) -> Fold:
    reasons: Sequence[Sequence[str]] = [[one.sentence, f"{percent(one.size)} %"] for one in audit.reasons]
    why = [] if missed is None else [f"{missed}: {MISSED}"]
    if missed is None or audit.verdict not in HIDDEN:
        why.append(f"{VERDICTS[audit.verdict].text}: {MEANING[audit.verdict]}")
    parts: list[Part] = [Prose(why)]
    if reasons:
        columns = [Column("significantly above its reference", "name"), Column("share of the way")]
        parts.append(Table(f"Reasons for the verdict{about}", columns, reasons))
    columns = [Column("term", "name"), Column("meaning", "text")]
    terms = [[name, text] for name, text in TERMS.items()]
    return Fold(f"Why this verdict, and what the terms mean{about}", [*parts, Table("Terms", columns, terms)])
