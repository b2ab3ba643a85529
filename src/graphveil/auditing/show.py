"""An audit on the terminal: the headline with its comparisons, a table of all attacks, and a table of groups."""

import io

from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text

from graphveil.auditing.finding import Finding, signed, strongest
from graphveil.auditing.groups import MEASURES, MIN_EXAMPLES, judged
from graphveil.auditing.groups import Group as NodeGroup
from graphveil.auditing.result import Audit
from graphveil.auditing.verdict import SHORTEST_WAY
from graphveil.errors import printable
from graphveil.formats.audit import sampling
from graphveil.target import CHANCE_AUC, Target

CERTIFICATE_ROWS = (
    "this release",
    "other nodes",
    "balanced accuracy",
    "class-matched AUC",
    "worst code",
    "rarest code",
    "any secret",
)
"""The rows of a certificate that are shown."""


def shown(audit: Audit, verdict: str | None = None) -> Group:
    """An audit as a renderable for a rich console.

    Args:
        audit: the audit.
        verdict: what the title says; None for the verdict of the audit.
    """
    summary = Table.grid(padding=(0, 2))
    for name, value in rows(audit):
        summary.add_row(Text(f"  {name}"), Text(value))
    title = Text(f"Audit of {audit.secret.name}: {verdict or audit.verdict}", style="bold")
    return Group(title, summary, table(audit), *([group_table(audit)] if audit.groups else []))


def as_text(audit: Audit, width: int = 110) -> str:
    """An audit as plain text of this width."""
    text = io.StringIO()
    Console(file=text, width=width).print(shown(audit))
    return text.getvalue().rstrip()


def rows(audit: Audit) -> list[tuple[str, str]]:
    """The headline and its comparisons as (name, text)."""
    best, target = audit.strongest, audit.secret.target
    lines = [
        (
            "strongest attack",
            f"{best.attack}: {target.metric_name} {best.headline}, chance {100 * audit.secret.chance:.1f}",
        ),
        ("size of the leak", _size(audit)),
        ("upper bound over all attacks", f"{100 * audit.upper:.1f} (attacks on z alone, 97.5 % confidence)"),
    ]
    lines += _utility(audit)
    if audit.higher is not None:
        lines.append(("highest value", audit.higher))
    lines += _worst_group(audit) + _certificate(audit)
    if audit.most_balanced is not None:
        name, balanced = audit.most_balanced.attack, audit.most_balanced.balanced
        lines.append(("balanced accuracy", f"{name}: {balanced}, chance {100 * audit.balanced_chance:.1f}"))
    if audit.class_matched is not None:
        lines.append(("class-matched AUC", f"{audit.class_matched.attack}: {audit.class_matched.matched}, chance 50.0"))
    for name, finding, excess in (
        ("with the public graph", audit.with_graph, audit.excess_with_graph),
        ("with the features", audit.with_features, audit.excess_with_features),
        ("with the known links", audit.with_links, audit.excess_with_links),
    ):
        if finding is not None:
            added = "" if excess is None else f"; z adds {signed(excess)} points"
            lines.append((name, f"{finding.attack}: {finding.headline}{added}"))
    if audit.floor is not None and audit.excess is not None:
        name = "floor" if target.is_links else "public graph without z"
        origin = ", the best rule on pairs of true classes" if target.is_links else ""
        lines.append((name, f"{audit.floor}{origin}; the strongest attack is {_above_or_below(audit.excess)} it"))
    if audit.gap is not None and audit.context.joint is not None:
        joint = f"{100 * audit.context.joint:.1f}; the strongest attack is {_above_or_below(audit.gap)} it"
        lines.append(("joint adversary", joint))
    lines.append(("mutual information", _mutual_information(audit)))
    lines += [("evidence", f"{reason.sentence} (size {100 * reason.size:.0f} %)") for reason in audit.reasons]
    lines += [("flag", f"{flag.name}: {flag.sentence}") for flag in audit.flags]
    lines.append(("samples", sampling(audit.secret.samples)))
    return lines + [("note", note) for note in audit.context.notes]


def table(audit: Audit) -> Table:
    """All attacks in descending order, and the strongest attack on each control."""
    target = audit.secret.target
    result = Table("attack", target.metric_name, target.second, "knows")

    def add(name: str, finding: Finding, style: str = "") -> None:
        second = finding.second
        knows = " + ".join(finding.needs)
        result.add_row(Text(name), str(finding.headline), "" if second is None else str(second), knows, style=style)

    for finding in sorted(audit.findings, key=lambda one: -one.headline.value):
        add(finding.attack, finding, "bold" if finding is audit.strongest else "")
    result.add_section()
    for name, findings in audit.controls.items():
        add(f"control: {name} ({strongest(findings).attack})", strongest(findings))
    second_chance = CHANCE_AUC if target.is_links else audit.balanced_chance
    chance = "chance level" if target.is_links else "chance level (largest class)"
    result.add_row(chance, f"{100 * audit.secret.chance:.1f}", f"{100 * second_chance:.1f}", "")
    return result


