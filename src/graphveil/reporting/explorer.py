"""The part of a page in which one moves along the front of a sweep or a search with a slider.

Every point is on the page as text and pictures. The script of the page (`explorer.js`) shows one of them at a time;
without it, all of them follow each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from graphveil.formats.experiment import Certified, ExperimentRecord, Row, front
from graphveil.reporting.charts import CHANCE, level, within
from graphveil.reporting.maps import after, maps
from graphveil.reporting.parts import (
    Column,
    Explorer,
    Figure,
    Part,
    Prose,
    Step,
    Table,
    at_most,
    metric_name,
    percent,
    plus_minus,
)
from graphveil.reporting.rows import Gauge, gauge_figure
from graphveil.reporting.svg import HEIGHT, WIDTH, Axis, Plot, swatch

MOST_STEPS = 24
"""Points on a slider; of a longer front, some are left out evenly."""


@dataclass(frozen=True)
class Dot:
    """A point of the chart: its leak, its utility, a tooltip, and its step on the slider, if it has one."""

    leak: float
    utility: float
    text: str
    step: int | None


def front_chart(dots: Sequence[Dot], names: tuple[str, str], chance: float, limit: float | None = None) -> Figure:
    """Utility against leak; the points on the slider are joined.

    Args:
        dots: all points.
        names: the names of the leak and of the utility.
        chance: the chance level of the leak.
        limit: the highest leak to accept, if one was stated.
    """
    x = Axis.over(names[0], [*(dot.leak for dot in dots), chance, limit])
    y = Axis.over("", [dot.utility for dot in dots])
    on_front = sorted((dot.leak, dot.utility) for dot in dots if dot.step is not None)
    text = f"{len(dots)} points, {len(on_front)} of them on the slider."
    plot = Plot(f"{names[1]} against leak", text, x, y, size=(WIDTH, HEIGHT))
    plot.rule("chance", chance, across=False)
    plot.rule("limit", limit, across=False)
    plot.line(0, on_front, "front")
    for dot in sorted(dots, key=lambda dot: dot.step is not None):
        plot.point(0, dot.leak, dot.utility, dot.text, "paper" if dot.step is None else "point", dot.step)
    legend = [(swatch(0, "point"), "on the slider"), (swatch(0, "paper"), "other points"), CHANCE]
    legend += [] if limit is None else [(swatch(0, "limit"), "limit")]
    heads = [Column("point", "name"), Column(names[1]), Column(names[0]), Column("on the slider")]
    rows = [[dot.text, percent(dot.utility), percent(dot.leak), "no" if dot.step is None else "yes"] for dot in dots]
    return Figure(
        "Utility against leak",
        "Higher and further left is better. The slider moves through the filled points: those that no other point beats"
        " in both utility and leak, and the chosen point if there is one.",
        [plot.svg()],
        legend,
        Table("Utility against leak, in percent", heads, rows),
    )


def sweep_explorer(one: ExperimentRecord, secret: str, rows: Sequence[Row]) -> Explorer:
    """The front of the rows of one data set and one secret, from the least useful to the most useful."""
    points = [(row.fresh.value, row.utility.value) for row in rows]
    best = front(points)
    on_front = sorted(
        (row for row, point in zip(rows, points, strict=True) if point in best), key=lambda row: row.utility.value
    )
    steps = _thinned(on_front)
    dots = [
        Dot(leak, kept, _name(row), steps.index(row) if row in steps else None)
        for row, (leak, kept) in zip(rows, points, strict=True)
    ]
    highest = max(rows, key=lambda row: row.fresh.value)
    names = (f"strongest attack on {secret}", f"utility ({one.utility})")
    return Explorer(
        f"Along the front: {rows[0].dataset}, {secret}",
        front_chart(dots, names, rows[0].chance),
        [_step(one, row, highest) for row in steps],
        start=len(steps) // 2,
    )


def _thinned(found: Sequence[Row]) -> list[Row]:
    """At most `MOST_STEPS` of them, evenly, with the first and the last."""
    if len(found) <= MOST_STEPS:
        return list(found)
    return [found[round(number * (len(found) - 1) / (MOST_STEPS - 1))] for number in range(MOST_STEPS)]


def _name(row: Row) -> str:
    return f"{row.variant} · {row.encoder} · {level(row)}"


def _step(one: ExperimentRecord, row: Row, highest: Row) -> Step:
    """One row, beside the row with the highest leak."""
    flagged = f"; {row.flagged:.0%} of the runs are flagged" if row.flagged else ""
    sentences = [f"{row.seeds} {'seed' if row.seeds == 1 else 'seeds'}; strongest attack: {row.fresh_attack}{flagged}."]
    if row.certified is not None:
        sentences.append(_certificate(row.certified, row.chance))
    parts: list[Part] = [_bars(one, row, highest), Prose(sentences)]
    pictures = [(_beside(highest), highest)] if row != highest else []
    pictures.append((f"this point ({level(row)})", row))
    drawn = [after(title, which.map) for title, which in pictures if which.map is not None]
    if drawn:
        parts.append(maps("Embeddings by secret class", drawn))
    name = _name(row)
    text = f"{name}: utility {percent(row.utility.value)} %, leak {percent(row.fresh.value)} %"
    return Step(name, text, [*parts, _attacks(row)])


def _bars(one: ExperimentRecord, row: Row, highest: Row) -> Figure:
    metric = next((found.metric for found in one.secrets if found.secret == row.secret), "")
    leak = Gauge(
        f"Leak of {row.secret}",
        f"{metric_name(metric)} of attacks",
        ("chance level", row.chance),
        ("this point", within(row.fresh)),
        (_beside(highest), highest.fresh.value),
        None if row.certified is None else row.certified.best.value,
    )
    kept = Gauge(
        f"Utility kept: {one.utility}",
        metric_name(one.metric),
        ("chance level", row.utility_chance),
        ("this point", within(row.utility)),
        (f"at the highest leak ({level(highest)})", highest.utility.value),
        tone="kept",
    )
    return gauge_figure("Leak and utility", [leak, kept])


def _beside(highest: Row) -> str:
    return f"highest leak of the sweep ({level(highest)})"


def _certificate(one: Certified, chance: float) -> str:
    beyond = "" if one.limit is None else f"; on other nodes {at_most(one.limit.value)}, with 95 % confidence"
    best = f"the best possible attack on the codes alone reaches {at_most(one.best.value)}{beyond}"
    return f"Certificate: {best} (means over seeds; the chance level is {percent(chance)} %)."


def _attacks(row: Row) -> Table:
    ranked = sorted(row.attacks.items(), key=lambda item: -item[1].value)
    columns = [Column("attack", "name"), Column("value")]
    note = f"In percent{', ± half of the 95 % interval over seeds' if row.seeds > 1 else ''}."
    lines = [[f"★ {name}" if name == row.fresh_attack else name, plus_minus(value)] for name, value in ranked]
    return Table(f"Attacks at {level(row)}", columns, lines, note)
