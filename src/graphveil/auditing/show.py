"""An audit as a person reads it: the headline, what stands beside it, and a table of all attacks."""

import io

from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text

from graphveil.auditing.finding import Finding, strongest
from graphveil.auditing.groups import LEAST, MEASURES, judged
from graphveil.auditing.result import METRICS, Audit
from graphveil.errors import printable
from graphveil.formats import Interval

CERTIFIED = (
    "this release",
    "other nodes",
    "balanced accuracy",
    "links beyond classes",
    "worst code",
    "rarest code",
    "any secret",
)
"""The rows of a certificate that are shown beside the headline."""


def shown(audit: Audit) -> Group:
    """For a rich console."""
    beside = Table.grid(padding=(0, 2))
    for name, value in rows(audit):
        beside.add_row(Text(f"  {name}"), Text(value))
    title = Text(f"What the embeddings tell about {audit.secret.name}: {audit.verdict}", style="bold")
    return Group(title, beside, table(audit), *([group_table(audit)] if audit.groups else []))


def as_text(audit: Audit, width: int = 110) -> str:
    """For `print`."""
    text = io.StringIO()
    Console(file=text, width=width).print(shown(audit))
    return text.getvalue().rstrip()


def rows(audit: Audit) -> list[tuple[str, str]]:
    """The headline and what stands beside it, as (name, sentence)."""
    best, chance = audit.strongest, 100 * audit.secret.chance
    found = [
        ("strongest attack", f"{best.attack}: {METRICS[best.metric]} {best.headline}, guessing {chance:.1f}"),
        ("any attack on z alone", f"at most {100 * audit.upper:.1f}, with 97.5 % confidence"),
    ]
    found += _worst_group(audit)
    found += _certified(audit)
    if audit.most_balanced is not None:
        name, balanced = audit.most_balanced.attack, audit.most_balanced.balanced
        found.append(("balanced accuracy", f"{name}: {balanced}, guessing {100 * audit.balanced_chance:.1f}"))
    if audit.class_matched is not None:
        found.append(
            ("class-matched AUC", f"{audit.class_matched.attack}: {audit.class_matched.matched}, guessing 50.0")
        )
    for name, one, excess in (
        ("with the public graph", audit.with_graph, audit.excess_with_graph),
        ("with the features", audit.with_features, audit.excess_with_features),
        ("with the known links", audit.with_links, audit.excess_with_links),
    ):
        if one is not None:
            added = "" if excess is None else f"; z adds {_signed(excess)} points"
            found.append((name, f"{one.attack}: {one.headline}{added}"))
    if audit.floor is not None and audit.excess is not None:
        what = "the best rule on pairs of true classes" if best.metric == "auc" else "the public graph without z"
        found.append(("floor", f"{audit.floor} from {what}; the strongest is {100 * audit.excess:+.1f} from it"))
    if audit.gap is not None and audit.context.joint is not None:
        found.append(("joint adversary", f"{100 * audit.context.joint:.1f}: a fresh one reads {100 * audit.gap:+.1f}"))
    found.append(("mutual information", _nats(audit)))
    found += [("leaks", sentence) for sentence in audit.leak_reasons]
    found += [("flag", f"{flag.name}: {flag.sentence}") for flag in audit.flags]
    return found + [("note", note) for note in (*audit.context.notes, *audit.secret.notes)]


def table(audit: Audit) -> Table:
    """All findings, the strongest first, and of each control the strongest."""
    of_links = audit.strongest.metric == "auc"
    result = Table("attack", audit.strongest.metric, "class-matched" if of_links else "balanced", "knows")

    def add(name: str, finding: Finding, style: str = "") -> None:
        second = finding.matched if of_links else finding.balanced
        knows = " + ".join(finding.needs)
        result.add_row(Text(name), str(finding.headline), "" if second is None else str(second), knows, style=style)

    for finding in sorted(audit.findings, key=lambda found: -found.headline.value):
        add(finding.attack, finding, "bold" if finding is audit.strongest else "")
    result.add_section()
    for name, found in audit.controls.items():
        add(f"control: {name} ({strongest(found).attack})", strongest(found))
    second_chance = 0.5 if of_links else audit.balanced_chance
    guessing = "control: guessing" if of_links else "control: naming the largest class"
    result.add_row(guessing, f"{100 * audit.secret.chance:.1f}", f"{100 * second_chance:.1f}", "")
    return result


