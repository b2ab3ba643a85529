"""The charts, each with its numbers as a table."""

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import chain, count

from markupsafe import Markup

from graphveil.formats import Interval
from graphveil.formats.experiment import History, OwnAttacks, Row, front
from graphveil.reporting.parts import (
    Column,
    Figure,
    Table,
    interval,
    percent,
    plain,
    plus_minus,
)
from graphveil.reporting.svg import Axis, Plot, swatch
from graphveil.target import Target

MOST_ROUNDS = 60
CHANCE = (swatch(0, "chance"), "chance level")
PROTOCOL = " The paper's points follow its own protocol."
PAPER = 4
"""The series of the paper's own points, and of fronts."""


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
        [*((swatch(i, "line"), name) for i, name in enumerate(names)), CHANCE, floor_legend(of_links)],
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
        f" front joins the cells that no other cell beats in both utility and leak.{PROTOCOL if compared else ''}",
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


def floor_legend(of_links: bool) -> tuple[Markup, str]:
    """The entry of the legend for what attacks reach without z."""
    return swatch(0, "floor"), floor_name(of_links) + (": best rule on pairs of true classes" if of_links else "")


def within(one: Interval) -> Interval:
    """Clip an interval to [0, 1]; an interval over few seeds may be wider."""
    return Interval(one.value, (max(one.low, 0.0), min(one.high, 1.0)))


def _evaluated(history: History) -> list[tuple[float, float | None, float | None, float | None]]:
    """The evaluated rounds, at most `MOST_ROUNDS` of them, with the last one."""
    lines = zip(history.round, history.utility, history.adversary, history.probe, strict=True)
    found = [(at, u, a, p) for at, u, a, p in lines if (u, a, p) != (None, None, None)]
    found.sort(key=lambda line: line[0])
    return found[::-1][:: max(1, math.ceil(len(found) / MOST_ROUNDS))][::-1]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _span(results: Sequence[Interval]) -> str:
    values = [one.value for one in results]
    return f"from {percent(min(values))} to {percent(max(values))}"


def _names(*names: str) -> list[Column]:
    return [Column(names[0], "name"), *(Column(name, "text") for name in names[1:])]
