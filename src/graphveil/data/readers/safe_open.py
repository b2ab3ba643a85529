"""Open untrusted files: checks of their kind, their unpacked size and the encoding of their text.

Sizes are checked before memory is allocated. A compressed file may expand to a million times its size, and a path may
be a pipe that never ends.
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

MAX_BYTES = 8 << 30
"""The largest file, after it is unpacked."""

MAX_EXPANSION = 200
"""How many times its size a packed file may expand to; tables of zeros come near 100, bombs exceed 1,000."""

SMALL = 64 << 20
"""Expansion is not checked below this number of bytes."""

MAX_COLUMNS = 100_000
"""How many columns a table may have, and how many features."""

BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError)
"""What the standard library raises for a file that is not a zip file, is broken, or has a password."""

_MARKS = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_CHUNK = 1 << 22


def check_file(file: Path) -> int:
    """Return the size of a regular file; folders, pipes and devices are refused, since reading them could hang."""
    try:
        status = file.stat()
    except (OSError, ValueError) as error:
        raise unreadable(file, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise GraphveilError(f"{file} is not a regular file: give a file, or a folder with edges.csv.")
    if status.st_size > MAX_BYTES:
        raise GraphveilError(
            f"{file} has {status.st_size:,} bytes, and at most {MAX_BYTES:,} are read: split it, or save it as Parquet"
            " with fewer columns."
        )
    return status.st_size


def read_bytes(file: Path) -> bytes:
    """Return the bytes of a file; a gzip file is unpacked, up to a limit."""
    size = check_file(file)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise unreadable(file, error) from error
    return _unpacked(file, data, size) if data[:2] == b"\x1f\x8b" else data


def check_expansion(file: Path, packed: int, unpacked: int) -> None:
    """Refuse a file that would expand to much more than its size."""
    if unpacked > MAX_BYTES or (unpacked > SMALL and unpacked > packed * MAX_EXPANSION):
        raise GraphveilError(
            f"{file} has {packed:,} bytes and would expand to at least {unpacked:,}, as a decompression bomb does:"
            " unpack it yourself if you trust it."
        )


def as_utf8(file: Path, data: bytes, encoding: str | None) -> bytes:
    """Return the text of a file as UTF-8 without a byte order mark.

    Args:
        file: The file, for messages.
        data: Its bytes.
        encoding: The encoding of the text; None means UTF-8, or the encoding that the byte order mark declares.
    """
    marked = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None)
    encoding = encoding or marked
    try:
        if encoding is None and not data.isascii():
            data.decode("utf-8")
        elif encoding is not None:
            lines = b"\n" in data or b"\r" in data
            data = data.decode(encoding).removeprefix("\ufeff").encode("utf-8")
            if lines and b"\n" not in data and b"\r" not in data:
                raise UnicodeError("all lines would become one")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise GraphveilError(
            f"{file}, line {line}, has the byte 0x{data[error.start]:02x}, which is not {encoding or 'UTF-8'}:"
            " name its encoding, as in --text-encoding latin-1."
        ) from error
    except (LookupError, UnicodeError, ValueError) as error:
        raise GraphveilError(
            f"{file} cannot be read as {encoding!r} ({brief(error)}): try utf-8 or latin-1."
        ) from error
    if (at := data.find(b"\x00")) >= 0:
        line = data.count(b"\n", 0, at) + 1
        raise GraphveilError(f"{file}, line {line}, has a zero byte: it is not text, or needs --text-encoding utf-16.")
    return data.replace(b"\r", b"\n") if b"\r" in data and b"\n" not in data else data


def unreadable(file: Path, error: Exception) -> GraphveilError:
    """Return the error for a file that cannot be read."""
    reason = getattr(error, "strerror", None) or brief(error)
    return GraphveilError(f"cannot read {str(file)!r}: {reason}. Check the path and its permissions.")


def no_column(where: str, name: str, names: Sequence[str]) -> GraphveilError:
    """Return the error for a missing column."""
    if not names:
        return GraphveilError(f"{where} has no column {quote(name)}: give a table of nodes that has it with --nodes.")
    near = difflib.get_close_matches(name, names[:1000], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return GraphveilError(f"{where} has no column {quote(name)}: it has {list_names(names)}.{hint}")


def brief(error: Exception) -> str:
    """Return the message of an error in one short line without control characters."""
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
                    raise GraphveilError(f"{file} is truncated: create it again.")
            rest = part.unused_data.lstrip(b"\x00")
    except zlib.error as error:
        raise GraphveilError(f"{file} cannot be unpacked ({brief(error)}): create it again.") from error
    return out.getvalue()