def group_table(audit: Audit) -> Table:
    """The value of the strongest attack in each group, and its reference."""
    with_classes = any(group.compared_with != "chance level" for group in audit.groups)
    names = (f"test {audit.secret.target.queries}", "measure", "value", "reference" if with_classes else "chance")
    result = Table(Column("group", overflow="fold"), *names, title_justify="left", caption_justify="left")
    result.title = f"The strongest attack ({audit.strongest.attack}) by group"
    result.caption = _caption(audit)
    for place, group in enumerate(audit.groups):
        if place and audit.groups[place - 1].by != group.by:
            result.add_section()
        value = "too few" if group.estimate is None else str(group.estimate)
        reference = "" if group.reference is None else f"{100 * group.reference:.1f}"
        cells = (f"{group.examples:,}", MEASURES[group.measure], value, reference)
        result.add_row(Text(printable(group.label)), *cells, style="bold" if group is audit.worst_group else "")
    return result


def _caption(audit: Audit) -> str:
    """What the table of groups shows."""
    count = judged(audit.groups)
    of_links = audit.secret.target.is_links
    sentences = [f"The intervals hold for all {count} groups together (Bonferroni)."] if count else []
    if any(group.measure == "tpr_minus_fpr" for group in audit.groups):
        sentences.append("TPR - FPR: share of the class assigned to it, minus that of all other nodes.")
    if of_links:
        sentences.append("A pair counts for the groups of both ends; by degree, for that of the end of smaller degree.")
    if any(group.compared_with != "chance level" for group in audit.groups):
        sentences.append("The reference is the best rule on the true classes, or chance if that is higher.")
    if any(group.estimate is None for group in audit.groups):
        kinds = "links, non-links or test nodes" if of_links else "test nodes"
        sentences.append(f"Groups with fewer than {MIN_EXAMPLES} {kinds} are not judged.")
    return " ".join(sentences)


def _size(audit: Audit) -> str:
    """How far the strongest attack is on the way to the unprotected encoder."""
    scale = audit.scale
    low, high = (100 * end for end in scale.ci)
    end = "a perfect attack" if scale.unprotected is None else "the unprotected encoder"
    value = 100.0 if scale.unprotected is None else 100 * scale.unprotected
    way = f"of the way from the {scale.compared_with} ({100 * scale.reference:.1f}) to {end} ({value:.1f})"
    if value < 100 * (scale.reference + SHORTEST_WAY):
        way += f"; a way of less than {100 * SHORTEST_WAY:.0f} points counts as {100 * SHORTEST_WAY:.0f}"
    certified = "" if scale.certified is None else f"; certified: at most {100 * scale.certified:.0f} % by any metric"
    return f"{100 * scale.size:.0f} % [{low:.0f}, {high:.0f}] {way}{certified}"


def _utility(audit: Audit) -> list[tuple[str, str]]:
    """What the embeddings keep, beside what they would keep unprotected."""
    utility = audit.context.utility
    if utility is None:
        return []
    metric = Target.of(utility.name).metric_name
    before = "" if utility.unprotected is None else f"unprotected {100 * utility.unprotected:.1f}, "
    value = f"{metric} {100 * utility.value:.1f} ({before}chance {100 * utility.chance:.1f})"
    return [("utility", f"{utility.name}: {value}")]


def _worst_group(audit: Audit) -> list[tuple[str, str]]:
    """The group about which the strongest attack learns most."""
    group = audit.worst_group
    if group is None or group.reference is None:
        return []
    value = f"{MEASURES[group.measure]} {group.estimate}, {_reference_name(group)} {100 * group.reference:.1f}"
    corrected = f"interval corrected for {judged(audit.groups)} groups"
    return [
        (
            "worst group",
            f"{printable(group.label)}: {value}; {group.examples:,} test {audit.secret.target.queries}, {corrected}",
        )
    ]


def _reference_name(group: NodeGroup) -> str:
    return "chance" if group.compared_with == "chance level" else group.compared_with


def _certificate(audit: Audit) -> list[tuple[str, str]]:
    """The main rows of the certificate, and its limit on the test part."""
    if audit.certificate is None:
        return []
    lines = [(f"certificate: {name}", text) for name, text in audit.certificate.rows if name in CERTIFICATE_ROWS]
    limit = audit.limits.get(audit.strongest.metric)
    if limit is not None:
        where = f"On the {len(audit.secret.test.y):,} test {audit.secret.target.queries}"
        bound = f"no attack on z alone can exceed {audit.secret.target.metric_name} {100 * limit:.1f}."
        lines.insert(2, ("certificate: test part", f"{where}, {bound}"))
    return lines


def _mutual_information(audit: Audit) -> str:
    nats = audit.information
    lower, vclub = nats.lower, nats.vclub
    text = f"at least {lower.estimate.value:.3f} of {nats.entropy:.3f} nats; vCLUB {vclub.estimate.value:.3f}"
    warnings = [f"{name}: {one.warning}" for name, one in (("lower bound", lower), ("vCLUB", vclub)) if one.warning]
    return f"{text} (unreliable: {'; '.join(warnings)})" if warnings else text


def _above_or_below(difference: float) -> str:
    return f"{100 * abs(difference):.1f} points {'below' if difference < 0 else 'above'}"
