"""A small SVG writer: axes with round ticks, lines with bands, markers, rules.

The style sheet sets colours, dashes and sizes by the classes `s0`, `s1`, ... of the series, so one picture serves dark,
light and print. `Markup.format` escapes every text.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from markupsafe import Markup

from graphveil.reporting.parts import shortened

COLOURS = 8
LEFT, RIGHT, TOP, BOTTOM = 40.0, 18.0, 26.0, 36.0
WIDTH, HEIGHT = 360.0, 240.0
LONGEST = 52
"""Characters of a text that fit into the width of a picture."""


def _around(*quarter: tuple[float, float]) -> Iterator[tuple[float, float]]:
    """All four quarters of a shape, from its first one."""
    for x, y in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        yield from ((x * a - y * b, y * a + x * b) for a, b in quarter)


_SHAPES: Sequence[Sequence[tuple[float, float]]] = (
    ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    ((0, -1.3), (1.25, 0.95), (-1.25, 0.95)),
    ((0, -1.45), (1.45, 0), (0, 1.45), (-1.45, 0)),
    ((0, 1.3), (1.25, -0.95), (-1.25, -0.95)),
    tuple(_around((-0.45, -1.35), (0.45, -1.35), (0.45, -0.45))),
    tuple(_around((-1.2, -0.6), (-0.6, -1.2), (0, -0.6))),
)
"""Corners of a square, triangle, diamond, inverted triangle, plus and cross; the first shape is a disc."""


@dataclass(frozen=True)
class Axis:
    """A range between round numbers, with its ticks."""

    label: str
    ticks: Sequence[float]
    percent: bool = True

    @classmethod
    def over(cls, label: str, values: Iterable[float | None], percent: bool = True) -> "Axis":
        """The shortest axis with round ends that covers all `values`."""
        known = [value for value in values if value is not None] or [0.0, 1.0]
        return cls(label, ticks(min(known), max(known)), percent)

    def words(self, tick: float) -> str:
        return f"{100 * tick:g}%" if self.percent else f"{tick:g}"

    def place(self, value: float) -> float:
        """The position from 0 (lower end) to 1 (upper end); values outside are clipped."""
        low, high = self.ticks[0], self.ticks[-1]
        return min(1.0, max(0.0, (value - low) / (high - low)))


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """About `about` round numbers, the first at or below `low` and the last at or above `high`."""
    if high - low <= 1e-9 * max(1.0, abs(low), abs(high)):
        low, high = low - 0.05 * max(1.0, abs(low)), high + 0.05 * max(1.0, abs(high))
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-6), math.ceil(high / step - 1e-6)
    return [round(k * step, 12) for k in range(first, last + 1)]


class Plot:
    """A picture to add marks to, in the units of its axes; without an axis, in units of the picture."""

    def __init__(
        self,
        title: str,
        description: str,
        x: Axis | None = None,
        y: Axis | None = None,
        size: tuple[float, float] = (WIDTH, HEIGHT),
    ) -> None:
        self.title, self.description = title, description
        self.x, self.y, self.size = x, y, size
        self.left = 12.0 if y is None else LEFT
        self.bottom = 8.0 if x is None else BOTTOM
        self.marks: list[Markup] = []

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The position of a point in the picture."""
        width, height = self.size
        if self.x is not None:
            x = self.left + self.x.place(x) * (width - self.left - RIGHT)
        if self.y is not None:
            y = height - self.bottom - self.y.place(y) * (height - TOP - self.bottom)
        return x, y

    def line(self, series: int, points: Sequence[tuple[float, float | None]], kind: str = "line") -> None:
        """A line with gaps where a value is missing."""
        path, pen = [], "M"
        for x, y in points:
            if y is None:
                pen = "M"
                continue
            path.append(pen + _pair(*self.at(x, y)))
            pen = "L"
        self.marks.append(Markup('<path class="{} {}" d="{}"/>').format(kind, _colour(series), "".join(path)))

    def band(self, series: int, points: Sequence[tuple[float, float, float]]) -> None:
        """The area between low and high, given as (x, low, high)."""
        if not points:
            return
        corners = [self.at(x, low) for x, low, _ in points] + [self.at(x, high) for x, _, high in reversed(points)]
        self.marks.append(Markup('<path class="band {}" d="{}"/>').format(_colour(series), _polygon(corners)))

    def point(self, series: int, x: float, y: float, title: str, kind: str = "point", step: int | None = None) -> None:
        """A marker with a tooltip; `step` is its number on a page with a slider."""
        d = marker(series, *self.at(x, y), 3.6 if step is None else 5)
        number = Markup("") if step is None else Markup(' data-step="{}"').format(step)
        self.marks.append(
            Markup('<path class="{} {}" d="{}"{}><title>{}</title></path>').format(
                kind, _colour(series), d, number, title
            )
        )

    def cloud(self, series: int, places: Iterable[tuple[float, float]], title: str) -> None:
        """Many markers of one series as a single path, in units of the axes."""
        d = "".join(marker(series, *self.at(x, y), 2.2) for x, y in places)
        self.marks.append(
            Markup('<path class="cloud {}" d="{}"><title>{}</title></path>').format(_colour(series), d, title)
        )

    def boxes(self, series: int, boxes: Iterable[tuple[float, float, float, float]]) -> None:
        """Filled boxes of one series as a single path, each as (left, top, width, height) in units of the picture."""
        d = "".join(f"M{_pair(x, y)}h{w:.1f}v{h:.1f}h{-w:.1f}z" for x, y, w, h in boxes)
        self.marks.append(Markup('<path class="cloud {}" d="{}"/>').format(_colour(series), d))

    def column(self, left: float, top: float, width: float, height: float, title: str) -> None:
        """The outline of a box with a tooltip, in units of the picture."""
        shape = Markup('<rect class="column" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">')
        tip = Markup("<title>{}</title></rect>").format(title)
        self.marks.append(shape.format(left, top, width, height) + tip)

    def rule(self, kind: str, value: float | None, across: bool = True) -> None:
        """A line across the picture at a value of y, or of x if not `across`; `kind` is "chance" or "floor"."""
        if value is None:
            return
        x0, y0, x1, y1 = self._frame()
        x, y = self.at(value, value)
        d = f"M{_pair(x0, y)}L{_pair(x1, y)}" if across else f"M{_pair(x, y0)}L{_pair(x, y1)}"
        self.marks.append(Markup('<path class="rule {}" d="{}"/>').format(kind, d))

    def text(self, x: float, y: float, words: str, kind: str) -> None:
        """A text at a position of the picture."""
        self.marks.append(_text(x, y, shortened(words, LONGEST), kind))

    def svg(self) -> Markup:
        """The picture, with a title and a description for screen readers."""
        width, height = self.size
        parts = [
            Markup('<svg viewBox="0 0 {:g} {:g}" role="img">').format(width, height),
            Markup("<title>{}</title><desc>{}</desc>").format(self.title, self.description),
            *self._axes(),
            *self.marks,
            _text(self.left, 14, shortened(self.title, LONGEST), "head"),
            Markup("</svg>"),
        ]
        return Markup("").join(parts)

    def _frame(self) -> tuple[float, float, float, float]:
        return self.left, TOP, self.size[0] - RIGHT, self.size[1] - self.bottom

    def _axes(self) -> list[Markup]:
        x0, y0, x1, y1 = self._frame()
        found = []
        for tick in self.y.ticks if self.y is not None else ():
            _, y = self.at(0, tick)
            found.append(Markup('<path class="grid" d="M{}L{}"/>').format(_pair(x0, y), _pair(x1, y)))
            found.append(_text(x0 - 5, y + 4, self.y.words(tick) if self.y else "", "tick end"))
        for tick in self.x.ticks if self.x is not None else ():
            x, _ = self.at(tick, 0)
            found.append(Markup('<path class="grid" d="M{}L{}"/>').format(_pair(x, y0), _pair(x, y1)))
            found.append(_text(x, y1 + 14, self.x.words(tick) if self.x else "", "tick middle"))
        if self.x is not None:
            found.append(_text((x0 + x1) / 2, y1 + 29, self.x.label, "label middle"))
        if self.x is None and self.y is None:
            size = (x1 - x0, y1 - y0)
            found.append(Markup('<rect class="frame" x="{}" y="{}" width="{}" height="{}"/>').format(x0, y0, *size))
        return found


