"""Maps: test examples as points, or the codes of a release as columns as wide as their number of nodes."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graphveil.formats.audit import CodeCounts, Map, Plane
from graphveil.reporting.parts import Column, Figure, Table, percent
from graphveil.reporting.svg import WIDTH, Plot, swatch

HEIGHT = 300.0
MOST_POINTS = 600
TOP, BOTTOM = 26.0, 8.0
SIDE = 12.0
POINTS = "Points are test examples in two dimensions (t-SNE); the axes have no unit."
CODES = (
    "Each column is one code, or a pair of codes. Its width is the number of nodes or pairs, and its colours are the"
    " shares of the classes. If all columns look alike, the codes reveal nothing about the class."
)


@dataclass(frozen=True)
class Picture:
    """One panel with a title: the points of a plane, or codes.

    Args:
        drawn: the coordinates of the points of `map`, or the counts of codes.
        map: has the classes of the points; None for codes.
    """

    title: str
    drawn: Plane | CodeCounts
    map: Map | None = None

    @property
    def names(self) -> Sequence[str]:
        """Those of the classes."""
        return self.drawn.names if isinstance(self.drawn, CodeCounts) else self.map.names if self.map else ()


def after(title: str, map: Map) -> Picture:
    """The released embeddings: as codes if they are discrete."""
    return Picture(title, map.after, map) if map.codes is None else Picture(title, map.codes)


def maps(title: str, pictures: Sequence[Picture], caption: str = "") -> Figure:
    """Embeddings, coloured and shaped by the secret class."""
    panels, data, seen = [], list[list[str]](), dict[int, str]()
    for one in pictures:
        found = _mosaic(one.title, one.drawn) if isinstance(one.drawn, CodeCounts) else _cloud(one)
        panels.append(found.plot.svg())
        for number, cells in found.classes.items():
            name = one.names[number] if number < len(one.names) else f"class {number}"
            seen.setdefault(number, name)
            data.append([one.title, name, *cells])
    kinds = {isinstance(one.drawn, CodeCounts) for one in pictures}
    explained = [text for text, present in ((POINTS, False in kinds), (CODES, True in kinds)) if present]
    heads = [Column("map", "name"), Column("class", "text"), Column("nodes or pairs")]
    heads += [Column("x: mean ± deviation, or share"), Column("y: mean ± deviation, or largest share in a code")]
    legend = [(swatch(c, "point"), name) for c, name in sorted(seen.items())]
    caption = " ".join(filter(None, [caption, *explained]))
    return Figure(title, caption, panels, legend, Table(f"{title}: each class", heads, data))


@dataclass(frozen=True)
class _Drawn:
    """A plot, and the cells of the table for each class."""

    plot: Plot
    classes: dict[int, list[str]]


def _cloud(one: Picture) -> _Drawn:
    assert isinstance(one.drawn, Plane)
    assert one.map is not None
    known = list(zip(one.drawn.x, one.drawn.y, one.map.classes, strict=True))
    known = known[:: max(1, math.ceil(len(known) / MOST_POINTS))]
    plot = Plot(one.title, f"{len(known)} of {len(one.drawn.x)} points, by class.", size=(WIDTH, HEIGHT))
    across = _stretch([x for x, *_ in known], SIDE + 6, WIDTH - SIDE - 10)
    down = _stretch([y for _, y, _ in known], HEIGHT - BOTTOM - 10, TOP + 10)
    classes = {}
    for c in sorted({c for *_, c in known}):
        name = one.names[c] if c < len(one.names) else f"class {c}"
        xs, ys = [x for x, _, own in known if own == c], [y for _, y, own in known if own == c]
        plot.cloud(c, zip(map(across, xs), map(down, ys), strict=True), name)
        classes[c] = [str(len(xs)), _middle(xs), _middle(ys)]
    return _Drawn(plot, classes)


def _mosaic(title: str, codes: CodeCounts) -> _Drawn:
    """A column for each code; the last one may stand for several rare codes."""
    sizes = [sum(row) for row in codes.counts]
    nodes = max(sum(sizes), 1)
    plot = Plot(title, f"{nodes} {codes.of} with {codes.codes} {_what(codes)}s, by class.", size=(WIDTH, HEIGHT))
    width, height = WIDTH - SIDE - 18, HEIGHT - TOP - BOTTOM
    cells: dict[int, list[tuple[float, float, float, float]]] = {}
    columns, left = [], SIDE
    for row, size in zip(codes.counts, sizes, strict=True):
        across, top = width * size / nodes, TOP
        for c, count in enumerate(row):
            down = height * count / max(size, 1)
            cells.setdefault(c, []).append((left, top, across, down))
            top += down
        columns.append((left, TOP, across, height))
        left += across
    for c, boxes in cells.items():
        plot.boxes(c, [box for box in boxes if box[3] > 0])
    for number, column in enumerate(columns):
        plot.column(*column, title=_of_code(codes, number))
    totals = [sum(row[c] for row in codes.counts) for c in range(len(codes.names))]
    largest = [max((row[c] / max(sum(row), 1) for row in codes.counts), default=0.0) for c in range(len(codes.names))]
    return _Drawn(
        plot,
        {
            c: [str(total), f"{percent(total / nodes)} %", f"{percent(largest[c])} %"]
            for c, total in enumerate(totals)
            if total
        },
    )


def _of_code(codes: CodeCounts, number: int) -> str:
    """The tooltip of a column."""
    row = codes.counts[number]
    rest = codes.codes - len(codes.counts) + 1
    is_rest = rest > 1 and number == len(codes.counts) - 1
    which = f"{rest} rare {_what(codes)}s" if is_rest else f"{_what(codes)} {number + 1}"
    likely = max(range(len(row)), key=lambda c: row[c])
    return f"{which}: {sum(row)} {codes.of}, {percent(row[likely] / max(sum(row), 1))} % {codes.names[likely]}"


def _what(codes: CodeCounts) -> str:
    return "code" if codes.of == "nodes" else "code pair"


def _stretch(values: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    """The linear map from the range of `values` to [start, end]."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return lambda value: start + (end - start) * ((value - low) / (high - low) if high > low else 0.5)


def _middle(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.3g} ± {statistics.pstdev(values):.2g}"
