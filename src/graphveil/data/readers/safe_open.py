"""Opening files that nobody has looked at: what they are, how large they become, and how their text is written.

Everything is measured before it is allocated. A compressed file may say that it holds a million times its size, and a
name may be a pipe that never ends.
"""

import difflib
import io
import stat
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from graphveil.data.sentences import list_names, quote
from graphveil.errors import GraphveilError, printable

MOST_BYTES = 8 << 30
"""Of a file, after it is unpacked."""

MOST_EXPANSION = 200
"""How many times its own size a packed file may become; tables of zeros come near 100, bombs to 1,000 and more."""

SMALL = 64 << 20
"""Bytes below which expansion is no matter."""

MOST_COLUMNS = 100_000
"""Of a table, or of the features that come of it."""

BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError)
"""What the standard library says of a zip file that is none, or is broken, or has a password."""

_MARKS = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_CHUNK = 1 << 22


def check_file(file: Path) -> int:
    """The size of an ordinary file; folders, pipes and devices are refused before they can hang."""
    try:
        status = file.stat()
    except (OSError, ValueError) as error:
        raise unreadable(file, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise GraphveilError(f"{file} is no ordinary file: give a file, or a folder that holds edges.csv.")
    if status.st_size > MOST_BYTES:
        raise GraphveilError(
            f"{file} has {status.st_size:,} bytes, and at most {MOST_BYTES:,} are read: split it, or save it as Parquet"
            " with fewer columns."
        )
    return status.st_size


def read_bytes(file: Path) -> bytes:
    """All of a file; what ends in .gz is unpacked, within bounds."""
    size = check_file(file)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise unreadable(file, error) from error
    return _unpacked(file, data, size) if data[:2] == b"\x1f\x8b" else data


def check_expansion(file: Path, packed: int, unpacked: int) -> None:
    """Refuse a file that would become much larger than it is."""
    if unpacked > MOST_BYTES or (unpacked > SMALL and unpacked > packed * MOST_EXPANSION):
        raise GraphveilError(
            f"{file} has {packed:,} bytes and would become {unpacked:,} or more: it is refused as a bomb; unpack it"
            " yourself if you trust it."
        )


def as_utf8(file: Path, data: bytes, encoding: str | None) -> bytes:
    """The text of a file as UTF-8 without a mark; None is UTF-8, or what the mark says."""
    marked = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None)
    encoding = encoding or marked
    try:
        if encoding is None and not data.isascii():
            data.decode("utf-8")
        elif encoding is not None:
            lines = b"\n" in data or b"\r" in data
            data = data.decode(encoding).removeprefix("\ufeff").encode("utf-8")
            if lines and b"\n" not in data and b"\r" not in data:
                raise UnicodeError("then it would be one endless line")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise GraphveilError(
            f"{file}, line {line}, has the byte 0x{data[error.start]:02x}, which is not {encoding or 'UTF-8'}:"
            " say how it is written, as in --text-encoding latin-1."
        ) from error
    except (LookupError, UnicodeError, ValueError) as error:
        raise GraphveilError(
            f"{file} cannot be read as {encoding!r} ({brief(error)}): try utf-8 or latin-1."
        ) from error
    if (at := data.find(b"\x00")) >= 0:
        line = data.count(b"\n", 0, at) + 1
        raise GraphveilError(f"{file}, line {line}, has a zero byte: it is no text, or needs --text-encoding utf-16.")
    return data.replace(b"\r", b"\n") if b"\r" in data and b"\n" not in data else data


def unreadable(file: Path, error: Exception) -> GraphveilError:
    """The sentence for a file that cannot be read."""
    reason = getattr(error, "strerror", None) or brief(error)
    return GraphveilError(f"cannot read {str(file)!r}: {reason}.")


def no_column(where: str, name: str, names: Sequence[str]) -> GraphveilError:
    """The sentence for a column that is not there."""
    if not names:
        return GraphveilError(f"{where} has no column {quote(name)}: give a table of nodes, by --nodes, that has it.")
    near = difflib.get_close_matches(name, names[:1000], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return GraphveilError(f"{where} has no column {quote(name)}: it has {list_names(names)}.{hint}")


def brief(error: Exception) -> str:
    """What a library said, in one short line without characters that would steer a terminal."""
    return printable(" ".join(str(error).split())[:200] or type(error).__name__)


def _unpacked(file: Path, data: bytes, size: int) -> bytes:
    out, rest = io.BytesIO(), data
    try:
        while rest:
            part = zlib.decompressobj(wbits=31)
            while not part.eof:
                piece = part.decompress(rest, _CHUNK)
                rest = part.unconsumed_tail
                out.write(piece)
                check_expansion(file, size, out.tell())
                if not piece and not rest and not part.eof:
                    raise GraphveilError(f"{file} ends too early: it was cut off; make it anew.")
            rest = part.unused_data.lstrip(b"\x00")
    except zlib.error as error:
        raise GraphveilError(f"{file} cannot be unpacked ({brief(error)}): make it anew.") from error
    return out.getvalue()
