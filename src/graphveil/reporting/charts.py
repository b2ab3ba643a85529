"""The plots, each with the numbers it shows."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count

from graphveil.reporting.checks import Interval
from graphveil.reporting.parts import (
    MISSING,
    Column,
    Figure,
    Table,
    give_or_take,
    interval,
    metric_name,
    percent,
    plain,
)
from graphveil.reporting.results import Attack, Audit, History, Points, Row
from graphveil.reporting.svg import WIDTH, Axis, Plot, swatch

MAP_HEIGHT = 300.0
MOST_POINTS = 600
MOST_ROUNDS = 60
ROW_HEIGHT = 27.0
CHANCE = (swatch(0, "chance"), "guessing")
FLOOR = (swatch(0, "floor"), "floor: what the utility implies, or the public graph alone")
THEIRS = "; the paper's points are by its own protocol"
PAPER = 4
"""The series that the paper's own points and fronts are drawn as."""


def tradeoff_curves(variant: str, rows: Sequence[Row], names: Sequence[str]) -> Figure:
    """Utility and leak over lambda, a panel for each data set and encoder; `names` are those of the three curves."""
    rows = [row for row in rows if row.tradeoff is not None]
    seen = [within(one) for row in rows for one in (row.utility, row.protocol, row.fresh) if one is not None]
    ends = [end for one in seen for end in (one.low, one.high)]
    y = Axis.over("", chain(ends, (row.chance for row in rows), (row.floor for row in rows)))
    x = Axis.over("trade-off λ", (row.tradeoff for row in rows), percent=False)
    panels = []
    for cell in dict.fromkeys(row.cell for row in rows):
        these = sorted((row for row in rows if row.cell == cell), key=lambda row: row.tradeoff or 0.0)
        columns = [[row.utility for row in these], [row.protocol for row in these], [row.fresh for row in these]]
        spans = ", ".join(f"{name} {_span(column)}" for name, column in zip(names, columns, strict=True))
        plot = Plot(cell, f"Over λ, in percent: {spans}.", x, y)
        plot.rule("chance", _mean(row.chance for row in these))
        plot.rule("floor", _mean(row.floor for row in these))
        for series, (name, column) in enumerate(zip(names, columns, strict=True)):
            known = [(row.tradeoff or 0.0, one) for row, one in zip(these, column, strict=True) if one is not None]
            plot.band(series, [(at, within(one).low, within(one).high) for at, one in known if one.half])
            plot.line(series, [(at, one.value) for at, one in known])
            for at, one in known:
                plot.point(series, at, one.value, f"{name} {give_or_take(one)} at λ {at:g}")
        panels.append(plot.svg())
    heads = [*_names("data set", "encoder"), Column("λ"), *map(Column, names), Column("guessing"), Column("floor")]
    data = [
        [row.dataset, row.encoder, plain(row.tradeoff)]
        + [interval(one) for one in (row.utility, row.protocol, row.fresh)]
        + [percent(row.chance), percent(row.floor)]
        for row in rows
    ]
    intervals = ", with 95 % intervals over seeds" if any(one.half for one in seen) else ""
    return Figure(
        f"Trade-off curves: {variant}",
        f"In percent{intervals}. A fresh attack far above the adversary trained along means that the latter"
        " understates the leak.",
        panels,
        [*((swatch(i, "line"), name) for i, name in enumerate(names)), CHANCE, FLOOR],
        Table("Trade-off curves, in percent", heads, data),
    )


