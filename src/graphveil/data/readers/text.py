"""Tables of text: CSV, TSV and lists of links, with any delimiter, with or without a header and comments."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from graphveil.data.readers.safe_open import MAX_BYTES, MAX_COLUMNS, SMALL, as_utf8, brief, read_bytes
from graphveil.data.sentences import data_row, plural
from graphveil.errors import GraphveilError

MISSING = (
    *("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None"),
    *("unknown", "Unknown", "UNKNOWN", "-", "?"),
)
"""Texts that mean a missing value among numbers and in features; in a target they may be classes."""

MAX_ROW_BYTES = 64 << 20
"""The longest row."""

MAX_VALUES = MAX_BYTES // 8
"""How many values a table may have: a number takes eight bytes even if its text takes one."""

_BLOCK = 8 << 20
_DELIMITERS = ",;\t|"
_LISTS = (".txt", ".edges", ".edgelist", ".el", "")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class TextTable:
    """A table whose header is known and whose rows have not been parsed.

    Args:
        file: The file.
        names: The names of the columns; columns without a name are called "column 1", ...
        unnamed: The columns without a name.
        header: The line with the names; empty if there is none.
        delimiter: What separates values in a row.
        body: The rows, as UTF-8.
        before: How many lines come before the rows.
    """

    file: Path
    names: Sequence[str]
    unnamed: frozenset[str]
    header: str
    delimiter: str
    body: bytes
    before: int

    def read(self, columns: Sequence[str], texts: Sequence[str] = ()) -> pa.Table:
        """Read columns. Those in `texts` stay text; others are converted to numbers if all their values are numbers."""
        if not self.body.strip():
            return pa.table({name: pa.array([], pa.string()) for name in columns})
        try:
            table = self._typed(columns, texts)
        except pa.ArrowException as error:
            raise self._fault(error) from error
        return _trimmed(table) if b" " in self.body or b"\t" in self.body else table

    def without_header(self) -> "TextTable":
        """The same table with its header as the first row."""
        line = " ".join(self.header.split()) if self.delimiter == " " else self.header
        names = [f"column {place + 1}" for place in range(len(self.names))]
        body = line.encode("utf-8") + b"\n" + self.body
        return replace(self, names=names, unnamed=frozenset(names), header="", body=body, before=self.before - 1)

    def place(self, row: int) -> str:
        """Where a row is, for messages, with the path of the file."""
        return f"{self.file}, {self.where(row)}"

    def where(self, row: int) -> str:
        """The line of a row in the file, or its lines if it has a line break in quotes."""
        if row >= len(self._lines):
            return data_row(row)
        first, last = self._lines[row]
        return f"line {first}" if first == last else f"lines {first} to {last}"

    def _typed(self, columns: Sequence[str], texts: Sequence[str]) -> pa.Table:
        try:
            return self._parsed(columns, texts)
        except pa.ArrowInvalid as error:
            if "conversion error" not in str(error):
                raise
        return _numbers(self._parsed(columns, columns), texts)  # a column began with numbers and has text later

    def _parsed(self, columns: Sequence[str], texts: Sequence[str]) -> pa.Table:
        table: pa.Table = pa_csv.read_csv(
            pa.BufferReader(self.body),
            pa_csv.ReadOptions(
                column_names=list(self.names),
                block_size=MAX_ROW_BYTES if len(self.names) > 1000 or self._quoted else _BLOCK,
            ),
            pa_csv.ParseOptions(
                delimiter=self.delimiter, quote_char='"' if self._quoted else False, newlines_in_values=self._quoted
            ),
            pa_csv.ConvertOptions(
                include_columns=list(columns),
                column_types={name: pa.string() for name in texts},
                null_values=list(MISSING),
                strings_can_be_null=False,
            ),
        )
        return table

    @cached_property
    def _lines(self) -> NDArray[np.int64]:
        """The first and the last line of each row, (rows, 2); of no row if `csv` cannot parse one."""
        if not self._quoted:
            numbered = enumerate(self._text(), self.before + 1)
            lines = np.fromiter((number for number, line in numbered if line.strip("\r\n")), np.int64)
            return np.stack([lines, lines], axis=1)
        try:
            ends = np.fromiter(chain.from_iterable(lines for lines, _ in self._rows()), np.int64)
        except csv.Error:
            ends = np.empty(0, np.int64)
        return ends.reshape(-1, 2)

    @cached_property
    def _quoted(self) -> bool:
        """Whether a value may be in quotes, and contain delimiters and line breaks."""
        return self.delimiter != " " and b'"' in self.body

    def _text(self) -> io.TextIOWrapper:
        """The lines of the body."""
        return io.TextIOWrapper(io.BytesIO(self.body), "utf-8", newline="")

    def _rows(self) -> Iterator[tuple[tuple[int, int], list[str]]]:
        """Each row with its first and its last line; slow, and used only to locate a row for a message."""
        rows = csv.reader(
            self._text(), delimiter=self.delimiter, quoting=csv.QUOTE_MINIMAL if self._quoted else csv.QUOTE_NONE
        )
        before = rows.line_num
        for row in rows:
            first, before = before + 1, rows.line_num
            if row:
                yield (self.before + first, self.before + before), row

    def _fault(self, error: Exception) -> GraphveilError:
        """The error for bad rows, with their location."""
        if "straddling" in str(error):
            return GraphveilError(
                f"{self.file} has a row of more than {MAX_ROW_BYTES >> 20} MB: check for an unclosed quotation mark."
            )
        try:
            for (line, _), row in self._rows():
                if len(row) != len(self.names):
                    came, expected = plural(len(row), "column"), len(self.names)
                    return GraphveilError(
                        f"{self.file}, line {line}, has {came}, but the table has {expected}: correct the line."
                    )
        except csv.Error as fault:
            return GraphveilError(
                f"{self.file} cannot be read as a table ({brief(fault)}): repair it, or save it again."
            )
        return GraphveilError(f"{self.file} cannot be read as a table ({brief(error)}): repair it, or save it again.")


def open_text(file: Path, encoding: str | None, known: Callable[[str], bool]) -> TextTable:
    """Open a table and read its first lines.

    Args:
        file: The file.
        encoding: The encoding of its text; None detects it.
        known: Whether columns of such a table often have a name.
    """
    data = as_utf8(file, read_bytes(file), encoding)
    start, before, comment = 0, 0, b""
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        line = data[start:end].strip()
        if line and not line.startswith((b"#", b"%")):
            break
        start, before, comment = end, before + 1, line or comment
    first = data[start : data.find(b"\n", start) + 1 or len(data)].decode("utf-8").strip("\r\n")
    if not first.strip():
        raise GraphveilError(f"{file} is empty: expected a table with a header, or a list of links.")
    if len(first) > MAX_ROW_BYTES:
        raise GraphveilError(f"{file} has a first row of more than {MAX_ROW_BYTES >> 20} MB: expected a table.")
    delimiter = _delimiter(file, first)
    names = _fields(file, first, delimiter)
    if delimiter != " " and _is_unclosed(first, delimiter):
        raise GraphveilError(
            f"{file}, line {before + 1}, ends within quotation marks, but the first row must be on one line: remove the"
            " line break, or close the quotation mark."
        )
    if len(names) > MAX_COLUMNS:
        raise GraphveilError(
            f"{file} has {len(names):,} columns, and at most {MAX_COLUMNS:,} are supported: remove some."
        )
    in_comment = _fields(file, comment.decode("utf-8").lstrip("#% "), delimiter) if comment else []
    comment_fits = len(in_comment) == len(names) and not any(map(_NUMBER.fullmatch, in_comment))
    numbers = all(name == "" or _NUMBER.fullmatch(name) for name in names)
    header = "" if numbers else first
    if comment_fits and (numbers or (any(map(known, in_comment)) and not any(map(known, names)))):
        names, header = in_comment, ""
    elif numbers:
        names = [""] * len(names)
    body = data[start:]
    if len(body) > SMALL and (count := body.count(delimiter.encode())) > MAX_VALUES:
        raise GraphveilError(f"{file} has {count:,} values, and at most {MAX_VALUES:,} are supported: remove columns.")
    if header:
        body, before = body[len(first.encode()) :].removeprefix(b"\r").removeprefix(b"\n"), before + 1
    table = TextTable(file, *_named(file, names), header, delimiter, body, before)
    return replace(table, body=_single_blanks(body)) if delimiter == " " else table


def _delimiter(file: Path, line: str) -> str:
    unquoted = re.sub(r'"[^"]*"', "", line)
    best = max(_DELIMITERS, key=unquoted.count)
    if unquoted.count(best):
        return best
    suffix = Path(file.name.removesuffix(".gz")).suffix.lower()
    words = unquoted.split()
    if len(words) > 1 and (suffix in _LISTS or all(map(_NUMBER.fullmatch, words))):
        return " "
    return ","


def _fields(file: Path, line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error as error:
        raise GraphveilError(f"{file} has a header that cannot be read ({brief(error)}): expected a table.") from error


def _is_unclosed(line: str, delimiter: str) -> bool:
    """Whether the last value of a line is in quotes and continues on the next line."""
    rows = csv.reader([f"{line}\n", ""], delimiter=delimiter)
    next(rows)
    return rows.line_num > 1


def _named(file: Path, names: Sequence[str]) -> tuple[list[str], frozenset[str]]:
    unnamed = {place: f"column {place + 1}" for place, name in enumerate(names) if not name}
    full = [unnamed.get(place, name) for place, name in enumerate(names)]
    seen: set[str] = set()
    for name in full:
        if name in seen:
            raise GraphveilError(f"{file} has two columns called {name!r}: rename one.")
        seen.add(name)
    return full, frozenset(unnamed.values())


def _single_blanks(body: bytes) -> bytes:
    """One space between fields and none at the ends of lines."""
    if b"\t" in body or b"  " in body or b" \n" in body or b"\n " in body or b" \r" in body or body[:1] in b" ":
        body = re.sub(rb" *\r?\n *", b"\n", re.sub(rb"[ \t]+", b" ", body)).strip(b" ")
    return body


def _trimmed(table: pa.Table) -> pa.Table:
    """Values without spaces at their ends, which are invisible: such an id would not match in the other table."""
    columns = [pc.utf8_trim(c, " \t") if pa.types.is_string(c.type) else c for c in table.columns]
    return pa.table(columns, names=table.column_names)


def _numbers(table: pa.Table, texts: Sequence[str]) -> pa.Table:
    """Convert columns of text to numbers if all their values are numbers."""
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        converted = column
        if name not in texts:
            missing = pc.is_in(column, value_set=pa.array(MISSING))
            try:
                converted = pc.cast(pc.if_else(missing, pa.scalar(None, pa.string()), column), pa.float64())
            except pa.ArrowInvalid:
                converted = column
        columns.append(converted)
    return pa.table(columns, names=table.column_names)
