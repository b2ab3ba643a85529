"""What a page is made of, and how its numbers are written."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Literal

from markupsafe import Markup

from graphveil.reporting.checks import Interval

MISSING = "\N{EN DASH}"
MEASURES = {"accuracy": "accuracy", "tpr_minus_fpr": "TPR \N{MINUS SIGN} FPR", "auc": "AUC"}
"""Of groups; the second is 0 for guessing and 1 for a perfect attack."""


@dataclass(frozen=True)
class Mark:
    """A judgement, told by a symbol, a word and, least of all, a colour."""

    symbol: str
    text: str
    tone: Literal["good", "bad", "warn", "none"]


@dataclass(frozen=True)
class Column:
    """One column; neighbours of the same group share a heading."""

    name: str
    kind: Literal["name", "text", "number"] = "number"
    group: str = ""


@dataclass(frozen=True)
class Table:
    """Texts in rows."""

    kind: ClassVar[str] = "table"
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str | Mark]]
    note: str = ""

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The shared headings and how many columns each spans; none if no column is in a group."""
        if not any(column.group for column in self.columns):
            return []
        return [(name, len(list(these))) for name, these in groupby(column.group for column in self.columns)]


@dataclass(frozen=True)
class Figure:
    """One chart or small multiples of it, their legend as (swatch, label), and the numbers they show."""

    kind: ClassVar[str] = "figure"
    title: str
    caption: str
    panels: Sequence[Markup]
    legend: Sequence[tuple[Markup, str]]
    data: Table


@dataclass(frozen=True)
class Prose:
    """Sentences, as paragraphs or as a list."""

    kind: ClassVar[str] = "prose"
    sentences: Sequence[str]
    listed: bool = False


@dataclass(frozen=True)
class Plain:
    """A text as it stands in a file."""

    kind: ClassVar[str] = "plain"
    text: str


@dataclass(frozen=True)
class Fold:
    """Parts that are opened by a click."""

    kind: ClassVar[str] = "fold"
    title: str
    parts: Sequence["Part"]


Part = Table | Figure | Prose | Plain | Fold


@dataclass(frozen=True)
class Section:
    """A heading and what is below it."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Page:
    """A report.

    Args:
        answer: the first thing to read. facts: (name, value, explanation), the numbers behind it.
    """

    title: str
    answer: Sequence[str]
    verdict: Mark | None
    facts: Sequence[tuple[str, str, str]]
    summary: Sequence[Part]
    sections: Sequence[Section]


def percent(share: float | None) -> str:
    """A share in percent with one decimal, without the sign."""
    return MISSING if share is None else f"{100 * share:.1f}"


def at_most(share: float | None) -> str:
    """A share in percent, rounded up, so that a limit stays one."""
    return MISSING if share is None else f"≤ {min(100.0, math.ceil(1000 * share - 1e-9) / 10):.1f} %"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    if difference is None:
        return MISSING
    return f"{100 * difference:+.1f}".replace("-", "\N{MINUS SIGN}")


def give_or_take(reading: Interval | None) -> str:
    """85.3 ± 1.2; the value alone where there is no interval."""
    if reading is None:
        return MISSING
    return f"{percent(reading.value)} ± {percent(reading.half)}" if reading.half else percent(reading.value)


def interval(reading: Interval | None) -> str:
    """85.3 [84.1, 86.5]; the value alone where there is no interval."""
    if reading is None:
        return MISSING
    ends = f" [{percent(reading.low)}, {percent(reading.high)}]" if reading.half else ""
    return percent(reading.value) + ends


def plain(number: float | None) -> str:
    """As short as it is exact enough to read."""
    return MISSING if number is None else f"{number:g}"


def metric_name(metric: str) -> str:
    """As people write it."""
    return "AUC" if metric == "auc" else metric


def shortened(text: str, most: int) -> str:
    """For places where a long name would run out of the picture."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