def utility_against_leak(rows: Sequence[Row], utility: str, secret: str) -> Figure:
    """Every row as a point, a panel for each data set, with the front of those that no other row beats in both."""
    variants = dict.fromkeys(row.variant for row in rows)
    series = dict(zip(variants, (i for i in count() if i != PAPER), strict=False))
    known = [(row, row.fresh.value, row.utility.value) for row in rows if row.fresh and row.utility]
    papers = [row.paper for row in rows]
    compared = any(value is not None for paper in papers for value in paper)
    leaks = chain((leak for _, leak, _ in known), (p[1] for p in papers), (row.chance for row in rows))
    x = Axis.over(f"strongest fresh attack on {secret}", leaks)
    y = Axis.over("", chain((kept for *_, kept in known), (p[0] for p in papers)))
    panels, data = [], []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        here = [(row, leak, kept) for row, leak, kept in known if row.dataset == dataset]
        best = front([(leak, kept) for _, leak, kept in here])
        plot = Plot(dataset, f"Utility against leak of {len(here)} cells, {len(best)} of them on the front.", x, y)
        plot.rule("chance", _mean(row.chance for row, *_ in here), across=False)
        plot.line(PAPER, best, "front")
        for row, leak, kept in here:
            name = f"{row.variant} · {row.encoder} · {row.level}"
            told = f"{name}: {utility} {percent(kept)}, {secret} {percent(leak)}"
            plot.point(series[row.variant], leak, kept, told)
            cells = [row.variant, level_in_column(row), percent(kept), percent(leak)]
            cells += map(percent, row.paper) if compared else ()
            data.append([dataset, row.encoder, *cells, "yes" if (leak, kept) in best else "no"])
        for paper_kept, paper_leak in dict.fromkeys(row.paper for row in rows if row.dataset == dataset):
            if paper_kept is not None and paper_leak is not None:
                told = f"the paper: {utility} {percent(paper_kept)}, {secret} {percent(paper_leak)}"
                plot.point(PAPER, paper_leak, paper_kept, told, "paper")
        panels.append(plot.svg())
    printed = ("utility: paper", "secret: paper") if compared else ()
    numbers = (level_name(rows), "utility", "strongest fresh attack", *printed, "on the front")
    legend = [(swatch(i, "point"), variant) for variant, i in series.items()]
    legend += [(swatch(PAPER, "paper"), "the paper's own")] if compared else []
    return Figure(
        "Utility against leak",
        f"Up: more of {utility} is kept. Left: less of {secret} is told to the strongest fresh attacker. The front"
        f" joins the cells that no other beats in both{THEIRS if compared else ''}.",
        panels,
        [*legend, (swatch(PAPER, "front"), "Pareto front"), CHANCE],
        Table(
            "Utility against leak, in percent",
            [*_names("data set", "encoder", "variant"), *map(Column, numbers)],
            data,
        ),
    )


def training_curves(histories: Sequence[tuple[str, History]], note: str = "") -> Figure:
    """Validation readings by round, a panel for each training."""
    names = ("utility", "adversary trained along", "probe solved on the spot")
    panels, data = [], []
    for title, history in histories:
        rounds = _evaluated(history)
        values = [one for _, *readings in rounds for one in readings]
        x = Axis.over("round", (at for at, *_ in rounds), percent=False)
        plot = Plot(title, f"Validation readings of {len(rounds)} rounds, in percent.", x, Axis.over("", values))
        for series, name in enumerate(names):
            curve = [(at, one) for at, *readings in rounds if (one := readings[series]) is not None]
            plot.line(series, curve)
            for at, last in curve[-1:]:
                plot.point(series, at, last, f"{name} {percent(last)} in round {at:g}")
        panels.append(plot.svg())
        data += [[title, plain(at), *map(percent, readings)] for at, *readings in rounds]
    heads = [*_names("training"), *map(Column, ("round", *names))]
    return Figure(
        "Training curves",
        "On the validation part, in percent, the last reading marked. A probe above the adversary means that the"
        f" adversary has not kept up with the encoder. {note}".rstrip(),
        panels,
        [(swatch(i, "line"), name) for i, name in enumerate(names)],
        Table("Training curves, in percent", heads, data),
    )


def maps(title: str, places: Sequence[Points], caption: str) -> Figure:
    """Embeddings in two dimensions, coloured and shaped by the secret class."""
    panels, data, seen = [], [], dict[int, str]()
    for one in places:
        lines = zip(one.x, one.y, one.classes, strict=True)
        known = [(x, y, c) for x, y, c in lines if x is not None and y is not None]
        known = known[:: max(1, math.ceil(len(known) / MOST_POINTS))]
        plot = Plot(one.title, f"{len(known)} of {len(one.x)} points, by class.", size=(WIDTH, MAP_HEIGHT))
        across = _stretch([x for x, *_ in known], 18, WIDTH - 22)
        down = _stretch([y for _, y, _ in known], MAP_HEIGHT - 18, 36)
        for c in sorted({c for *_, c in known}):
            name = seen.setdefault(c, one.names[c] if 0 <= c < len(one.names) else f"class {c}")
            xs, ys = [x for x, _, own in known if own == c], [y for _, y, own in known if own == c]
            plot.cloud(c, zip(map(across, xs), map(down, ys), strict=True), name)
            data.append([one.title, name, str(len(xs)), _middle(xs), _middle(ys)])
        panels.append(plot.svg())
    heads = [*_names("map", "class"), *map(Column, ("points", "x: mean ± deviation", "y: mean ± deviation"))]
    legend = [(swatch(c, "point"), name) for c, name in sorted(seen.items())]
    return Figure(title, caption, panels, legend, Table(f"{title}: where each class lies", heads, data))


