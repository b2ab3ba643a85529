"""The charts, each with its numbers as a table."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count

from markupsafe import Markup

from graphveil.formats import Interval
from graphveil.formats.audit import Attack, AuditRecord, Map, Plane
from graphveil.formats.experiment import History, OwnAttacks, Row
from graphveil.reporting.parts import (
    MISSING,
    Column,
    Figure,
    Table,
    interval,
    metric_name,
    percent,
    plain,
    plus_minus,
)
from graphveil.reporting.svg import WIDTH, Axis, Plot, swatch
from graphveil.target import Target

MAP_HEIGHT = 300.0
MOST_POINTS = 600
MOST_ROUNDS = 60
ROW_HEIGHT = 27.0
CHANCE = (swatch(0, "chance"), "chance level")
PROTOCOL = " The paper's points follow its own protocol."
PAPER = 4
"""The series of the paper's own points, and of fronts."""


@dataclass(frozen=True)
class Picture:
    """One plane of a map, with a title."""

    title: str
    plane: Plane
    map: Map


def tradeoff_curves(variant: str, rows: Sequence[Row], names: Sequence[str]) -> Figure:
    """Utility and leak over lambda, with a panel for each data set and encoder; `names` are of the three curves."""
    rows = [row for row in rows if row.tradeoff is not None]
    of_links = all(Target.of(row.secret).is_links for row in rows)
    shown = [within(one) for row in rows for one in (row.utility, row.protocol, row.fresh)]
    ends = [end for one in shown for end in (one.low, one.high)]
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
            known = [(row.tradeoff or 0.0, one) for row, one in zip(these, column, strict=True)]
            plot.band(series, [(at, within(one).low, within(one).high) for at, one in known if one.half])
            plot.line(series, [(at, one.value) for at, one in known])
            for at, one in known:
                plot.point(series, at, one.value, f"{name} {plus_minus(one)} at λ {at:g}")
        panels.append(plot.svg())
    heads = [*_names("data set", "encoder"), Column("λ"), *map(Column, names), Column("chance level")]
    heads.append(Column(floor_name(of_links)))
    data = [
        [row.dataset, row.encoder, plain(row.tradeoff)]
        + [interval(one) for one in (row.utility, row.protocol, row.fresh)]
        + [percent(row.chance), percent(row.floor)]
        for row in rows
    ]
    intervals = ", with 95 % intervals over seeds" if any(one.half for one in shown) else ""
    return Figure(
        f"Trade-off curves: {variant}",
        f"In percent{intervals}. Where the strongest attack is far above the {names[1]}, that attack underestimates the"
        " leak.",
        panels,
        [*((swatch(i, "line"), name) for i, name in enumerate(names)), CHANCE, _floor(of_links)],
        Table("Trade-off curves, in percent", heads, data),
    )


