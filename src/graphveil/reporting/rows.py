"""Horizontal charts that use the full width: rows with a name, a track and a value, and a gauge.

Positions are percentages of the track, so text keeps its size on a phone and on a wide screen. Names and values are
text of the page. The style sheet puts names left of the track or, on a narrow screen, above it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from graphveil.formats import Interval
from graphveil.reporting.parts import Column, Figure, Table, at_most, interval, percent
from graphveil.reporting.svg import Axis, marker, swatch

MARGIN = 2.0
"""Percent of the track that is free at each end, for markers."""
CERTIFICATE = 4
"""The series of certificates, whose marker points down at the bar."""


@dataclass(frozen=True)
class Row:
    """One row.

    Args:
        name: left of the track. one: the value to draw. series: its colour and marker. text: the value in words.
        reference: a short line across this row; None for none.
    """

    name: str
    one: Interval
    series: int
    text: str
    reference: float | None = None


def row_chart(title: str, axis: Axis, rows: Sequence[Row], rules: Sequence[tuple[str, float | None]] = ()) -> Markup:
    """Values with their intervals, one in each row.

    Args:
        title: above the rows.
        axis: the axis of all rows; its label is below them.
        rows: the rows from top to bottom.
        rules: lines through all rows, as (kind, value); `kind` is "chance" or "floor".
    """
    back = Markup("").join(_line("grid", _at(axis, tick)) for tick in axis.ticks)
    back += Markup("").join(_line(f"rule {kind}", _at(axis, value)) for kind, value in rules if value is not None)
    drawn = Markup("").join(
        Markup('<span class="row-name">{}</span>{}<span class="row-value">{}</span>').format(
            row.name, _track(back + _reference(axis, row.reference) + _estimate(axis, row.one, row.series)), row.text
        )
        for row in rows
    )
    label = Markup('<span class="row-name"></span>{}<span class="row-value">{}</span>').format(_ticks(axis), axis.label)
    return Markup('<div class="rows" role="group" aria-label="{}"><p class="row-title">{}</p>{}{}</div>').format(
        title, title, drawn, label
    )


@dataclass(frozen=True)
class Gauge:
    """A bar from what is possible without the embeddings to the unprotected encoder, with the value of this release.

    Args:
        title: above the bar. metric: what is measured.
        start: the name and the value of its left end. this: the name and the value of the release.
        end: the name and the value of its right end; None if it is unknown.
        certificate: an upper limit of what is possible, if there is one.
        limit: the highest value to accept, if one was stated.
        tone: "leak", where a short bar is good, or "kept", where a long bar is good.
    """

    title: str
    metric: str
    start: tuple[str, float]
    this: tuple[str, Interval]
    end: tuple[str, float] | None = None
    certificate: float | None = None
    limit: float | None = None
    tone: Literal["leak", "kept"] = "leak"

    def markup(self) -> Markup:
        """The bar, and a legend with all its values."""
        (start, reference), (name, one) = self.start, self.this
        ends = [reference, one.low, one.high, self.certificate, self.limit, self.end[1] if self.end else 1.0]
        known = [value for value in ends if value is not None]
        axis = Axis("", [min(known), max(*known, min(known) + 1e-6)])
        drawn = _bar("way", axis, reference, self.end[1] if self.end else max(known))
        drawn += _bar("bar", axis, reference, max(one.value, reference))
        drawn += _line("rule chance", _at(axis, reference))
        items = [(swatch(0, "chance"), start, f"{percent(reference)} %")]
        if self.limit is not None:
            drawn += _line("rule limit", _at(axis, self.limit))
            items.append((swatch(0, "limit"), "limit", f"{percent(self.limit)} %"))
        if self.certificate is not None:
            drawn += _marker(CERTIFICATE, _at(axis, self.certificate), 5, "12%")
            items.append((swatch(CERTIFICATE, "point"), "certificate", at_most(self.certificate)))
        drawn += _estimate(axis, one, 0, 5)
        items.insert(1, (swatch(0, "point"), name, f"{interval(one)} %"))
        if self.end is not None:
            drawn += _line("rule end", _at(axis, self.end[1]))
            items.append((swatch(0, "end"), self.end[0], f"{percent(self.end[1])} %"))
        legend = Markup("").join(
            Markup("<li>{} {} <strong>{}</strong></li>").format(sign, label, value) for sign, label, value in items
        )
        shape = Markup('<div class="gauge {}" role="group" aria-label="{}"><p class="row-title">{} <span>{}</span></p>')
        head = shape.format(self.tone, self.title, self.title, self.metric)
        return head + _track(drawn) + Markup('<ul class="legend">{}</ul></div>').format(legend)


def gauge_figure(title: str, gauges: Sequence[Gauge]) -> Figure:
    """Gauges side by side."""
    heads = [Column("what", "name"), Column("without embeddings"), Column("value"), Column("certificate")]
    heads += [Column("limit"), Column("right end of the bar")]
    rows = [
        [
            one.title,
            percent(one.start[1]),
            interval(one.this[1]),
            at_most(one.certificate),
            percent(one.limit),
            percent(None if one.end is None else one.end[1]),
        ]
        for one in gauges
    ]
    caption = "A short bar is good for a leak, and a long bar for the utility."
    panels = [one.markup() for one in gauges]
    return Figure(title, caption, panels, [], Table(f"{title}, in percent", heads, rows), layout="pair")


def _track(marks: Markup) -> Markup:
    return Markup('<span class="track" aria-hidden="true"><svg>{}</svg></span>').format(marks)


def _at(axis: Axis, value: float) -> float:
    """The position in percent of the track."""
    return MARGIN + (100 - 2 * MARGIN) * axis.place(value)


def _bar(kind: str, axis: Axis, first: float, second: float) -> Markup:
    """A bar between two values."""
    low, high = sorted((_at(axis, first), _at(axis, second)))
    shape = Markup('<rect class="{}" x="{:.2f}%" y="25%" width="{:.2f}%" height="50%" rx="3"/>')
    return shape.format(kind, low, high - low)


def _line(kind: str, at: float) -> Markup:
    return Markup('<line class="{}" x1="{:.2f}%" x2="{:.2f}%" y1="0" y2="100%"/>').format(kind, at, at)


def _reference(axis: Axis, value: float | None) -> Markup:
    return Markup("") if value is None else _line("rule chance", _at(axis, value))


def _estimate(axis: Axis, one: Interval, series: int, size: float = 4) -> Markup:
    """The interval as a line, and the value as a marker."""
    shape = Markup('<line class="span s{}" x1="{:.2f}%" x2="{:.2f}%" y1="50%" y2="50%"/>')
    line = shape.format(series, _at(axis, one.low), _at(axis, one.high))
    return line + _marker(series, _at(axis, one.value), size)


def _marker(series: int, at: float, size: float, down: str = "50%") -> Markup:
    shape = Markup('<svg class="at" x="{:.2f}%" y="{}"><path class="point s{}" d="{}"/></svg>')
    return shape.format(at, down, series, marker(series, 0, 0, size))


def _ticks(axis: Axis) -> Markup:
    """The numbers of the axis; the first and the last stay inside."""
    sides = ["tick", *["tick middle"] * (len(axis.ticks) - 2), "tick end"]
    texts = (
        Markup('<text class="{}" x="{:.2f}%" y="14">{}</text>').format(side, _at(axis, tick), axis.words(tick))
        for side, tick in zip(sides, axis.ticks, strict=True)
    )
    return _track(Markup("").join(texts))
