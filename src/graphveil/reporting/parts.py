"""The parts of a page, and how its numbers are formatted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Literal

from markupsafe import Markup

from graphveil.formats import Interval
from graphveil.target import METRIC_NAMES

MISSING = "\N{EN DASH}"
MEASURES = {"accuracy": "accuracy", "tpr_minus_fpr": "TPR \N{MINUS SIGN} FPR", "auc": "AUC"}
"""The names of the metrics of groups; TPR minus FPR is 0 at chance and 1 for a perfect attack."""


@dataclass(frozen=True)
class Mark:
    """A verdict as a symbol and a word; the colour repeats them."""

    symbol: str
    text: str
    tone: Literal["good", "bad", "warn", "none"]


@dataclass(frozen=True)
class Column:
    """One column; adjacent columns of the same group share a heading."""

    name: str
    kind: Literal["name", "text", "number"] = "number"
    group: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of texts."""

    kind: ClassVar[str] = "table"
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str | Mark]]
    note: str = ""

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The shared headings and the number of columns of each; empty if no column is in a group."""
        if not any(column.group for column in self.columns):
            return []
        return [(name, len(list(these))) for name, these in groupby(column.group for column in self.columns)]


@dataclass(frozen=True)
class Figure:
    """One or more charts of the same kind, their legend as (swatch, label), and their numbers as a table.

    Args:
        layout: "grid" for pictures side by side, "pair" for two bars, "rows" for charts of the full width.
    """

    kind: ClassVar[str] = "figure"
    title: str
    caption: str
    panels: Sequence[Markup]
    legend: Sequence[tuple[Markup, str]]
    data: Table
    layout: Literal["grid", "pair", "rows"] = "grid"


@dataclass(frozen=True)
class Prose:
    """Sentences, as paragraphs or as a list."""

    kind: ClassVar[str] = "prose"
    sentences: Sequence[str]
    listed: bool = False


@dataclass(frozen=True)
class Plain:
    """A text that is shown unchanged."""

    kind: ClassVar[str] = "plain"
    text: str


@dataclass(frozen=True)
class Fold:
    """Parts that are hidden until a click."""

    kind: ClassVar[str] = "fold"
    title: str
    parts: Sequence["Part"]


@dataclass(frozen=True)
class Step:
    """One point on a slider: its name, its numbers in one line, and the parts that show it."""

    name: str
    text: str
    parts: Sequence["Part"]


@dataclass(frozen=True)
class Explorer:
    """A slider over points of a chart; without scripts, all of them follow each other.

    Args:
        start: the number of the step that is shown first.
    """

    kind: ClassVar[str] = "explorer"
    title: str
    chart: Figure
    steps: Sequence[Step]
    start: int


Part = Table | Figure | Prose | Plain | Fold | Explorer


@dataclass(frozen=True)
class Section:
    """A heading, the parts below it, and what the term in the heading means."""

    title: str
    parts: Sequence[Part]
    about: str = ""


@dataclass(frozen=True)
class Page:
    """A report.

    Args:
        answer: sentences at the top. facts: (name, value, explanation), the most important numbers.
    """

    title: str
    answer: Sequence[str]
    verdict: Mark | None
    facts: Sequence[tuple[str, str, str]]
    summary: Sequence[Part]
    sections: Sequence[Section]

    @property
    def is_interactive(self) -> bool:
        """Whether it has a slider, and so a script."""
        return any(isinstance(part, Explorer) for section in self.sections for part in section.parts)


def percent(share: float | None) -> str:
    """A share in percent with one decimal, without the percent sign."""
    return MISSING if share is None else f"{100 * share:.1f}"


def at_most(share: float | None) -> str:
    """An upper limit in percent, rounded up so that it stays a limit."""
    return MISSING if share is None else f"≤ {min(100.0, math.ceil(1000 * share - 1e-9) / 10):.1f} %"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    if difference is None:
        return MISSING
    return f"{100 * difference:+.1f}".replace("-", "\N{MINUS SIGN}")


def compared(difference: float, reference: str) -> str:
    """A difference of shares in words, such as `4.7 points above it`."""
    return f"{100 * abs(difference):.1f} points {'below' if difference < 0 else 'above'} {reference}"


def plus_minus(one: Interval | None) -> str:
    """Format as 85.3 ± 1.2, or as the value alone if there is no interval."""
    if one is None:
        return MISSING
    return f"{percent(one.value)} ± {percent(one.half)}" if one.half else percent(one.value)


def interval(one: Interval | None) -> str:
    """Format as 85.3 [84.1, 86.5], or as the value alone if there is no interval."""
    if one is None:
        return MISSING
    ends = f" [{percent(one.low)}, {percent(one.high)}]" if one.half else ""
    return percent(one.value) + ends


def plain(number: float | None) -> str:
    """A number with at most six significant digits."""
    return MISSING if number is None else f"{number:g}"


def metric_name(metric: str) -> str:
    """The name of a metric for people."""
    return METRIC_NAMES.get(metric, metric)


def shortened(text: str, most: int) -> str:
    """Cut a text that is too long for its place."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
