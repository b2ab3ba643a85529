"""Rows as words: for a terminal, and as Markdown, CSV and LaTeX."""

import csv
import io
import re
from collections.abc import Sequence

from graphveil.experiments.tables import Row
from graphveil.formats import Interval

COLUMNS = ("variant", "graph", "encoder", "lambda", "seeds")
OWN = ("utility", "utility: guessing", "adversary trained along")
PAPERS = ("utility: paper", "ours", "difference", "secret: paper", "its protocol here", "difference")
FRESH = ("strongest fresh attack", "class-matched or balanced", "guessing", "flagged")

LATEX = str.maketrans(
    {sign: rf"\{sign}" for sign in "&%_#${}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "±": r"$\pm$"}
)

BRIEF = ("cell", "variant, lambda", "utility (paper)", "adversary (paper)", "fresh", "repr.")


def brief(rows: Sequence[Row]) -> tuple[Sequence[str], list[list[str]]]:
    """The columns and the words of every row, for a terminal of 80 columns."""

    def beside(ours: Interval, paper: float | None) -> str:
        return with_half(ours) + ("" if paper is None else f" ({percent(paper)})")

    if not beside_paper(rows):
        return _brief_of_own(rows)
    return BRIEF, [
        [
            f"{one.dataset} {one.encoder}",
            f"{one.variant} {one.level}",
            beside(one.utility, one.paper and one.paper[0]),
            beside(one.protocol, one.paper and one.paper[1]),
            with_half(one.fresh),
            {"not reproduced": "no", "reproduced": "yes"}.get(one.verdict, one.verdict),
        ]
        for one in rows
    ]


def _brief_of_own(rows: Sequence[Row]) -> tuple[Sequence[str], list[list[str]]]:
    """What has no paper stands beside guessing; what all rows have in common is in the title."""
    several = len(by_secret(rows)) > 1
    alike = len({(one.dataset, one.encoder, one.variant) for one in rows}) == 1
    columns = [
        *([_level_name(rows)] if alike else ["cell", f"variant, {_level_name(rows)}"]),
        "utility (guessing)",
        *(["secret"] if several else []),
        "adversary",
        "fresh",
        "guessing",
    ]
    words = [
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
    return columns, words


def beside_paper(rows: Sequence[Row]) -> bool:
    """Whether there is anything to hold against a paper; a sweep has nothing."""
    return any(one.paper is not None for one in rows)


def texts(rows: Sequence[Row], papers: bool) -> tuple[Sequence[str], list[list[str]]]:
    """The columns and the words of every row, for a file.

    Args:
        papers: whether the paper's numbers stand beside ours.
    """
    first = [_level_name(rows) if name == "lambda" else name for name in COLUMNS]
    if not papers:
        own = [[with_half(one.utility), percent(one.utility_chance), with_half(one.protocol)] for one in rows]
        return (*first, *OWN, *FRESH), [
            [*_which(one), *words, *_told(one)] for one, words in zip(rows, own, strict=True)
        ]
    return (*first, *PAPERS, *FRESH, "verdict"), [
        [
            *_which(one),
            percent(one.paper and one.paper[0]),
            with_half(one.utility),
            _difference(one.utility, one.paper and one.paper[0]),
            percent(one.paper and one.paper[1]),
            with_half(one.protocol),
            _difference(one.protocol, one.paper and one.paper[1]),
            *_told(one),
            one.verdict,
        ]
        for one in rows
    ]


def _which(one: Row) -> list[str]:
    return [one.variant, one.dataset, one.encoder, one.level, str(one.seeds)]


def _level_name(rows: Sequence[Row]) -> str:
    return "lambda or epsilon" if _has_peers(rows) else "lambda"


def _has_peers(rows: Sequence[Row]) -> bool:
    return any(one.epsilon is not None for one in rows)


def _told(one: Row) -> list[str]:
    return [with_half(one.fresh), with_half(one.finer), percent(one.chance), f"{one.flagged:.0%}"]


def markdown(rows: Sequence[Row]) -> str:
    """For people who read files; each of several secrets has a table of its own, under its name."""
    papers = beside_paper(rows)
    tables = {secret: markdown_table(*texts(these, papers)) for secret, these in by_secret(rows).items()}
    if len(tables) < 2:
        return markdown_table(*texts(rows, papers))
    return "\n".join(f"### {_plain_markdown(secret)}\n\n{table}" for secret, table in tables.items())


def comma_separated(rows: Sequence[Row]) -> str:
    """For programs: every number by itself, unrounded; nothing where there is no interval."""
    out = io.StringIO()
    writer = csv.writer(out)
    papers, peers = beside_paper(rows), _has_peers(rows)
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
    """The value and the ends of its interval, where there are any."""
    return (None, None, None) if mean is None else (mean.value, *(mean.ci or (None, None)))


def latex(rows: Sequence[Row], title: str) -> str:
    """A booktabs table for a paper, or one for each of several secrets."""
    papers = beside_paper(rows)
    tables = {secret: texts(these, papers) for secret, these in by_secret(rows).items()}
    if len(tables) < 2:
        return _latex(*texts(rows, papers), title)
    return "\n".join(_latex(*table, f"{title}; what is told of {secret}") for secret, table in tables.items())


def by_secret(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each secret."""
    return {secret: [row for row in rows if row.secret == secret] for secret in dict.fromkeys(r.secret for r in rows)}


def simple_tables(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> dict[str, str]:
    """Words as they are, by the suffix of each form's file."""
    out = io.StringIO()
    csv.writer(out).writerows([columns, *rows])
    return {"md": markdown_table(columns, rows), "csv": out.getvalue(), "tex": _latex(columns, rows, title)}


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """One table; what is in the rows is no markup."""
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
    """In percent with one decimal; nothing for None."""
    return "" if share is None else f"{100 * share:.1f}"


def with_half(mean: Interval | None) -> str:
    """With half of the 95 % interval, if there is one; nothing for None."""
    if mean is None:
        return ""
    return percent(mean.value) + (f" ± {percent(mean.half)}" if mean.half else "")


def _difference(mean: Interval, paper: float | None) -> str:
    return "" if paper is None else f"{100 * (mean.value - paper):+.1f}"


def _plain_markdown(text: str) -> str:
    """A name that may be anybody's, as one line that is no markup."""
    return re.sub(r"([\\`*_\[\]<>|&#~])", r"\\\1", " ".join(text.split()))


def _escape(text: str) -> str:
    """The same for LaTeX."""
    return " ".join(text.split()).translate(LATEX)