def attack_chart(audit: Audit, controls: Sequence[tuple[str, Attack]]) -> Figure:
    """A dot and an interval for every attack and the best of every control, with lines at guessing and the floor."""
    found = sorted(audit.attacks, key=lambda one: -(one.reading.value if one.reading else -1.0))
    found.sort(key=_holds_more)
    best = audit.strongest.name
    names = [f"★ {one.name}" if one.name == best else one.name for one in found]
    shown = [(name, one, 1 if _holds_more(one) else 0) for name, one in zip(names, found, strict=True)]
    shown += [(f"control: {name}", one, 2) for name, one in controls]
    readings = [(name, within(one.reading), series) for name, one, series in shown if one.reading is not None]
    ends = [end for _, one, _ in readings for end in (one.low, one.high)]
    floor = None if audit.floor is None else audit.floor.value
    x = Axis.over(metric_name(audit.strongest.metric), [*ends, audit.chance, floor])
    told = f"{len(audit.attacks)} attacks on the embeddings and the best on each of {len(controls)} controls"
    size = (WIDTH, 70 + ROW_HEIGHT * len(readings))
    plot = Plot("Attacks and controls", f"{told}, each with its 95 % interval.", x, size=size)
    plot.rule("chance", audit.chance, across=False)
    plot.rule("floor", floor, across=False)
    for i, (name, one, series) in enumerate(readings):
        y = 38 + ROW_HEIGHT * i
        plot.text(plot.left, y, f"{name} {percent(one.value)}", "name")
        plot.line(series, [(one.low, y + 9), (one.high, y + 9)], "span")
        plot.point(series, one.value, y + 9, f"{name} {interval(one)}")
    data = [
        [name, one.name if series == 2 else MISSING, interval(one.reading), percent(one.validation)]
        for name, one, series in shown
    ]
    heads = [
        *_names("attack or control", "best attack on the control"),
        Column("reading [95 % interval]"),
        Column("on the validation part"),
    ]
    kinds = ("on the embeddings", "on the embeddings with a graph or the features", "on a control")
    present = {series for *_, series in readings}
    legend = [(swatch(i, "point"), kind) for i, kind in enumerate(kinds) if i in present]
    return Figure(
        "Every attack",
        f"Readings of {audit.secret} on the test part, in percent, with 95 % intervals. ★ is the headline: chosen on"
        " the validation part, among the attacks on the embeddings alone.",
        [plot.svg()],
        [*legend, CHANCE, *([] if floor is None else [FLOOR])],
        Table("Every attack, in percent", heads, data),
    )


def level_name(rows: Sequence[Row]) -> str:
    """The head of a column of trade-offs, and of epsilon where there are peers."""
    return "λ" if all(row.epsilon is None for row in rows) else "λ or ε"


def level_in_column(row: Row) -> str:
    """What stands in that column."""
    return plain(row.tradeoff) if row.epsilon is None else row.level


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of (leak, utility) those that no other beats in both, from the least leak on."""
    best: list[tuple[float, float]] = []
    for leak, utility in sorted(set(points), key=lambda point: (point[0], -point[1])):
        if not best or utility > best[-1][1]:
            best.append((leak, utility))
    return best


def within(reading: Interval) -> Interval:
    """Clipped to what a share can be: an interval over few seeds may go beyond."""
    return Interval(reading.value, max(reading.low, 0.0), min(reading.high, 1.0))


def _holds_more(attack: Attack) -> bool:
    """Whether an attack holds more than the embeddings."""
    return not {"graph", "features", "known links"}.isdisjoint(attack.needs)


def _evaluated(history: History) -> list[tuple[float, float | None, float | None, float | None]]:
    """The rounds that were evaluated, thinned evenly, the last one kept."""
    lines = zip(history.round, history.utility, history.adversary, history.probe, strict=True)
    found = [(at, u, a, p) for at, u, a, p in lines if at is not None and (u, a, p) != (None, None, None)]
    found.sort(key=lambda line: line[0])
    return found[::-1][:: max(1, math.ceil(len(found) / MOST_ROUNDS))][::-1]


def _stretch(values: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    """From the range of `values` to that of the picture."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return lambda value: start + (end - start) * ((value - low) / (high - low) if high > low else 0.5)


def _middle(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.3g} ± {statistics.pstdev(values):.2g}"


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _span(readings: Iterable[Interval | None]) -> str:
    known = [one.value for one in readings if one is not None]
    return f"from {percent(min(known))} to {percent(max(known))}" if known else "unknown"


def _names(*names: str) -> list[Column]:
    return [Column(names[0], "name"), *(Column(name, "text") for name in names[1:])]
