"""The verdict of an audit, and the reasons for *leaks*.

An audit *leaks* if any value is significantly above its reference. It is *flagged* if no value is, but something rules
out *protected*. Otherwise it is *protected*.
"""

from typing import TYPE_CHECKING

from scipy.stats import norm

from graphveil.auditing.finding import Finding, signed
from graphveil.auditing.groups import KINDS, MEASURES, judged
from graphveil.formats import Interval
from graphveil.formats.audit import Verdict
from graphveil.target import CHANCE_AUC

if TYPE_CHECKING:
    from graphveil.auditing.result import Audit

SIDE_COMPARISONS = 4
"""Comparisons besides those of z alone: with the public graph, the features, the known links, and by group. They share
one error of 2.5 %."""


def audit_verdict(audit: "Audit") -> Verdict:
    """The verdict of an audit, from its reasons and flags."""
    if audit.leak_reasons:
        return "leaks"
    return "flagged" if audit.flags else "protected"


def audit_reasons(audit: "Audit") -> tuple[str, ...]:
    """The values of an audit that are significantly above their reference, one sentence each.

    The references are:

    - of the headline: the chance level; if links are the secret and a class is the utility, the floor;
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
        reasons.append(_above(balanced.attack, "balanced accuracy", balanced.balanced, audit.balanced_chance))
    matched = audit.class_matched
    if matched is not None and matched.matched is not None and matched.matched.low > CHANCE_AUC:
        reasons.append(_above(matched.attack, "class-matched AUC", matched.matched, CHANCE_AUC))
    for finding, excess, held in (
        (audit.with_graph, audit.excess_with_graph, "the public graph"),
        (audit.with_features, audit.excess_with_features, "the features"),
    ):
        if finding is not None and excess is not None and _adds(finding, excess, audit.secret.chance):
            reasons.append(_z_adds(finding, excess, held))
    return (*reasons, *_beside_known_links(audit), *_worst_group(audit))


def _headline(audit: "Audit") -> list[str]:
    best, reference = audit.strongest, audit.secret.chance
    if audit.secret.target.is_links and audit.keeps_classes and audit.floor is not None:
        reference = max(reference, audit.floor.value)
    if best.headline.low > reference:
        return [_above(best.attack, audit.secret.target.metric_name, best.headline, reference)]
    other = _significant_attack(audit, reference)
    if other is None:
        return []
    sentence = _above(other.attack, audit.secret.target.metric_name, other.headline, reference)
    return [f"{sentence}, significant for the best of {len(audit.on_z_alone)} attacks (Bonferroni)"]


def _significant_attack(audit: "Audit", reference: float) -> Finding | None:
    """The attack on z alone that is above `reference` at 2.5 %, divided by the number of attacks; None without one."""
    best = max(audit.on_z_alone, key=lambda finding: _corrected_low(finding.headline, len(audit.on_z_alone)))
    return best if _corrected_low(best.headline, len(audit.on_z_alone)) > reference else None


def _beside_known_links(audit: "Audit") -> list[str]:
    """What z adds to the known links; if the utility keeps classes, only beyond what the true classes add."""
    finding, excess, over_classes = audit.with_links, audit.excess_with_links, audit.links_excess_over_classes
    if finding is None or excess is None or not _adds(finding, excess, audit.secret.chance):
        return []
    sentence = _z_adds(finding, excess, "the known links")
    if not audit.keeps_classes:
        return [sentence]
    if over_classes is None or over_classes.low <= 0:
        return []
    return [f"{sentence}, {signed(over_classes)} points compared with the true classes"]


def _worst_group(audit: "Audit") -> list[str]:
    """The worst group if its interval, corrected for the number of groups, is above its reference.

    The sentence names neither the column nor the value, because the card of a release quotes it.
    """
    group = audit.worst_group
    if group is None or group.estimate is None or group.reference is None:
        return []
    if _corrected_low(group.estimate, SIDE_COMPARISONS) <= group.reference:
        return []
    where = f"in the worst of {judged(audit.groups)} groups ({KINDS[group.kind]})"
    return [
        f"{audit.strongest.attack}: {MEASURES[group.measure]} {group.estimate} {where} is above"
        f" {100 * group.reference:.1f}"
    ]


def _corrected_low(estimate: Interval, comparisons: int) -> float:
    """The lower bound of an interval, widened so that `comparisons` of them share an error of 2.5 % (Bonferroni)."""
    widened = norm.ppf(1 - 0.025 / comparisons) / norm.ppf(0.975)
    return float(estimate.value - widened * (estimate.value - estimate.low))


def _adds(finding: Finding, excess: Interval, chance: float) -> bool:
    """Whether z adds something for an attacker who holds more than z."""
    return _corrected_low(excess, SIDE_COMPARISONS) > 0.0 and finding.headline.low > chance


def _above(attack: str, metric: str, estimate: Interval, reference: float) -> str:
    return f"{attack}: {metric} {estimate} is above {100 * reference:.1f}"


def _z_adds(finding: Finding, excess: Interval, held: str) -> str:
    return f"{finding.attack}: z adds {signed(excess)} points to {held}"