def group_table(audit: Audit) -> Table:
    """The strongest attack's result on every group, beside guessing there."""
    of_links = audit.strongest.metric == "auc"
    what = "pairs" if of_links else "nodes"
    kept = any(group.compared_with != "guessing" for group in audit.groups)
    names = (f"test {what}", "measure", "value", "reference" if kept else "guessing")
    result = Table(Column("group", overflow="fold"), *names, title_justify="left", caption_justify="left")
    result.title = f"The strongest attack ({audit.strongest.attack}) by group"
    result.caption = _caption(audit)
    for place, group in enumerate(audit.groups):
        if place and audit.groups[place - 1].by != group.by:
            result.add_section()
        value = "too few" if group.estimate is None else str(group.estimate)
        reference = "" if group.reference is None else f"{100 * group.reference:.1f}"
        words = (f"{group.examples:,}", MEASURES[group.measure], value, reference)
        result.add_row(Text(printable(group.label)), *words, style="bold" if group is audit.worst_group else "")
    return result


def _caption(audit: Audit) -> str:
    """What the values of the groups are, in as few words as can be."""
    count = judged(audit.groups)
    said = [f"Intervals hold for all {count} groups together (Bonferroni)."] if count else []
    if any(group.measure == "tpr_minus_fpr" for group in audit.groups):
        said.append("TPR - FPR: share of the class assigned to it, minus that of all other nodes.")
    if audit.strongest.metric == "auc":
        said.append("Pairs count where an end is in the group; by degree, where the end of smaller degree is.")
    if any(group.compared_with != "guessing" for group in audit.groups):
        said.append("The reference is the best rule on the true classes, or guessing if that has more.")
    if any(group.estimate is None for group in audit.groups):
        least = f"{LEAST} links, non-links or" if audit.strongest.metric == "auc" else f"{LEAST}"
        said.append(f"Groups with fewer than {least} test nodes are not judged.")
    return " ".join(said)


def _worst_group(audit: Audit) -> list[tuple[str, str]]:
    """The group about which the strongest attack learns most, beside guessing there."""
    group = audit.worst_group
    if group is None or group.reference is None:
        return []
    value = f"{MEASURES[group.measure]} {group.estimate}, {group.compared_with} {100 * group.reference:.1f}"
    what = "pairs" if audit.strongest.metric == "auc" else "nodes"
    rest = f"{group.examples:,} test {what}, interval corrected for {judged(audit.groups)} groups"
    return [("worst group", f"{printable(group.label)}: {value}; {rest}")]


def _certified(audit: Audit) -> list[tuple[str, str]]:
    """The certificate's main rows, and what it allows on the examples that the attacks are scored on."""
    if audit.certificate is None:
        return []
    found = [(f"certificate: {name}", said) for name, said in audit.certificate.rows if name in CERTIFIED]
    limit = audit.limits.get(audit.strongest.metric)
    if limit is not None:
        what = "pairs" if audit.strongest.metric == "auc" else "nodes"
        asked = f"On the {len(audit.secret.test.y):,} test {what} that the attacks are scored on"
        allowed = f"no attack that sees z alone can exceed {METRICS[audit.strongest.metric]} {100 * limit:.1f}."
        found.insert(2, ("certificate: test part", f"{asked} {allowed}"))
    return found


def _nats(audit: Audit) -> str:
    told = audit.information
    lower, vclub = told.lower, told.vclub
    text = f"at least {lower.estimate.value:.3f} of {told.entropy:.3f} nats; vCLUB {vclub.estimate.value:.3f}"
    doubts = [f"{name} {nat.doubt}" for name, nat in (("the bound:", lower), ("vCLUB:", vclub)) if nat.doubt]
    return f"{text} (not to be trusted: {'; '.join(doubts)})" if doubts else text


def _signed(estimate: Interval) -> str:
    return f"{100 * estimate.value:+.1f} [{100 * estimate.low:+.1f}, {100 * estimate.high:+.1f}]"
