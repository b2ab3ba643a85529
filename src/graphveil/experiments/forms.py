"""Rows as words: for a terminal, and as Markdown, CSV and LaTeX."""

import csv
import io
import re
from collections.abc import Sequence

from graphveil.audit import Estimate
from graphveil.experiments.tables import Row

COLUMNS = (
    "variant",
    "graph",
    "encoder",
    "lambda",
    "seeds",
    "utility: paper",
    "ours",
    "difference",
    "secret: paper",
    "its protocol here",
    "difference",
    "strongest fresh attack",
    "class-matched or balanced",
    "guessing",
    "flagged",
    "verdict",
)

LATEX = str.maketrans(
    {sign: rf"\{sign}" for sign in "&%_#${}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "±": r"$\pm$"}
)

BRIEF = ("cell", "variant, lambda", "utility (paper)", "adversary (paper)", "fresh", "repr.")
BRIEF_OF_SEVERAL = ("lambda", "utility", "secret", "adversary", "fresh", "guessing")
"""Of several secrets, which only a sweep hides: its title says the rest."""


def brief(rows: Sequence[Row]) -> tuple[Sequence[str], list[list[str]]]:
    """The columns and the words of every row, for a terminal of 80 columns."""

    def beside(ours: Estimate, paper: float | None) -> str:
        return _with_half(ours) + ("" if paper is None else f" ({percent(paper)})")

    if len(by_secret(rows)) > 1:
        return BRIEF_OF_SEVERAL, [
            [
                f"{one.tradeoff:g}",
                _with_half(one.utility),
                one.secret,
                _with_half(one.protocol),
                _with_half(one.fresh),
                percent(one.chance),
            ]
            for one in rows
        ]
    return BRIEF, [
        [
            f"{one.dataset} {one.encoder}",
            f"{one.variant} {one.tradeoff:g}",
            beside(one.utility, one.paper and one.paper[0]),
            beside(one.protocol, one.paper and one.paper[1]),
            _with_half(one.fresh),
            {"not reproduced": "no", "reproduced": "yes"}.get(one.verdict, one.verdict),
        ]
        for one in rows
    ]


def texts(rows: Sequence[Row]) -> list[list[str]]:
    """Every row as the words of `COLUMNS`."""
    return [
        [
            one.variant,
            one.dataset,
            one.encoder,
            f"{one.tradeoff:g}",
            str(one.seeds),
            percent(one.paper and one.paper[0]),
            _with_half(one.utility),
            _difference(one.utility, one.paper and one.paper[0]),
            percent(one.paper and one.paper[1]),
            _with_half(one.protocol),
            _difference(one.protocol, one.paper and one.paper[1]),
            _with_half(one.fresh),
            "" if one.finer is None else _with_half(one.finer),
            percent(one.chance),
            f"{one.flagged:.0%}",
            one.verdict,
        ]
        for one in rows
    ]


def markdown(rows: Sequence[Row]) -> str:
    """For people who read files; each of several secrets has a table of its own, under its name."""
    tables = {secret: _markdown(COLUMNS, texts(these)) for secret, these in by_secret(rows).items()}
    if len(tables) < 2:
        return _markdown(COLUMNS, texts(rows))
    return "\n".join(f"### {_plain_markdown(secret)}\n\n{table}" for secret, table in tables.items())


def comma_separated(rows: Sequence[Row]) -> str:
    """For programs: every number by itself, unrounded."""
    out = io.StringIO()
    writer = csv.writer(out)
    numbers = ("utility", "protocol", "fresh", "finer")
    heads = [f"{name}{end}" for name in numbers for end in ("", "_low", "_high")]
    head = ["variant", "graph", "encoder", "secret", "lambda", "seeds", "paper_utility", "paper_secret", *heads]
    writer.writerow([*head, "chance", "flagged", "verdict"])
    for one in rows:
        estimates = [getattr(one, name) for name in numbers]
        values = [v for e in estimates for v in (("", "", "") if e is None else (e.value, e.low, e.high))]
        first = [one.variant, one.dataset, one.encoder, one.secret, one.tradeoff, one.seeds, *(one.paper or ("", ""))]
        writer.writerow([*first, *values, one.chance, one.flagged, one.verdict])
    return out.getvalue()


def latex(rows: Sequence[Row], title: str) -> str:
    """A booktabs table for a paper, or one for each of several secrets."""
    tables = {secret: texts(these) for secret, these in by_secret(rows).items()}
    if len(tables) < 2:
        return _latex(COLUMNS, texts(rows), title)
    return "\n".join(_latex(COLUMNS, words, f"{title}; what is told of {secret}") for secret, words in tables.items())


def by_secret(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each secret."""
    return {secret: [row for row in rows if row.secret == secret] for secret in dict.fromkeys(r.secret for r in rows)}


def simple_tables(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> dict[str, str]:
    """Words as they are, by the suffix of each form's file."""
    out = io.StringIO()
    csv.writer(out).writerows([columns, *rows])
    return {"md": _markdown(columns, rows), "csv": out.getvalue(), "tex": _latex(columns, rows, title)}


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(map(_plain_markdown, words))} |" for words in rows)]) + "\n"


def _latex(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> str:
    lines = [
        r"\begin{table}\centering\small",
        rf"\caption{{{_escape(title)}}}",
        rf"\begin{{tabular}}{{{'l' * len(columns)}}}\toprule",
        " & ".join(map(_escape, columns)) + r" \\ \midrule",
        *(" & ".join(map(_escape, words)) + r" \\" for words in rows),
        r"\bottomrule\end{tabular}\end{table}",
    ]
    return "\n".join(lines) + "\n"


def percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def _with_half(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.1f} ± {100 * estimate.half:.1f}" if estimate.half else percent(estimate.value)


def _difference(estimate: Estimate, paper: float | None) -> str:
    return "" if paper is None else f"{100 * (estimate.value - paper):+.1f}"


def _plain_markdown(text: str) -> str:
    """A name that may be anybody's, as one line that is no markup."""
    return re.sub(r"([\\`*_\[\]<>|&#~])", r"\\\1", " ".join(text.split()))


def _escape(text: str) -> str:
    """The same for LaTeX."""
    return " ".join(text.split()).translate(LATEX)
