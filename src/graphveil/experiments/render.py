"""Render the rows of an experiment for a terminal, and as Markdown, CSV and LaTeX."""

import csv
import io
import re
from collections.abc import Sequence

from graphveil.experiments.tables import Row
from graphveil.formats import Interval
from graphveil.formats.experiment import own_attacks

COLUMNS = ("variant", "graph", "encoder", "lambda", "seeds")
WITHOUT_PAPER = ("utility", "utility: chance level")
WITH_PAPER = (
    "utility: paper",
    "utility: ours",
    "difference",
    "attack: paper",
    "attack: paper's protocol",
    "difference",
)
AUDIT = ("strongest attack", "class-matched or balanced", "chance level", "flagged")

LATEX = str.maketrans(
    {sign: rf"\{sign}" for sign in "&%_#${}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "±": r"$\pm$"}
)

BRIEF = (
    "graph, encoder",
    "variant, lambda",
    "utility (paper)",
    "paper's attack (paper)",
    "strongest attack",
    "reproduced",
)


def brief(rows: Sequence[Row]) -> tuple[Sequence[str], list[list[str]]]:
    """The columns and the text of every row, for a terminal.

    Args:
        rows: the rows of an experiment.

    Returns:
        The titles of the columns, and one list of strings for each row.
    """

    def with_paper(ours: Interval, paper: float | None) -> str:
        return with_half(ours) + ("" if paper is None else f" ({percent(paper)})")

    if not has_paper(rows):
        return _brief_without_paper(rows)
    return BRIEF, [
        [
            f"{one.dataset} {one.encoder}",
            f"{one.variant} {one.level}",
            with_paper(one.utility, one.paper and one.paper[0]),
            with_paper(one.protocol, one.paper and one.paper[1]),
            with_half(one.fresh),
            {"not reproduced": "no", "reproduced": "yes"}.get(one.verdict, one.verdict),
        ]
        for one in rows
    ]


def _brief_without_paper(rows: Sequence[Row]) -> tuple[Sequence[str], list[list[str]]]:
    """Columns with chance levels in place of the paper's values; columns that are equal in all rows are left out."""
    several = len(by_secret(rows)) > 1
    alike = len({(one.dataset, one.encoder, one.variant) for one in rows}) == 1
    columns = [
        *([_level_name(rows)] if alike else ["graph, encoder", f"variant, {_level_name(rows)}"]),
        "utility (chance)",
        *(["secret"] if several else []),
        _own(rows),
        "strongest attack",
        "chance level",
    ]
    lines = [
        [
            *([] if alike else [f"{one.dataset} {one.encoder}"]),
            one.level if alike else f"{one.variant} {one.level}",
            f"{with_half(one.utility)} ({percent(one.utility_chance)})",
            *([one.secret] if several else []),
            with_half(one.protocol),
            with_half(one.fresh),
            percent(one.chance),
        ]
        for one in rows
    ]
    return columns, lines


def has_paper(rows: Sequence[Row]) -> bool:
    """Whether a row has values of the paper to compare with; the rows of a sweep have none."""
    return any(one.paper is not None for one in rows)


def texts(rows: Sequence[Row], papers: bool) -> tuple[Sequence[str], list[list[str]]]:
    """The columns and the text of every row, for a file.

    Args:
        rows: the rows of an experiment.
        papers: whether to include the paper's values, the differences from them and the verdict.

    Returns:
        The titles of the columns, and one list of strings for each row.
    """
    first = [_level_name(rows) if name == "lambda" else name for name in COLUMNS]
    if not papers:
        return (*first, *WITHOUT_PAPER, _own(rows), *AUDIT), [
            [
                *_setting(one),
                with_half(one.utility),
                percent(one.utility_chance),
                with_half(one.protocol),
                *_audit(one),
            ]
            for one in rows
        ]
    return (*first, *WITH_PAPER, *AUDIT, "verdict"), [
        [
            *_setting(one),
            percent(one.paper and one.paper[0]),
            with_half(one.utility),
            _difference(one.utility, one.paper and one.paper[0]),
            percent(one.paper and one.paper[1]),
            with_half(one.protocol),
            _difference(one.protocol, one.paper and one.paper[1]),
            *_audit(one),
            one.verdict,
        ]
        for one in rows
    ]


def _setting(one: Row) -> list[str]:
    return [one.variant, one.dataset, one.encoder, one.level, str(one.seeds)]


def _own(rows: Sequence[Row]) -> str:
    """The name of the own attack of the trainings; the methods of other authors have none."""
    return own_attacks((one.secret, one.variant) for one in rows if one.epsilon is None).attack or "own attack"


def _level_name(rows: Sequence[Row]) -> str:
    return "lambda or epsilon" if _has_peers(rows) else "lambda"


def _has_peers(rows: Sequence[Row]) -> bool:
    return any(one.epsilon is not None for one in rows)


def _audit(one: Row) -> list[str]:
    return [with_half(one.fresh), with_half(one.finer), percent(one.chance), f"{one.flagged:.0%}"]


def markdown(rows: Sequence[Row]) -> str:
    """A Markdown table; several secrets have one table each, under a heading with the name of the secret."""
    papers = has_paper(rows)
    tables = {secret: markdown_table(*texts(these, papers)) for secret, these in by_secret(rows).items()}
    if len(tables) < 2:
        return markdown_table(*texts(rows, papers))
    return "\n".join(f"### {_plain_markdown(secret)}\n\n{table}" for secret, table in tables.items())


def comma_separated(rows: Sequence[Row]) -> str:
    """A CSV table for programs: unrounded values, each in a column of its own; empty if there is no interval."""
    out = io.StringIO()
    writer = csv.writer(out)
    papers, peers = has_paper(rows), _has_peers(rows)
    numbers = {
        "utility": "utility",
        "protocol" if papers else "adversary": "protocol",
        "fresh": "fresh",
        "finer": "finer",
    }
    heads = [f"{name}{end}" for name in numbers for end in ("", "_low", "_high")]
    head = ["variant", "graph", "encoder", "secret", "lambda", *(["epsilon"] * peers), "seeds"]
    head += ["paper_utility", "paper_secret"] * papers
    writer.writerow([*head, *heads, "utility_chance", "chance", "flagged", *(["verdict"] * papers)])
    for one in rows:
        values = [value for name in numbers.values() for value in _three(getattr(one, name))]
        first = [one.variant, one.dataset, one.encoder, one.secret, one.tradeoff, *([one.epsilon] * peers), one.seeds]
        printed = one.paper or (None, None)
        last = [one.utility_chance, one.chance, one.flagged]
        writer.writerow([*first, *(printed * papers), *values, *last, *([one.verdict] * papers)])
    return out.getvalue()


def _three(mean: Interval | None) -> tuple[float | None, float | None, float | None]:
    """The value and the ends of its interval; None where there are none."""
    return (None, None, None) if mean is None else (mean.value, *(mean.ci or (None, None)))


def latex(rows: Sequence[Row], title: str) -> str:
    """A LaTeX table (booktabs); several secrets have one table each.

    Args:
        rows: the rows of an experiment.
        title: the caption.
    """
    papers = has_paper(rows)
    tables = {secret: texts(these, papers) for secret, these in by_secret(rows).items()}
    if len(tables) < 2:
        return _latex(*texts(rows, papers), title)
    return "\n".join(_latex(*table, f"{title}; attacks on {secret}") for secret, table in tables.items())


def by_secret(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Group the rows by secret."""
    return {secret: [row for row in rows if row.secret == secret] for secret in dict.fromkeys(r.secret for r in rows)}


def simple_tables(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> dict[str, str]:
    """A table of plain text as Markdown, CSV and LaTeX.

    Args:
        columns: the titles of the columns.
        rows: the text of each cell, row by row.
        title: the caption of the LaTeX table.

    Returns:
        The text of each file, by its suffix: "md", "csv" and "tex".
    """
    out = io.StringIO()
    csv.writer(out).writerows([columns, *rows])
    return {"md": markdown_table(columns, rows), "csv": out.getvalue(), "tex": _latex(columns, rows, title)}


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; markup in the rows is escaped."""
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(map(_plain_markdown, line))} |" for line in rows)]) + "\n"


def _latex(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> str:
    lines = [
        r"\begin{table}\centering\small",
        rf"\caption{{{_escape(title)}}}",
        rf"\begin{{tabular}}{{{'l' * len(columns)}}}\toprule",
        " & ".join(map(_escape, columns)) + r" \\ \midrule",
        *(" & ".join(map(_escape, line)) + r" \\" for line in rows),
        r"\bottomrule\end{tabular}\end{table}",
    ]
    return "\n".join(lines) + "\n"


def percent(share: float | None) -> str:
    """A share in percent with one decimal; the empty string for None."""
    return "" if share is None else f"{100 * share:.1f}"


def with_half(mean: Interval | None) -> str:
    """A mean in percent ± half of its 95 % interval, if it has one; the empty string for None."""
    if mean is None:
        return ""
    return percent(mean.value) + (f" ± {percent(mean.half)}" if mean.half else "")


def _difference(mean: Interval, paper: float | None) -> str:
    return "" if paper is None else f"{100 * (mean.value - paper):+.1f}"


def _plain_markdown(text: str) -> str:
    """Escape Markdown in an untrusted name, and put it on one line."""
    return re.sub(r"([\\`*_\[\]<>|&#~])", r"\\\1", " ".join(text.split()))


def _escape(text: str) -> str:
    """Escape LaTeX in an untrusted name, and put it on one line."""
    return " ".join(text.split()).translate(LATEX)
