"""Write the results in the README from the tables of RESULTS.md: `make readme`; `--check` only compares.

RESULTS.md is the one source: `graphveil reproduce all --results RESULTS.md` writes its tables of 18 cells.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphveil.experiments.goals import HEADING, NOT_RUN, PROBLEMS

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
NO_TABLES = f"RESULTS.md has no table of the {HEADING} yet: `make results` measures them."


@dataclass(frozen=True)
class Problem:
    """One table of the README: a title, its columns, and the columns of RESULTS.md that the last two come from."""

    title: str
    kept: str
    hidden: str
    reference: str
    reference_column: str


COMPACT = {
    "table2": Problem(
        "Links kept, labels hidden, in percent",
        "AUC of links, unprotected → protected",
        "strongest attack on labels",
        "largest class",
        "largest class",
    ),
    "table3": Problem(
        "Labels kept, links hidden, in percent",
        "accuracy of labels, unprotected → protected",
        "strongest attack on links (AUC)",
        "comparing true labels (AUC)",
        "limit: comparing true labels",
    ),
}

Line = Mapping[str, str]
"""One row of a Markdown table, by column."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the README, or with `--check` say whether it is as it would be written; 1 if not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the README differs")
    parser.add_argument("--results", type=Path, default=ROOT / "RESULTS.md")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    given = parser.parse_args(arguments)
    before = given.readme.read_text(encoding="utf-8")
    try:
        after = between_marks(before, compact(given.results.read_text(encoding="utf-8")))
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if after == before:
        return 0
    if given.check:
        sys.stderr.write(f"the results in {given.readme} differ from {given.results}: run `make readme`.\n")
        return 1
    given.readme.write_text(after, encoding="utf-8")
    return 0


def compact(results: str) -> str:
    """The README's tables, from the text of RESULTS.md; a sentence where it has no table of the 18 cells."""
    parts = []
    for name, problem in COMPACT.items():
        lines = table_under(results, PROBLEMS[name])
        if lines:
            parts.append(_table(problem, lines))
    return "\n\n".join(parts) if parts else NO_TABLES


def table_under(text: str, heading: str) -> list[Line]:
    """The first Markdown table under a heading, row by row; nothing if there is no such heading.

    Raises:
        ValueError: the heading has no table, or a row has more or fewer cells than there are columns.
    """
    found = re.search(rf"^#+ {re.escape(heading)}$", text, re.MULTILINE)
    if found is None:
        return []
    section = re.split(r"^#+ ", text[found.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    rows = [_cells(line) for line in section.splitlines() if line.startswith("|")]
    if len(rows) < 3:
        raise ValueError(f"RESULTS.md has no table under {heading!r}: write it again with `graphveil reproduce`.")
    columns, _, *body = rows
    for row in body:
        if len(row) != len(columns):
            raise ValueError(f"under {heading!r} a row has {len(row)} cells and not {len(columns)}: {' | '.join(row)}")
    return [dict(zip(columns, row, strict=True)) for row in body]


def between_marks(readme: str, text: str) -> str:
    """The README with `text` between its marks.

    Raises:
        ValueError: the marks are missing.
    """
    before, found_begin, rest = readme.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not found_begin or not found_end:
        raise ValueError(f"the README has no place for the results: put the lines {BEGIN} and {END} where they go.")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def _table(problem: Problem, lines: Sequence[Line]) -> str:
    columns = ("graph", "encoder", problem.kept, problem.hidden, problem.reference)
    rows = [_words(problem, line) for line in lines]
    head = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([f"{problem.title}:", "", *head, *(f"| {' | '.join(row)} |" for row in rows)])


def _words(problem: Problem, line: Line) -> list[str]:
    needed = ("graph", "encoder", "unprotected", "protected", "strongest attack", problem.reference_column)
    missing = [column for column in needed if column not in line]
    if missing:
        raise ValueError(f"the table of RESULTS.md has no column {missing[0]!r}: write it again.")
    kept = NOT_RUN if line["protected"] == NOT_RUN else f"{line['unprotected']} → {line['protected']}"
    return [line["graph"], line["encoder"], kept, line["strongest attack"], line[problem.reference_column]]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


if __name__ == "__main__":
    sys.exit(main())