def utility_against_leak(rows: Sequence[Row], utility: str, secret: str) -> Figure:
    """Each row as a point, with a panel for each data set and its Pareto front."""
    variants = dict.fromkeys(row.variant for row in rows)
    series = dict(zip(variants, (i for i in count() if i != PAPER), strict=False))
    known = [(row, row.fresh.value, row.utility.value) for row in rows]
    papers = [row.paper for row in rows if row.paper is not None]
    compared = bool(papers)
    leaks = chain((leak for _, leak, _ in known), (p[1] for p in papers), (row.chance for row in rows))
    x = Axis.over(f"strongest attack on {secret}", leaks)
    y = Axis.over("", chain((kept for *_, kept in known), (p[0] for p in papers)))
    panels, data = [], []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        here = [(row, leak, kept) for row, leak, kept in known if row.dataset == dataset]
        best = front([(leak, kept) for _, leak, kept in here])
        plot = Plot(dataset, f"Utility against leak of {len(here)} cells, {len(best)} of them on the front.", x, y)
        plot.rule("chance", _mean(row.chance for row, *_ in here), across=False)
        plot.line(PAPER, best, "front")
        for row, leak, kept in here:
            name = f"{row.variant} · {row.encoder} · {level(row)}"
            text = f"{name}: {utility} {percent(kept)}, {secret} {percent(leak)}"
            plot.point(series[row.variant], leak, kept, text)
            cells = [row.variant, level_in_column(row), percent(kept), percent(leak)]
            cells += map(percent, row.paper or (None, None)) if compared else ()
            data.append([dataset, row.encoder, *cells, "yes" if (leak, kept) in best else "no"])
        for paper in dict.fromkeys(row.paper for row in rows if row.dataset == dataset):
            if paper is not None:
                text = f"the paper: {utility} {percent(paper[0])}, {secret} {percent(paper[1])}"
                plot.point(PAPER, paper[1], paper[0], text, "paper")
        panels.append(plot.svg())
    printed = ("utility: paper", "secret: paper") if compared else ()
    numbers = (level_name(rows), "utility", "strongest attack", *printed, "on the front")
    legend = [(swatch(i, "point"), variant) for variant, i in series.items()]
    legend += [(swatch(PAPER, "paper"), "as printed in the paper")] if compared else []
    return Figure(
        "Utility against leak",
        f"Higher is better for the utility ({utility}), further left is better for the secret ({secret}). The Pareto"
        f" front joins the cells that no other cell beats in both.{PROTOCOL if compared else ''}",
        panels,
        [*legend, (swatch(PAPER, "front"), "Pareto front"), CHANCE],
        Table(
            "Utility against leak, in percent",
            [*_names("data set", "encoder", "variant"), *map(Column, numbers)],
            data,
        ),
    )


def training_curves(histories: Sequence[tuple[str, History]], attacks: OwnAttacks, note: str = "") -> Figure:
    """Validation results by round, with a panel for each training; `attacks` names two of the curves."""
    names = ("utility", *attacks)
    lag = (
        "A probe above the adversary means that the adversary lags behind the encoder." if attacks.is_adversary else ""
    )
    panels, data = [], []
    for title, history in histories:
        rounds = _evaluated(history)
        values = [one for _, *results in rounds for one in results]
        x = Axis.over("round", (at for at, *_ in rounds), percent=False)
        plot = Plot(title, f"Validation results of {len(rounds)} rounds, in percent.", x, Axis.over("", values))
        for series, name in enumerate(names):
            curve = [(at, one) for at, *results in rounds if (one := results[series]) is not None]
            plot.line(series, curve)
            for at, last in curve[-1:]:
                plot.point(series, at, last, f"{name} {percent(last)} in round {at:g}")
        panels.append(plot.svg())
        data += [[title, plain(at), *map(percent, results)] for at, *results in rounds]
    heads = [*_names("training"), *map(Column, ("round", *names))]
    return Figure(
        "Training curves",
        " ".join(filter(None, ["On the validation part, in percent; the last evaluated round is marked.", lag, note])),
        panels,
        [(swatch(i, "line"), name) for i, name in enumerate(names)],
        Table("Training curves, in percent", heads, data),
    )


def maps(title: str, pictures: Sequence[Picture], caption: str) -> Figure:
    """Embeddings in two dimensions, coloured and shaped by the secret class."""
    panels, data, seen = [], [], dict[int, str]()
    for one in pictures:
        known = list(zip(one.plane.x, one.plane.y, one.map.classes, strict=True))
        known, names = known[:: max(1, math.ceil(len(known) / MOST_POINTS))], one.map.names
        plot = Plot(one.title, f"{len(known)} of {len(one.plane.x)} points, by class.", size=(WIDTH, MAP_HEIGHT))
        across = _stretch([x for x, *_ in known], 18, WIDTH - 22)
        down = _stretch([y for _, y, _ in known], MAP_HEIGHT - 18, 36)
        for c in sorted({c for *_, c in known}):
            name = seen.setdefault(c, names[c] if c < len(names) else f"class {c}")
            xs, ys = [x for x, _, own in known if own == c], [y for _, y, own in known if own == c]
            plot.cloud(c, zip(map(across, xs), map(down, ys), strict=True), name)
            data.append([one.title, name, str(len(xs)), _middle(xs), _middle(ys)])
        panels.append(plot.svg())
    heads = [*_names("map", "class"), *map(Column, ("points", "x: mean ± deviation", "y: mean ± deviation"))]
    legend = [(swatch(c, "point"), name) for c, name in sorted(seen.items())]
    return Figure(title, caption, panels, legend, Table(f"{title}: position of each class", heads, data))


