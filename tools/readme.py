"""Write the results in the README and the docs from the tables of RESULTS.md: `make readme`; `--check` only compares.

RESULTS.md is the only source: `graphveil reproduce all --results RESULTS.md` writes its main results. The README has
three numbers, and docs/explanation/results.md has two short tables.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from graphveil.experiments.goals import NOT_RUN, PROBLEMS

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
WIDTH = 120
"""Maximum length of a line in the README."""
NO_TABLES = "RESULTS.md has no tables of the main results: `make results` measures them."


@dataclass(frozen=True)
class Problem:
    """One short table.

    Args:
        title: the sentence above the table.
        kept: the title of the column with the utility.
        hidden: the title of the column with the strongest attack.
        reference: the title of the column that the attack is compared with.
        reference_column: the column of RESULTS.md that `reference` is copied from.
    """

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
"""One row of a Markdown table: the text of each cell, by column."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the results, or with `--check` compare them with RESULTS.md.

    Returns:
        The exit code: 1 if a page differs under `--check`, or cannot be written.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file differs")
    parser.add_argument("--results", type=Path, default=ROOT / "RESULTS.md")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--tables", type=Path, default=ROOT / "docs" / "explanation" / "results.md")
    given = parser.parse_args(arguments)
    results = given.results.read_text(encoding="utf-8")
    status = 0
    for file, write in ((given.readme, headline), (given.tables, compact)):
        before = file.read_text(encoding="utf-8")
        try:
            after = between_marks(before, write(results))
        except ValueError as error:
            sys.stderr.write(f"{file}: {error}\n")
            status = 1
            continue
        if after == before:
            continue
        if given.check:
            sys.stderr.write(f"the results in {file} differ from {given.results}: run `make readme`.\n")
            status = 1
        else:
            file.write_text(after, encoding="utf-8")
    return status


def headline(results: str) -> str:
    """The three numbers of the README from the text of RESULTS.md; a sentence if RESULTS.md has no main results."""
    of_labels, of_links = _complete(results, "table2", "certificate"), _complete(results, "table3")
    if not of_labels or not of_links:
        return NO_TABLES
    labels, links = _means(of_labels), _means(of_links)
    count, other = len(of_labels), len(of_links)
    combinations = f"{count}" if count == other else f"{count} and {other}"
    largest, equal = labels[COMPACT["table2"].reference_column], links[COMPACT["table3"].reference_column]
    bounds = [row["certificate"] for row in of_labels]
    changes = [-_price(row) for row in of_links]
    price = round(_price(links), 1)
    lost = f"{price:.1f} points of accuracy are lost" if price > 0 else "no accuracy is lost"
    numbers = (
        "**Links kept, labels hidden:** the best possible attack that sees only the embeddings predicts"
        f" **{fmean(bounds):.1f}%** of the labels on average (certificate; {min(bounds):.1f}% to {max(bounds):.1f}%"
        f" over the combinations). The largest class has {largest:.1f}% on average, and the strongest of our attacks"
        f" predicts {labels['strongest attack']:.1f}%.",
        f"**{_price(labels):.1f} points of AUC** is the price: link prediction falls from {labels['unprotected']:.1f}%"
        f" to {labels['protected']:.1f}%.",
        f"**Labels kept, links hidden:** on average **{lost}** ({links['unprotected']:.1f}% unprotected,"
        f" {links['protected']:.1f}% protected; single combinations change by {min(changes):+.1f} to"
        f" {max(changes):+.1f} points). The"
        f" strongest attack on links has an AUC of {links['strongest attack']:.1f}%; scoring pairs by whether their"
        f" true labels are equal gives {equal:.1f}%.",
    )
    title = f"Means over {combinations} combinations of graph and encoder ([RESULTS.md](RESULTS.md)):"
    return "\n".join([title, "", *(textwrap.fill(f"- {number}", WIDTH, subsequent_indent="  ") for number in numbers)])


def compact(results: str) -> str:
    """The short tables of the docs from the text of RESULTS.md; a sentence if RESULTS.md has no main results."""
    parts = []
    for name, problem in COMPACT.items():
        lines = table_under(results, PROBLEMS[name])
        if lines:
            parts.append(_table(problem, lines))
    return "\n\n".join(parts) if parts else NO_TABLES


def table_under(text: str, heading: str) -> list[Line]:
    """The rows of the first Markdown table under a heading; an empty list if there is no such heading.

    Raises:
        ValueError: if there is no table under the heading, or a row has more or fewer cells than there are columns.
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
            cells = f"{len(row)} cells, expected {len(columns)}"
            raise ValueError(f"under {heading!r} a row has {cells}: {' | '.join(row)}")
    return [dict(zip(columns, row, strict=True)) for row in body]


def between_marks(page: str, text: str) -> str:
    """The page with `text` between its marks.

    Raises:
        ValueError: if the marks are missing.
    """
    before, found_begin, rest = page.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not found_begin or not found_end:
        raise ValueError(
            f"there are no marks for the results: add the lines {BEGIN} and {END} where the results belong."
        )
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def _complete(results: str, name: str, *more: str) -> list[dict[str, float]]:
    """The rows of a problem with a value in all columns: the mean over seeds, by column."""
    columns = ("unprotected", "protected", "strongest attack", COMPACT[name].reference_column, *more)
    complete = []
    for line in table_under(results, PROBLEMS[name]):
        _check_columns(line, columns)
        if all(line[column] not in ("", NOT_RUN) for column in columns):
            complete.append({column: float(line[column].split(" ± ")[0]) for column in columns})
    return complete


def _means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {column: fmean(row[column] for row in rows) for column in rows[0]}


def _price(means: Mapping[str, float]) -> float:
    return means["unprotected"] - means["protected"]


def _check_columns(line: Line, columns: Sequence[str]) -> None:
    missing = [column for column in columns if column not in line]
    if missing:
        raise ValueError(f"the table of RESULTS.md has no column {missing[0]!r}: write it again.")


def _table(problem: Problem, lines: Sequence[Line]) -> str:
    columns = ("graph", "encoder", problem.kept, problem.hidden, problem.reference)
    rows = [_row(problem, line) for line in lines]
    head = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([f"{problem.title}:", "", *head, *(f"| {' | '.join(row)} |" for row in rows)])


def _row(problem: Problem, line: Line) -> list[str]:
    _check_columns(line, ("graph", "encoder", "unprotected", "protected", "strongest attack", problem.reference_column))
    kept = NOT_RUN if line["protected"] == NOT_RUN else f"{line['unprotected']} → {line['protected']}"
    return [line["graph"], line["encoder"], kept, line["strongest attack"], line[problem.reference_column]]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


if __name__ == "__main__":
    sys.exit(main())
