"""Flags: what rules out the verdicts *protected* and *traces*, such as collapsed embeddings or too few examples."""

from typing import TYPE_CHECKING

import numpy as np

from graphveil.auditing.verdict import TRACES, largest_size
from graphveil.formats.audit import Flag
from graphveil.target import CHANCE_AUC, METRIC_NAMES

if TYPE_CHECKING:
    from graphveil.auditing.result import Audit

TOO_FEW = "too few examples"
NO_REFERENCE = "no unprotected encoder"
OVERRULED = (TOO_FEW, NO_REFERENCE)
"""The flags that a bound within a stated limit overrules."""
MAX_HALF_WIDTH = 0.05
"""With a wider interval, there are too few examples for *protected*."""
MIN_CLASS_EXAMPLES = 30
"""With fewer test examples of a class, there are too few examples for *protected*."""
TOLERANCE = 1e-9
"""Rounding: how far a value may be above a limit that was computed in another way."""


def audit_flags(audit: "Audit") -> tuple[Flag, ...]:
    """All flags of an audit."""
    flags = [*audit.shape, *_collapse(audit), *_utility(audit), *_too_few_examples(audit), *_above_certificate(audit)]
    flags += [Flag("possible train/test overlap", sentence) for sentence in audit.context.overlaps]
    if audit.dropped:
        flags.append(Flag("attacks skipped", f"the time budget skipped {', '.join(audit.dropped)}"))
    if audit.unprotected is None and 0 < largest_size(audit) <= TRACES:
        flags.append(Flag(NO_REFERENCE, "sizes are relative to a perfect attack, so a leak may look like traces"))
    if audit.origin.panel != "full":
        flags.append(Flag("not the full panel", "the audit did not run all attacks"))
    return tuple(flags)


def _collapse(audit: "Audit") -> list[Flag]:
    flags, of_links = [], audit.secret.target.is_links
    if all(finding.constant for finding in audit.findings):
        flags.append(Flag("constant prediction", "every attack gives every example the same answer"))
    if of_links and audit.strongest.headline.value == CHANCE_AUC:
        flags.append(Flag("AUC of exactly 50 %", "all scores of the strongest attack are tied, a sign of collapse"))
    if of_links and audit.context.joint == CHANCE_AUC:
        flags.append(Flag("joint AUC of exactly 50 %", "the joint adversary has collapsed"))
    return flags


def _utility(audit: "Audit") -> list[Flag]:
    utility = audit.context.utility
    if utility is None:
        return [Flag("utility unknown", "the utility of the embeddings was not given, so they may be noise")]
    if not utility.is_at_chance:
        return []
    values = f"the utility ({utility.name}) is {utility.value:.1%} at a chance level of {utility.chance:.1%}"
    return [Flag("utility at chance", f"{values}: the embeddings keep nothing")]


def _too_few_examples(audit: "Audit") -> list[Flag]:
    certified = audit.scale.certified
    if certified is not None and certified <= TRACES:
        return []  # a certificate is exact for any number of examples
    estimates = {"headline": audit.strongest.headline}
    if audit.most_balanced is not None:
        estimates["balanced accuracy"] = audit.most_balanced.balanced
    if audit.class_matched is not None and audit.class_matched.matched is not None:
        estimates["class-matched AUC"] = audit.class_matched.matched
    reasons = [
        f"the interval of the {name} is ±{100 * estimate.half:.1f} points"
        for name, estimate in estimates.items()
        if estimate.half > MAX_HALF_WIDTH
    ]
    counts = np.unique(audit.secret.test.y, return_counts=True)[1]
    if counts.min() < MIN_CLASS_EXAMPLES:
        reasons.append(f"one class has {counts.min()} test examples")
    return [Flag(TOO_FEW, "; ".join(reasons))] if reasons else []


def _above_certificate(audit: "Audit") -> list[Flag]:
    """An attack on z alone that exceeds the certificate on the test examples; this shows an error."""
    flags = []
    for metric, limit in audit.limits.items():
        findings = [one for one in audit.findings if one.on_z_alone and metric in one.metrics]
        best = max(findings, key=lambda one: one.metrics[metric].value, default=None)
        if best is not None and (value := best.metrics[metric].value) > limit + TOLERANCE:
            name = METRIC_NAMES[metric]
            flags.append(
                Flag(
                    "attack above certificate",
                    f"{best.attack} has {name} {100 * value:.2f} on the test part, but the distinct rows of z allow"
                    f" only {100 * limit:.2f}: the attack knows more than z, or the certificate is wrong",
                )
            )
    return flags
