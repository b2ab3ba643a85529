"""`releases.json`: the ledger of a run."""

from typing import Annotated, ClassVar

from msgspec import Meta

from graphveil.formats.record import File, Record


class Entry(Record, frozen=True):
    """One release of codes.

    Args:
        time: in ISO 8601. files: names of the released files. pseudonyms: whether ids were replaced.
        codes: the number of the file `releases/NUMBER.parquet` with the released codes.
        codes_sha256: a digest of the nodes and their codes.
        graph_digest, split_digest: of the run.
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
