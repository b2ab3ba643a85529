"""The ledger of a run: which codes of its nodes have been released.

`releases.json` in the folder of the run has one entry for each export of codes, and `releases/1.parquet`, ... have the
released code of each node, by the hash of its id. A second release of the same codes has an entry of its own and no new
file. The ledger is for the owner: it is never part of a release. `graphveil export --released-before` reads it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphveil.errors import GraphveilError
from graphveil.files import write_atomically
from graphveil.formats.release import Entry, LedgerRecord
from graphveil.formats.run import RunRecord
from graphveil.formats.store import read, reason, write
from graphveil.randomness import hashed_names
from graphveil.release.codes import Integers
from graphveil.runs.folder import LEDGER, RunFolder

FOLDER = "releases"
WAIT = 30.0
"""Seconds to wait for another process that writes to the folder of the run."""


@dataclass(frozen=True, eq=False)
class NodeCodes:
    """Hashed ids of nodes in ascending order, and the code of each, both (num_nodes,)."""

    nodes: Integers
    codes: Integers

    @classmethod
    def of(cls, ids: pa.Array, codes: Integers) -> "NodeCodes":
        """Build from ids and codes in the same order."""
        nodes = node_hashes(ids)
        order = np.argsort(nodes)
        return cls(nodes[order], codes[order])

    @property
    def sha256(self) -> str:
        """A digest of the nodes and their codes."""
        return hashlib.sha256(self.nodes.tobytes() + self.codes.tobytes()).hexdigest()

    def find(self, nodes: Integers) -> Integers:
        """The codes of nodes by their hashes, (n,); -1 for nodes without a code."""
        place = np.searchsorted(self.nodes, nodes).clip(max=len(self.nodes) - 1)
        found: Integers = np.where(self.nodes[place] == nodes, self.codes[place], -1)
        return found


@dataclass(frozen=True, eq=False)
class Released:
    """Codes that have been released.

    Args:
        codes: the codes of nodes.
        graph: the digest of the graph of their run.
        split: the digest of the split of their run.
        same_run: whether they are from the run that is now exported.
    """

    codes: NodeCodes
    graph: str
    split: str
    same_run: bool = False


def node_hashes(ids: pa.Array) -> Integers:
    """A number for each id, (num_nodes,), by which nodes of different runs are matched."""
    hashes: Integers = hashed_names("", ids.cast(pa.string()).to_pylist()).numpy()
    return hashes


def read_ledger(run: Path) -> list[Released]:
    """The different codes that the ledger of a run lists, in the order of their first release."""
    found = dict[str, Released]()
    try:
        for entry in _entries(run):
            if entry.codes_sha256 in found:
                continue
            codes = _read_codes(run / FOLDER / f"{entry.codes}.parquet")
            if codes.sha256 != entry.codes_sha256:
                raise ValueError(f"{FOLDER}/{entry.codes}.parquet was changed after it was written")
            found[entry.codes_sha256] = Released(codes, entry.graph_digest, entry.split_digest)
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise GraphveilError(
            f"the ledger {run / LEDGER} cannot be read ({reason(error)}): restore it and {run / FOLDER} from a backup,"
            " since they say which codes have been released."
        ) from error
    return list(found.values())


def record_release(run: Path, codes: NodeCodes, record: RunRecord, files: Sequence[str], pseudonymous: bool) -> None:
    """Add a release to the ledger of a run.

    Args:
        run: the folder of the run.
        codes: the released codes.
        record: the content of run.json.
        files: names of the released files.
        pseudonymous: whether ids were replaced by pseudonyms.
    """
    with RunFolder(run).edit(WAIT):
        read_ledger(run)  # refuse to add to a ledger that cannot be read
        entries = _entries(run)
        numbers = {entry.codes_sha256: entry.codes for entry in entries}
        number = numbers.get(codes.sha256, max(numbers.values(), default=0) + 1)
        if codes.sha256 not in numbers:
            table = pa.table({"node": codes.nodes, "code": codes.codes})
            write_atomically(run / FOLDER / f"{number}.parquet", lambda temporary: pq.write_table(table, temporary))
        entry = Entry(
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            files=tuple(files),
            secrets=record.config.secrets,
            pseudonyms=pseudonymous,
            codes=number,
            codes_sha256=codes.sha256,
            graph_digest=record.graph_digest,
            split_digest=record.split_digest,
        )
        write(run / LEDGER, LedgerRecord((*entries, entry)))


def _entries(run: Path) -> tuple[Entry, ...]:
    return read(run / LEDGER, LedgerRecord).releases if (run / LEDGER).exists() else ()


def _read_codes(file: Path) -> NodeCodes:
    table = pq.read_table(file, columns=["node", "code"])
    nodes, codes = (table[name].to_numpy() for name in ("node", "code"))
    if nodes.dtype != np.int64 or codes.dtype != np.int64 or not len(nodes):
        raise ValueError(f"{file.name} does not hold the codes of nodes")
    return NodeCodes(nodes, codes)
