"""The verdict of an audit: its size decides the grade, and its intervals decide whether there is a leak at all.

The size of a value is the share of the way from its reference (what is possible without the embeddings) to the same
value of the unprotected encoder. Without that control, the way ends at 1. Sizes are then too small, so an audit with
*traces* is flagged.

| verdict | some value is significantly above its reference | largest size of these |
|---|---|---|
| *protected* | no | |
| *traces* | yes | at most 10 % |
| *leaks* | yes | at most 75 % |
| *unprotected* | yes | more |

More test examples make smaller differences significant, but a significant trace is still a trace. An audit with a flag
is *flagged* instead of *protected* or *traces*.
"""

from typing import TYPE_CHECKING

from scipy.stats import norm

from graphveil.auditing.finding import Finding, signed
from graphveil.auditing.groups import KINDS, MEASURES, judged
from graphveil.formats import Interval
from graphveil.formats.audit import Reason, Scale, Verdict
from graphveil.formats.certificate import LinkCertificate
from graphveil.target import CHANCE_AUC

if TYPE_CHECKING:
    from graphveil.auditing.result import Audit

TRACES, LEAKS = 0.10, 0.75
"""The largest sizes of *traces* and of *leaks*."""
SHORTEST_WAY = 0.2
"""Of an unprotected encoder that reveals little. So up to 2 points above the reference are always *traces*."""
SIDE_COMPARISONS = 4
"""Comparisons besides those of z alone: with the public graph, the features, the known links, and by group. They share
one error of 2.5 %."""


def audit_verdict(audit: "Audit") -> Verdict:
    """The verdict of an audit, from its reasons and flags."""
    size = largest_size(audit)
    if size > LEAKS:
        return "unprotected"
    if size > TRACES:
        return "leaks"
    if audit.flags:
        return "flagged"
    return "traces" if audit.reasons else "protected"


def largest_size(audit: "Audit") -> float:
    """The largest size of the reasons; 0 without any."""
    return max((reason.size for reason in audit.reasons), default=0.0)


def audit_scale(audit: "Audit") -> Scale:
    """The place of the strongest attack between its reference and the unprotected encoder."""
    reference, end, value = headline_reference(audit), audit.unprotected, audit.strongest.headline
    way = _way(reference, None if end is None else end.headline)
    low, high = ((one - reference) / way for one in (value.low, value.high))
    return Scale(
        reference=reference,
        compared_with="floor" if reference > audit.secret.chance else "chance level",
        unprotected=None if end is None else end.headline.value,
        size=(value.value - reference) / way,
        ci=(low, high),
        certified=certified_size(audit),
    )


def certified_size(audit: "Audit") -> float | None:
    """The size of the best possible attack on z alone, by the certificate; None without one."""
    one, end = audit.certificate, None if audit.unprotected is None else audit.unprotected.headline
    if one is None:
        return None
    if isinstance(one, LinkCertificate):
        reference, finer, finer_reference = headline_reference(audit), one.class_matched_auc, CHANCE_AUC
        value, finer_end = one.auc, audit.unprotected_matched
    else:
        reference, finer, finer_reference = one.majority, one.balanced_accuracy, one.balanced_guessing
        value, finer_end = one.accuracy, audit.unprotected_balanced
    sizes = [(value - reference) / _way(reference, end)]
    if finer is not None:
        sizes.append((finer - finer_reference) / _way(finer_reference, finer_end))
    return max(sizes)


def headline_reference(audit: "Audit") -> float:
    """What is possible without z: the chance level; if links are hidden and a class is kept, the floor."""
    if audit.secret.target.is_links and audit.keeps_classes and audit.floor is not None:
        return max(audit.secret.chance, audit.floor.value)
    return audit.secret.chance


def audit_reasons(audit: "Audit") -> tuple[Reason, ...]:
    """The values of an audit that are significantly above their reference.

    The references are:

    - of the headline: see `headline_reference`;
    - of the balanced accuracy and the class-matched AUC: their chance levels;
    - of what z adds for attackers who hold more: 0; for the known links, if a class is the utility, what the true
      classes add;
    - of a group: the chance level in that group, or the AUC of the true classes.

    If the strongest attack is not above its reference, another attack is a reason if it is, after a correction for the
    number of attacks.
    """
    reasons = _headline(audit)
    balanced = audit.most_balanced
    if balanced is not None and balanced.balanced.low > audit.balanced_chance:
        sentence = _above(balanced.attack, "balanced accuracy", balanced.balanced, audit.balanced_chance)
        end = audit.unprotected_balanced
        reasons.append(_reason(sentence, balanced.balanced.value - audit.balanced_chance, audit.balanced_chance, end))
    matched = audit.class_matched
    if matched is not None and matched.matched is not None and matched.matched.low > CHANCE_AUC:
        sentence = _above(matched.attack, "class-matched AUC", matched.matched, CHANCE_AUC)
        end = audit.unprotected_matched
        reasons.append(_reason(sentence, matched.matched.value - CHANCE_AUC, CHANCE_AUC, end))
    for finding, excess, held in (
        (audit.with_graph, audit.excess_with_graph, "the public graph"),
        (audit.with_features, audit.excess_with_features, "the features"),
    ):
        if finding is not None and excess is not None and _adds(finding, excess, audit.secret.chance):
            reasons.append(_added(audit, _z_adds(finding, excess, held), excess.value))
    return (*reasons, *_beside_known_links(audit), *_worst_group(audit))


