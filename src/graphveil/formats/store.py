"""Read and write records as JSON files.

A file may come from anybody's disk. Whatever is wrong with it is a `ValueError` whose message is a short reason that
names the place, such as "strongest.value: expected a number, got a text". Callers put it into their own sentence.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from graphveil.errors import first_line, printable, shortened
from graphveil.files import is_sealed, sealed, write_json
from graphveil.formats.record import File

AnyFile = TypeVar("AnyFile", bound=File)
LONGEST = 300
"""Characters of a reason; it may quote a value of the file."""
DEEPEST = 50
"""Levels of objects and lists; more would exhaust the stack of whoever walks through them."""
KINDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def read(path: Path, kind: type[AnyFile]) -> AnyFile:
    """Read a file and validate it.

    Raises:
        ValueError: if the file is not JSON, has another schema, or does not match the record.
        OSError: if the file cannot be read.
    """
    return parse(_content(path), kind)


def read_sealed(path: Path, kind: type[AnyFile]) -> AnyFile:
    """Read a file that `write_sealed` wrote; refuse it if it was edited."""
    content = _content(path)
    record = parse(content, kind)
    if not is_sealed(content):
        raise ValueError("it was changed after it was written")
    return record


def parse(content: object, kind: type[AnyFile]) -> AnyFile:
    """Validate the content of a file."""
    if isinstance(content, dict) and (schema := content.get("schema")) != kind.SCHEMA:
        came = f"its schema is {shortened(schema, 60)!r}" if isinstance(schema, str) else "it has no schema"
        raise ValueError(f"{came}, expected {kind.SCHEMA!r}")
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise ValueError(shortened(printable(_reason(str(error))), LONGEST)) from error


def write(path: Path, record: File) -> None:
    """Write a record as readable JSON."""
    write_json(path, record.to_dict())


def write_sealed(path: Path, record: File) -> None:
    """Write a record with a digest of itself, so that `read_sealed` notices edits."""
    write_json(path, sealed(record.to_dict()))


def reason(error: Exception) -> str:
    """Why a file could not be read, in a few words without its path."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return first_line(error)


def _content(path: Path) -> Any:
    if path.exists() and not path.is_file():
        raise ValueError("it is not a plain file")  # a pipe or a device might never end
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    inside = [content]
    for _ in range(DEEPEST):
        inside = [one for part in inside if isinstance(part, dict | list) for one in _values(part)]
    if inside:
        raise ValueError("it is nested too deeply")
    return content


def _values(part: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return part.values() if isinstance(part, dict) else part


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"it contains {constant}, which is not a number in JSON")


def _reason(said: str) -> str:
    """The message of msgspec with the place first and with words for types."""
    what, at, where = said.rpartition(" - at `")  # a quoted value may contain the same words
    what, where = (what, where) if at else (said, "")
    place = where.rstrip("`").removeprefix("key` in `").removeprefix("$").removeprefix(".")
    if missing := re.fullmatch("Object missing required field `(.+)`", what):
        return f"{place}.{missing[1]} is missing" if place else f"{missing[1]} is missing"
    if unknown := re.fullmatch("Invalid (?:enum )?value (.+)", what, re.DOTALL):
        return f"{place} has the unknown value {unknown[1]}"
    what = re.sub("`([^`]*)`", lambda found: " or ".join(KINDS.get(one, one) for one in found[1].split(" | ")), what)
    return f"{place}: {what[0].lower()}{what[1:]}" if place else what[0].lower() + what[1:]