def scale_chart(audit: AuditRecord) -> Figure:
    """The leak between its reference and the unprotected encoder, beside the utility on the same scale."""
    scale, utility, metric = audit.scale, audit.utility, metric_name(audit.strongest.metric)
    end = "a perfect attack" if scale.unprotected is None else "unprotected encoder"
    leak = _bars(
        f"Leak of {audit.secret}: {percent(scale.size)} % of the way",
        metric,
        scale.reference,
        [("this release", within(audit.strongest)), (end, Interval(scale.unprotected or 1.0))],
    )
    heads = [*_names("what"), Column(scale.compared_with), Column("this release"), Column("unprotected")]
    data = [[f"strongest attack, {metric}", *map(percent, (scale.reference, audit.strongest.value, scale.unprotected))]]
    plots = [leak]
    if utility is not None:
        values = [("this release", Interval(utility.value))]
        values += [] if utility.unprotected is None else [("unprotected encoder", Interval(utility.unprotected))]
        plots.append(_bars(f"Utility: {utility.name}", Target.of(utility.name).metric_name, utility.chance, values))
        row = [utility.chance, utility.value, utility.unprotected]
        data.append([f"utility, {utility.name}", *map(percent, row)])
    return Figure(
        "The size of the leak and the price",
        f"Bars start at the {scale.compared_with} for the leak, and at the chance level for the utility. A short bar on"
        " the left and a long bar on the right are good.",
        [plot.svg() for plot in plots],
        [],
        Table("Leak and utility, in percent", heads, data),
    )


def _bars(title: str, metric: str, start: float, values: Sequence[tuple[str, Interval]]) -> Plot:
    """Horizontal bars from `start`, with intervals."""
    ends = [end for _, one in values for end in (one.low, one.high)]
    text = ", ".join(f"{name} {percent(one.value)} %" for name, one in values)
    x = Axis.over(metric, [start, *ends])
    plot = Plot(title, f"From {percent(start)} %: {text}.", x, size=(WIDTH, 70 + ROW_HEIGHT * len(values)))
    plot.rule("chance", start, across=False)
    for i, (name, one) in enumerate(values):
        y = 38 + ROW_HEIGHT * i
        plot.text(plot.left, y, f"{name} {interval(one)}", "name")
        plot.line(2 * i, [(start, y + 9), (one.value, y + 9)], "bar")
        plot.line(2 * i, [(one.low, y + 9), (one.high, y + 9)], "span")
        plot.point(2 * i, one.value, y + 9, f"{name} {interval(one)}")
    return plot