def marker(series: int, x: float, y: float, size: float) -> str:
    """The outline of the marker of a series around a position."""
    (right, down), rest = _outline(series % (len(_SHAPES) + 1), size)
    return f"M{_pair(x + right, y + down)}{rest}"


def swatch(series: int, kind: str) -> Markup:
    """A series in the legend: a `line` with its marker, a `point`, or a rule by its name."""
    line, shape = Markup('<path class="{} {}" d="M1 8H31"/>'), Markup('<path class="{} {}" d="{}"/>')
    parts = []
    if kind in ("line", "front"):
        parts.append(line.format(kind, _colour(series)))
    if kind in ("chance", "floor", "limit", "end"):
        parts.append(line.format("rule", kind))
    if kind in ("line", "point", "paper"):
        parts.append(shape.format("paper" if kind == "paper" else "point", _colour(series), marker(series, 16, 8, 4)))
    return Markup('<svg class="swatch" viewBox="0 0 32 16" aria-hidden="true">{}</svg>').format(Markup("").join(parts))


@cache
def _outline(shape: int, size: float) -> tuple[tuple[float, float], str]:
    """The start of a shape relative to its centre, and the rest of its path, which does not depend on the position."""
    if shape == 0:
        r = 1.15 * size
        return (-r, 0.0), f"a{r:.1f} {r:.1f} 0 1 0 {2 * r:.1f} 0a{r:.1f} {r:.1f} 0 1 0 {-2 * r:.1f} 0"
    corners = [(size * a, size * b) for a, b in _SHAPES[shape - 1]]
    steps = [_pair(x1 - x0, y1 - y0) for (x0, y0), (x1, y1) in pairwise(corners)]
    return corners[0], f"l{' '.join(steps)}z"


def _colour(series: int) -> str:
    return f"s{series % COLOURS}"


def _text(x: float, y: float, words: str, kind: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" class="{}">{}</text>').format(x, y, kind, words)


def _polygon(corners: Iterable[tuple[float, float]]) -> str:
    return f"M{'L'.join(_pair(*corner) for corner in corners)}Z"


def _pair(x: float, y: float) -> str:
    return f"{x:.1f} {y:.1f}"
