"""Every attack and every group of an audit as a chart, each with its numbers as a table."""

from collections.abc import Sequence
from itertools import groupby

from graphveil.formats import Interval
from graphveil.formats.audit import Attack, AuditRecord, Group
from graphveil.reporting.charts import CHANCE, floor_legend, within
from graphveil.reporting.parts import (
    MEASURES,
    MISSING,
    Column,
    Figure,
    Table,
    interval,
    metric_name,
    percent,
    plain,
    shortened,
)
from graphveil.reporting.rows import Row, row_chart
from graphveil.reporting.svg import Axis, swatch

MOST_GROUPS = 30
"""Groups of one kind in a chart; the table has all."""
LONGEST = 60
KINDS = ("on the embeddings", "on the embeddings with a graph or the features", "on a control")


def attack_chart(audit: AuditRecord, controls: Sequence[tuple[str, Attack]]) -> Figure:
    """Value and interval of every attack and of the strongest on each control, with the chance level and the floor."""
    found = sorted(audit.attacks, key=lambda one: -one.value)
    found.sort(key=_holds_more)
    best, metric = audit.strongest.attack, metric_name(audit.strongest.metric)
    names = [f"★ {one.attack}" if one.attack == best else one.attack for one in found]
    shown = [(name, one, 1 if _holds_more(one) else 0) for name, one in zip(names, found, strict=True)]
    shown += [(f"control: {name}", one, 2) for name, one in controls]
    rows = [Row(shortened(name, LONGEST), within(one), series, interval(one)) for name, one, series in shown]
    floor = None if audit.floor is None else audit.floor.value
    axis = Axis.over(metric, [*_ends(rows), audit.chance, floor])
    data = [
        [name, one.attack if series == 2 else MISSING, interval(one), percent(one.validation)]
        for name, one, series in shown
    ]
    heads = [Column("attack or control", "name"), Column("strongest attack on the control", "text")]
    heads += [Column(f"{metric} [95 % interval]"), Column("held-out")]
    present = {series for *_, series in shown}
    legend = [(swatch(i, "point"), kind) for i, kind in enumerate(KINDS) if i in present]
    return Figure(
        "Every attack",
        f"Attack {metric} for {audit.secret} on the test part, in percent, with 95 % intervals. ★ marks the strongest"
        " attack, chosen on held-out examples among the attacks on the embeddings alone.",
        [row_chart("Attacks and controls", axis, rows, [("chance", audit.chance), ("floor", floor)])],
        [*legend, CHANCE, *([] if floor is None else [floor_legend(audit.strongest.metric == "auc")])],
        Table("Every attack, in percent", heads, data),
        layout="rows",
    )


def group_chart(audit: AuditRecord) -> Figure:
    """The strongest attack in every group, with a panel for each way to group and each metric."""
    panels = []
    judged = [one for one in audit.groups if one.interval is not None]
    for (kind, by, measure), group in groupby(judged, key=lambda one: (one.kind, one.by, one.measure)):
        these = list(group)
        if kind == "column":
            these = sorted(these, key=_excess, reverse=True)[:MOST_GROUPS]
        title = {"class": f"By class of {by}", "degree": "By degree"}.get(kind, f"By {by}")
        rows = [_group_row(one) for one in these]
        axis = Axis.over(MEASURES[measure], [*_ends(rows), *(one.reference for one in these)])
        panels.append(row_chart(f"{title}: {MEASURES[measure]}", axis, rows))
    return Figure(
        "The strongest attack by group",
        f"For the strongest attack, {audit.strongest.attack}, in percent. A group leaks if its whole interval is to the"
        " right of its dashed line, the value without the embeddings.",
        panels,
        [(swatch(0, "point"), "the group, with its interval"), (swatch(0, "chance"), "without the embeddings")],
        _group_table(audit),
        layout="rows",
    )


def _group_row(one: Group) -> Row:
    value = one.interval or Interval(0.0)
    name = one.group if one.kind == "class" else one.label
    text = f"{interval(value)} · {plain(one.examples)} examples"
    return Row(shortened(name, LONGEST), value, 0, text, one.reference)


def _group_table(audit: AuditRecord) -> Table:
    columns = [Column("group", "name"), Column("test examples"), Column("metric", "text")]
    columns += [Column("value [interval]"), Column("reference"), Column("reference is", "text")]
    rows = [
        [
            shortened(one.label, LONGEST),
            plain(one.examples),
            MEASURES[one.measure],
            "too few" if one.interval is None else interval(one.interval),
            percent(one.reference),
            MISSING if one.interval is None else one.compared_with,
        ]
        for one in audit.groups
    ]
    judged = sum(one.interval is not None for one in audit.groups)
    note = f"In percent, for the strongest attack, {audit.strongest.attack}. The intervals hold for all {judged} groups"
    note += " at once (Bonferroni). Groups with too few examples have no value."
    if any(one.measure == "tpr_minus_fpr" for one in audit.groups):
        name = MEASURES["tpr_minus_fpr"]
        note += f" {name} of a class: the share of its nodes that are assigned to it, minus that of all other nodes."
    if any(one.measure == "auc" for one in audit.groups):
        note += " A pair counts for the groups of both ends; by degree, for that of the end of smaller degree."
    return Table("The strongest attack by group", columns, rows, note)


def _excess(one: Group) -> float:
    return (one.value or 0.0) - (one.reference or 0.0)


def _ends(rows: Sequence[Row]) -> list[float]:
    return [end for row in rows for end in (row.one.low, row.one.high)]


def _holds_more(attack: Attack) -> bool:
    """Whether the attacker holds more than the embeddings."""
    return not {"graph", "features", "known links"}.isdisjoint(attack.needs)
