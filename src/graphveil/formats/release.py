"""`releases.json`, the ledger of a run, and `code_book.json`, which is part of a release."""

from typing import Annotated, ClassVar

from msgspec import Meta

from graphveil.formats.record import File, Record


class Entry(Record, frozen=True):
    """One release of codes.

    Args:
        time: in ISO 8601.
        files: names of the released files.
        pseudonyms: whether ids were replaced.
        codes: the number of the file `releases/NUMBER.parquet` with the released codes.
        codes_sha256: a digest of the nodes and their codes.
        graph_digest: of the graph of the run.
        split_digest: of its split.
    """

    time: str
    files: tuple[str, ...]
    secrets: tuple[str, ...]
    pseudonyms: bool
    codes: Annotated[int, Meta(ge=1, le=10**9)]
    codes_sha256: str
    graph_digest: str
    split_digest: str


class LedgerRecord(File, frozen=True):
    """All releases of a run, the first one first."""

    SCHEMA: ClassVar[str] = "graphveil/releases/1"

    releases: tuple[Entry, ...]


class CodeBookRecord(Record, frozen=True, omit_defaults=True):
    """How to use the codes of a release; without a schema, because graphveil never reads it.

    Args:
        use: in words.
        signs: of the columns, with which links are scored; None if links are not scored.
    """

    use: str
    signs: tuple[int, ...] | None = None