def attack_chart(audit: AuditRecord, controls: Sequence[tuple[str, Attack]]) -> Figure:
    """Value and interval of every attack and of the strongest on each control, with the chance level and the floor."""
    found = sorted(audit.attacks, key=lambda one: -one.value)
    found.sort(key=_holds_more)
    best, metric = audit.strongest.attack, metric_name(audit.strongest.metric)
    names = [f"★ {one.attack}" if one.attack == best else one.attack for one in found]
    shown = [(name, one, 1 if _holds_more(one) else 0) for name, one in zip(names, found, strict=True)]
    shown += [(f"control: {name}", one, 2) for name, one in controls]
    drawn = [(name, within(one), series) for name, one, series in shown]
    ends = [end for _, one, _ in drawn for end in (one.low, one.high)]
    floor, of_links = None if audit.floor is None else audit.floor.value, audit.strongest.metric == "auc"
    x = Axis.over(metric, [*ends, audit.chance, floor])
    text = f"{len(audit.attacks)} attacks on the embeddings and the strongest on each of {len(controls)} controls"
    size = (WIDTH, 70 + ROW_HEIGHT * len(drawn))
    plot = Plot("Attacks and controls", f"{text}, each with its 95 % interval.", x, size=size)
    plot.rule("chance", audit.chance, across=False)
    plot.rule("floor", floor, across=False)
    for i, (name, one, series) in enumerate(drawn):
        y = 38 + ROW_HEIGHT * i
        plot.text(plot.left, y, f"{name} {percent(one.value)}", "name")
        plot.line(series, [(one.low, y + 9), (one.high, y + 9)], "span")
        plot.point(series, one.value, y + 9, f"{name} {interval(one)}")
    data = [
        [name, one.attack if series == 2 else MISSING, interval(one), percent(one.validation)]
        for name, one, series in shown
    ]
    heads = [
        *_names("attack or control", "strongest attack on the control"),
        Column(f"{metric} [95 % interval]"),
        Column("held-out"),
    ]
    kinds = ("on the embeddings", "on the embeddings with a graph or the features", "on a control")
    present = {series for *_, series in drawn}
    legend = [(swatch(i, "point"), kind) for i, kind in enumerate(kinds) if i in present]
    return Figure(
        "Every attack",
        f"Attack {metric} for {audit.secret} on the test part, in percent, with 95 % intervals. ★ marks the strongest"
        " attack, chosen on held-out examples among the attacks on the embeddings alone.",
        [plot.svg()],
        [*legend, CHANCE, *([] if floor is None else [_floor(of_links)])],
        Table("Every attack, in percent", heads, data),
    )


def floor_name(of_links: bool) -> str:
    """The name of what attacks reach without z."""
    return "floor" if of_links else "public graph without z"


def level(row: Row) -> str:
    """The trade-off or, of a peer, epsilon, with its symbol."""
    return f"λ {plain(row.tradeoff)}" if row.epsilon is None else f"ε {plain(row.epsilon)}"


def level_name(rows: Sequence[Row]) -> str:
    """The heading of the column of `level_in_column`."""
    return "λ" if all(row.epsilon is None for row in rows) else "λ or ε"


def level_in_column(row: Row) -> str:
    """The trade-off without its symbol or, of a peer, epsilon with its symbol."""
    return plain(row.tradeoff) if row.epsilon is None else level(row)


def _floor(of_links: bool) -> tuple[Markup, str]:
    """The entry of the legend for what attacks reach without z."""
    return swatch(0, "floor"), floor_name(of_links) + (": best rule on pairs of true classes" if of_links else "")


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The Pareto front of points (leak, utility), in order of the leak."""
    best: list[tuple[float, float]] = []
    for leak, utility in sorted(set(points), key=lambda point: (point[0], -point[1])):
        if not best or utility > best[-1][1]:
            best.append((leak, utility))
    return best


def within(one: Interval) -> Interval:
    """Clip an interval to [0, 1]; an interval over few seeds may be wider."""
    return Interval(one.value, (max(one.low, 0.0), min(one.high, 1.0)))


def _holds_more(attack: Attack) -> bool:
    """Whether the attacker holds more than the embeddings."""
    return not {"graph", "features", "known links"}.isdisjoint(attack.needs)


def _evaluated(history: History) -> list[tuple[float, float | None, float | None, float | None]]:
    """The evaluated rounds, at most `MOST_ROUNDS` of them, with the last one."""
    lines = zip(history.round, history.utility, history.adversary, history.probe, strict=True)
    found = [(at, u, a, p) for at, u, a, p in lines if (u, a, p) != (None, None, None)]
    found.sort(key=lambda line: line[0])
    return found[::-1][:: max(1, math.ceil(len(found) / MOST_ROUNDS))][::-1]


def _stretch(values: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    """The linear map from the range of `values` to [start, end]."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return lambda value: start + (end - start) * ((value - low) / (high - low) if high > low else 0.5)


def _middle(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.3g} ± {statistics.pstdev(values):.2g}"


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _span(results: Sequence[Interval]) -> str:
    values = [one.value for one in results]
    return f"from {percent(min(values))} to {percent(max(values))}"


def _names(*names: str) -> list[Column]:
    return [Column(names[0], "name"), *(Column(name, "text") for name in names[1:])]
