"""`releases.json`, the ledger of a run, and `code_book.json`, which is part of a release."""

from typing import Annotated, ClassVar

from msgspec import Meta

from graphveil.formats.record import File, Record


class Entry(Record, frozen=True):
    """One release of codes.

    Args:
        time: the time of the release in ISO 8601.
        files: the names of the released files.
        pseudonyms: whether ids were replaced by pseudonyms.
        codes: the number of the file `releases/NUMBER.parquet` with the released codes.
        codes_sha256: a digest of the nodes and their codes.
        graph_digest: the digest of the graph of the run.
        split_digest: the digest of the split of the run.
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
        use: how to use them, in words.
        signs: the signs of the columns, with which links are scored; None if links are not scored.
    """

    use: str
    signs: tuple[int, ...] | None = None
