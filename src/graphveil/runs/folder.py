"""`RunFolder`: read and write every file of a run, with its lock and digests.

| file | content |
|---|---|
| `run.json` | configuration, versions, digests, seconds, scores, certificates; written last |
| `model.safetensors` | encoder, utility head and adversaries of the selected round, or encoder and code book |
| `history.parquet` | losses and validation metrics of every round |
| `embeddings.parquet` | the ids of the input graph (`id`) and one column for each dimension (`z0`, `z1`, ...) |
| `trained_on.parquet` | ids of the nodes whose classes were used in training; `embed` evaluates on others |
| `trained_links.parquet` | if links are kept or hidden, both ends of the links that were used in training |
| `audit.json`, `audit.NAME.json` | the audit of the first secret, and of every further secret |
| `audit.answers.safetensors`, ... | the answers of every attack of that audit |
| `audit.unfinished/` | only while an audit is unfinished: the answers of its finished attacks |
| `limits.json` | after `graphveil tune`: the limits of the search that chose the run |
| `controls.safetensors` | embeddings of other encoders that an audit compares with |
| `releases.json`, `releases/` | the codes that have been released; see `graphveil.release.ledger` |
| `checkpoint.safetensors` | only while the run is unfinished |
| `last_good/` | only if the training diverged: the state before, as `Veil.load` reads it |
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor

from graphveil.auditing.embeddings import check_embeddings, rows_digest
from graphveil.errors import GraphveilError, first_line
from graphveil.files import check_output_folder, hold_lock, sha256, write_atomically, write_tensors
from graphveil.formats.limits import LimitsRecord
from graphveil.formats.run import Config, RunRecord, read_run
from graphveil.formats.store import read_sealed, reason, write_sealed
from graphveil.runs.trained_on import TRAINED_LINKS, TRAINED_ON, TrainedOn
from graphveil.target import Target
from graphveil.training.history import Round
from graphveil.training.objectives import CODES
from graphveil.veil import Veil

RECORD, MODEL, EMBEDDINGS, HISTORY = "run.json", "model.safetensors", "embeddings.parquet", "history.parquet"
CHECKPOINT, LAST_GOOD, CONTROLS = "checkpoint.safetensors", "last_good", "controls.safetensors"
UNFINISHED_AUDIT, LEDGER, LIMITS = "audit.unfinished", "releases.json", "limits.json"
NEEDS_RECORD = (EMBEDDINGS, TRAINED_ON, TRAINED_LINKS, HISTORY, MODEL)
"""Files that are removed if a run fails before `run.json` is written."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Rows `z` of shape (num_nodes, channels), float32, and one id per row.

    Args:
        ids: those of the input graph.
        z: the embeddings.
        signs: 1 or -1 for each column, (channels,): the score of a link is the sum of signs * z_u * z_v. None if links
            are not scored.
    """

    ids: pa.Array
    z: NDArray[np.float32]
    signs: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run.

    Args:
        path: the path of the folder, which may not exist yet.
    """

    path: Path

    # ----- writing ----------------------------------------------------------------------------------------------------

    @property
    def checkpoint(self) -> Path:
        """The file of an unfinished training."""
        return self.path / CHECKPOINT

    @property
    def unfinished_audit(self) -> Path:
        """The folder with the answers of an unfinished audit."""
        return self.path / UNFINISHED_AUDIT

    @property
    def has_releases(self) -> bool:
        """Whether codes of the run have been released; see `graphveil.release.ledger`."""
        return (self.path / LEDGER).exists()

    @property
    def last_good(self) -> Path:
        """Where the last good state of a training that diverged is saved."""
        return self.path / LAST_GOOD

    def create(self) -> AbstractContextManager[None]:
        """Lock the folder for a new run. If the run fails immediately, a newly created folder is removed."""
        check_output_folder(self.path, (RECORD, CHECKPOINT, LAST_GOOD))
        busy = f"another process is writing to {self.path}: wait for it, or choose another folder."
        return hold_lock(self.path / ".lock", 0, busy, disposable=NEEDS_RECORD)

    def edit(self, wait: float = 0) -> AbstractContextManager[None]:
        """Lock the folder of a finished run, to add files.

        Args:
            wait: seconds to wait for another process.
        """
        return hold_lock(self.path / ".lock", wait, f"another process is writing to {self.path}: wait for it.")

    def check_free(self) -> None:
        """Refuse a folder with a finished run, or with somebody's own files."""
        if (self.path / RECORD).exists():
            raise GraphveilError(f"{self.path} holds a finished run: choose another folder, or remove this one first.")
        check_output_folder(self.path, (CHECKPOINT, LAST_GOOD))

    def check_startable(self, resume: bool) -> None:
        """Refuse a folder with a finished run and, unless `resume`, one with an unfinished run."""
        if (self.path / RECORD).exists():
            self.checkpoint.unlink(missing_ok=True)  # the process was killed before it could remove it
        self.check_free()
        if self.checkpoint.exists() and not resume:
            raise GraphveilError(
                f"{self.path} holds an unfinished run: add --resume to continue it, or choose another folder."
            )

    def write(
        self,
        veil: Veil,
        ids: pa.Array,
        z: Tensor,
        trained_on: TrainedOn,
        results: Mapping[str, Any],
        history: Sequence[Round] = (),
    ) -> None:
        """Write all files of a run, `run.json` last.

        Args:
            veil: the fitted veil.
            ids: those of the input graph.
            z: the embeddings.
            trained_on: the nodes and links that were used in training.
            results: more fields for `run.json`, such as scores.
            history: the history of the training; empty for a folder of `embed`.
        """
        write_embeddings(self.path / EMBEDDINGS, ids, z.numpy())
        trained_on.write(self.path)
        if history:
            _write_table(self.path / HISTORY, pa.Table.from_pylist([done.row() for done in history]))
        digests = {"ids_digest": ids_digest(ids), "audited_as": embeddings_digest(z)}
        veil.save(self.path, digests | dict(results))
        self.checkpoint.unlink(missing_ok=True)

    def write_controls(self, controls: Mapping[str, Tensor], utility: float | None) -> None:
        """Keep the embeddings of encoders that an audit compares with, by name.

        Args:
            controls: the embeddings.
            utility: the test value of the encoder that was trained without protection, or None without one.
        """
        about = {"run": self.record_digest} | ({} if utility is None else {"utility": repr(utility)})
        write_tensors(self.path / CONTROLS, controls, about)

    def write_limits(self, limits: LimitsRecord) -> None:
        """Keep the limits of the search that chose the run, in place of those of an earlier search."""
        write_sealed(self.path / LIMITS, limits)

    # ----- reading ----------------------------------------------------------------------------------------------------

    @property
    def record_digest(self) -> str:
        """A digest of `run.json`, which identifies the run."""
        return sha256(self.path / RECORD)

    @property
    def model_digest(self) -> str:
        """A digest of the weights."""
        return sha256(self.path / MODEL)

    def record(self) -> RunRecord:
        """The content of `run.json`, validated."""
        return read_run(self.path)

    def veil(self) -> Veil:
        """The fitted veil; refused if it has custom modules."""
        return Veil.load(self.path)

    def trained_on(self) -> TrainedOn:
        """The nodes and links that were used in training."""
        return TrainedOn.read(self.path)

    def embeddings(self) -> Embeddings:
        """The embeddings and their ids."""
        file = self.path / EMBEDDINGS
        try:
            if file.exists() and not file.is_file():
                raise ValueError("it is not a plain file")  # a pipe might never end
            table = pq.read_table(file)
            columns = [f"z{i}" for i in range(table.num_columns - 1)]
            if not columns or table.column_names != ["id", *columns]:
                strange = [name for name in table.column_names if name not in ("id", *columns)] or table.column_names
                raise ValueError(f"expected the columns id, z0, z1, ..., found {strange[0][:40]!r}")
            ids = table["id"].combine_chunks()
            if pa.types.is_dictionary(ids.type):
                ids = ids.dictionary_decode()
            if ids.null_count or len(ids.unique()) != len(ids):
                raise ValueError("some ids are missing or not unique")
            ids.cast(pa.large_string())  # most formats of a release write ids as text
            z = np.stack([table[name].to_numpy() for name in columns], axis=1)
            if z.dtype != np.float32 or not len(z):
                raise ValueError(f"expected rows of float32, found {len(z)} rows of {z.dtype}")
        except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
            raise GraphveilError(
                f"{file} cannot be read as the embeddings of a run ({first_line(error)}): expected the file of"
                " `graphveil protect`."
            ) from error
        return Embeddings(ids, z)

    def embeddings_of(self, ids: pa.Array) -> NDArray[np.float32]:
        """The embeddings of these nodes, (num_nodes, channels), refused if ids or their order differ."""
        embeddings = self.embeddings()
        if not embeddings.ids.cast(pa.large_string()).equals(ids.cast(pa.large_string())):
            raise GraphveilError(
                f"{self.path / EMBEDDINGS} has {len(embeddings.z):,} rows, and their ids are not those of the"
                f" {len(ids):,} nodes of the run's graph: restore the file, or train the run again."
            )
        return embeddings.z

    def link_signs(self, config: Config, channels: int) -> NDArray[np.float32] | None:
        """The signs of the columns, (channels,), with which a run of codes scores links; None for other runs."""
        if config.objective != CODES or not Target.of(config.utility).is_links:
            return None
        file = self.path / MODEL
        try:
            with safe_open(file, "np") as tensors:
                signs = np.asarray(tensors.get_tensor("book.signs"), dtype=np.float32)
            if signs.shape != (channels,) or not np.isin(signs, (-1, 1)).all():
                raise ValueError(f"expected {channels} signs")
        except (OSError, ValueError, SafetensorError) as error:
            raise GraphveilError(
                f"{file} has no signs for the {channels} columns of the embeddings ({error}), so links cannot be"
                " scored: restore the file, or train the run again."
            ) from error
        return signs

    def controls(self) -> tuple[dict[str, Tensor], float | None]:
        """What `write_controls` has kept; nothing if there is no such file, or if it belongs to another run."""
        try:
            with safe_open(self.path / CONTROLS, "pt") as kept:
                about = kept.metadata() or {}
                if about.get("run") != self.record_digest:
                    return {}, None
                utility = float(about["utility"]) if "utility" in about else None
                return {name: kept.get_tensor(name) for name in kept.keys()}, utility  # noqa: SIM118 - not a dict
        except (OSError, ValueError, SafetensorError):
            return {}, None

    def limits(self) -> LimitsRecord | None:
        """The limits of the search that chose the run; None for a run without them.

        Raises:
            GraphveilError: if they cannot be read. The card of a release may quote the sentence, so it has no path.
        """
        try:
            return read_sealed(self.path / LIMITS, LimitsRecord)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise GraphveilError(
                f"the limits of the search cannot be read ({LIMITS}: {reason(error)}): repeat the search."
            ) from error

    def audit_file(self, secret: str, secrets: Sequence[str]) -> Path:
        """The file of a secret's audit: `audit.json` for the first secret of the run, `audit.NAME.json` for the others.

        Args:
            secret: the audited secret.
            secrets: the secrets of the run.
        """
        if secret == secrets[0]:
            return self.path / "audit.json"
        plain = re.sub("[^a-z0-9]+", "-", secret.lower()).strip("-")[:40]
        suffix = "" if plain == secret else f"-{hashlib.sha256(secret.encode()).hexdigest()[:8]}"
        return self.path / f"audit.{plain}{suffix}.json"


def write_embeddings(file: Path, ids: pa.Array, z: NDArray[np.float32]) -> None:
    """Write a table of embeddings: the ids (`id`), and one column for each dimension (`z0`, `z1`, ...).

    Args:
        file: the Parquet file.
        ids: the ids of the nodes.
        z: embeddings of shape (num_nodes, channels).
    """
    _write_table(file, pa.table({"id": ids, **{f"z{i}": z[:, i] for i in range(z.shape[1])}}))


def _write_table(file: Path, table: pa.Table) -> None:
    write_atomically(file, lambda temporary: pq.write_table(table, temporary))


def embeddings_digest(z: Tensor | NDArray[np.float32]) -> str | None:
    """The digest by which `audit.json` identifies its embeddings; None if they cannot be audited."""
    try:
        return rows_digest(check_embeddings(z, len(z)))
    except GraphveilError:
        return None


def ids_digest(ids: pa.Array) -> str:
    """A SHA-256 of ids in their order, since the digest of embeddings does not cover ids."""
    return hashlib.sha256(json.dumps(ids.cast(pa.large_string()).to_pylist()).encode()).hexdigest()