def _headline(audit: "Audit") -> list[Reason]:
    best, reference = audit.strongest, headline_reference(audit)
    end = None if audit.unprotected is None else audit.unprotected.headline
    if best.headline.low > reference:
        sentence = _above(best.attack, audit.secret.target.metric_name, best.headline, reference)
        return [_reason(sentence, best.headline.value - reference, reference, end)]
    other = _significant_attack(audit, reference)
    if other is None:
        return []
    attacks = len(audit.on_z_alone)
    sentence = _above(other.attack, audit.secret.target.metric_name, other.headline, reference)
    sentence = f"{sentence}, significant after a correction for {attacks} attacks (Bonferroni)"
    # it was chosen by its test value, which is too high therefore, so the lower bound counts
    return [_reason(sentence, _corrected_low(other.headline, attacks) - reference, reference, end)]


def _significant_attack(audit: "Audit", reference: float) -> Finding | None:
    """The attack on z alone that is above `reference` at 2.5 %, divided by the number of attacks; None without one."""
    best = max(audit.on_z_alone, key=lambda finding: _corrected_low(finding.headline, len(audit.on_z_alone)))
    return best if _corrected_low(best.headline, len(audit.on_z_alone)) > reference else None


def _beside_known_links(audit: "Audit") -> list[Reason]:
    """What z adds to the known links; if the utility keeps classes, only beyond what the true classes add."""
    finding, excess, over_classes = audit.with_links, audit.excess_with_links, audit.links_excess_over_classes
    if finding is None or excess is None or not _adds(finding, excess, audit.secret.chance):
        return []
    sentence = _z_adds(finding, excess, "the known links")
    if not audit.keeps_classes:
        return [_added(audit, sentence, excess.value)]
    if over_classes is None or over_classes.low <= 0:
        return []
    sentence = f"{sentence}, {signed(over_classes)} points more than the true classes add"
    return [_added(audit, sentence, over_classes.value)]


def _worst_group(audit: "Audit") -> list[Reason]:
    """The worst group if its interval, corrected for the number of groups, is above its reference.

    The sentence names neither the column nor the value, because the card of a release quotes it.
    """
    group = audit.worst_group
    if group is None or group.estimate is None or group.reference is None:
        return []
    low = _corrected_low(group.estimate, SIDE_COMPARISONS)
    if low <= group.reference:
        return []
    where = f"in the worst of {judged(audit.groups)} groups ({KINDS[group.kind]})"
    sentence = (
        f"{audit.strongest.attack}: {MEASURES[group.measure]} {group.estimate} {where} is above its reference,"
        f" {100 * group.reference:.1f}"
    )
    return [_added(audit, sentence, low - group.reference)]  # the worst of many, so the lower bound counts


def _reason(sentence: str, excess: float, reference: float, end: Interval | None) -> Reason:
    return Reason(sentence, excess / _way(reference, end))


def _added(audit: "Audit", sentence: str, excess: float) -> Reason:
    """A reason by a difference, whose size is measured on the way from the chance level to the unprotected encoder."""
    end = None if audit.unprotected is None else audit.unprotected.headline
    return _reason(sentence, excess, audit.secret.chance, end)


def _way(reference: float, end: Interval | None) -> float:
    return max((1.0 if end is None else end.value) - reference, SHORTEST_WAY)


def _corrected_low(estimate: Interval, comparisons: int) -> float:
    """The lower bound of an interval, widened so that `comparisons` of them share an error of 2.5 % (Bonferroni)."""
    widened = norm.ppf(1 - 0.025 / comparisons) / norm.ppf(0.975)
    return float(estimate.value - widened * (estimate.value - estimate.low))


def _adds(finding: Finding, excess: Interval, chance: float) -> bool:
    """Whether z adds something for an attacker who holds more than z."""
    return _corrected_low(excess, SIDE_COMPARISONS) > 0.0 and finding.headline.low > chance


def _above(attack: str, metric: str, estimate: Interval, reference: float) -> str:
    return f"{attack}: {metric} {estimate} is above its reference, {100 * reference:.1f}"


def _z_adds(finding: Finding, excess: Interval, held: str) -> str:
    return f"{finding.attack}: z adds {signed(excess)} points for attackers with {held}"
