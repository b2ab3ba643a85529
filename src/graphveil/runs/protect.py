"""One run in one folder: train, score, embed, and write the files people get.

| file | what is in it |
|---|---|
| `run.json` | configuration, versions, digests, seconds, scores, certificates; written last: its presence means done |
| `model.safetensors` | encoder, utility head and adversary of the selected round |
| `history.parquet` | losses and validation readings of every round |
| `embeddings.parquet` | the nodes' own ids and one column a dimension; `embeddings.npy` is the same as an array |
| `trained_on.parquet` | ids of the nodes whose classes the training saw, so that `embed` asks for others |
| `trained_links.parquet` | if links are kept or hidden, the ids of both ends of those that the training saw, likewise |
| `checkpoint.safetensors` | only while the run is unfinished |
| `last_good/` | only if the training diverged: the state before, as `Veil.load` reads it |
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from torch import Tensor
from torch_geometric.data import Data

from graphveil.auditing.certify import certificate_of
from graphveil.auditing.embeddings import check_embeddings, rows_digest
from graphveil.codes import Certificate
from graphveil.data import Split, digest
from graphveil.data.origin import node_ids, origin_of
from graphveil.data.summary import summary, unknown_counts
from graphveil.errors import DivergedError, GraphveilError
from graphveil.files import check_output_folder, hold_lock, write_atomically
from graphveil.runs.trained_on import TRAINED_LINKS, TRAINED_ON, TrainedOn
from graphveil.training.history import Round
from graphveil.training.loop import Training
from graphveil.training.score import Score
from graphveil.veil import Veil

CHECKPOINT = "checkpoint.safetensors"
LAST_GOOD = "last_good"
RESULTS = (
    "embeddings.parquet",
    "embeddings.npy",
    TRAINED_ON,
    TRAINED_LINKS,
    "history.parquet",
    "model.safetensors",
)
"""What is of no use without `run.json`."""


@dataclass(frozen=True)
class Run:
    """A finished run.

    Args:
        certificates: by secret, None where the embeddings have too many distinct rows for one.
    """

    veil: Veil
    score: Score
    z: Tensor
    seconds: float
    certificates: Mapping[str, Certificate | None]


def protect(
    veil: Veil,
    graph: Data,
    split: Split,
    out: Path,
    resume: bool = False,
    on_round: Callable[[Training], None] | None = None,
    source: Mapping[str, Any] | None = None,
) -> Run:
    """Train `veil` and write its files into `out`, going on from an unfinished run there if `resume`.

    Args:
        source: where graph and split came from, for whoever wants to have them again: {"graph": ..., "reading": ...,
            "split": ...}.
    """
    with hold_run(out):
        _check_folder(out, resume)
        started = time.perf_counter()
        try:
            veil.fit(graph, split, checkpoint=out / CHECKPOINT, on_round=on_round)
        except DivergedError as error:
            veil.save(out / LAST_GOOD)
            raise DivergedError(f"{error} It can be loaded from {out / LAST_GOOD}.") from error
        seconds = time.perf_counter() - started
        score = veil.score(graph, split)
        z = veil.transform(graph, split)
        matched_by = "labels" if veil.utility == "links" else veil.utility
        certificates = {secret: certificate_of(z, graph, split, secret, matched_by) for secret in veil.secrets}
        write_embeddings(out, node_ids(graph), z)
        TrainedOn.of(graph, split, (veil.utility, *veil.secrets)).write(out)
        write_history(out / "history.parquet", veil.history_)
        veil.save(
            out,
            {
                "scores": asdict(score),
                "seconds": round(seconds, 3),
                "rounds": len(veil.history_),
                "graph_digest": digest(graph),
                "split_digest": split.digest(),
                "message_edges": split.message_edges,
                "targets": list(split.targets),
                "reading": None,
                "encoding": asdict(origin_of(graph).encoding),
                "features": summary(graph),
                "ids_digest": ids_digest(node_ids(graph)),
                "unknown": unknown_counts(graph, split.targets),
                "audited_as": audited_as(z),
                "certificates": {
                    secret: found and found.to_dict() | {"sentence": found.sentence}
                    for secret, found in certificates.items()
                },
                **(source or {}),
            },
        )
        (out / CHECKPOINT).unlink(missing_ok=True)
    return Run(veil, score, z, seconds, certificates)


def hold_run(out: Path) -> AbstractContextManager[None]:
    """The lock of a folder to write a run into; one that was made for a run that fails at once goes again."""
    check_output_folder(out, ("run.json", CHECKPOINT, LAST_GOOD))
    busy = f"another process is writing to {out}: wait for it, or choose another folder."
    return hold_lock(out / ".lock", 0, busy, disposable=RESULTS)


def audited_as(z: Tensor) -> str | None:
    """What an audit of these embeddings says it is of; None where they cannot be audited, being all alike."""
    try:
        return rows_digest(check_embeddings(z, len(z)))
    except GraphveilError:
        return None


def ids_digest(ids: pa.Array) -> str:
    """A SHA-256 of ids in their order: an audit is of rows, and does not notice whose they are said to be."""
    return hashlib.sha256(json.dumps(ids.cast(pa.large_string()).to_pylist()).encode()).hexdigest()


def write_embeddings(out: Path, ids: pa.Array, z: Tensor) -> None:
    """`embeddings.parquet` (id, z0, z1, ...) and `embeddings.npy`."""
    array = z.numpy()
    columns = {"id": ids, **{f"z{i}": array[:, i] for i in range(array.shape[1])}}
    write_atomically(out / "embeddings.parquet", lambda temporary: pq.write_table(pa.table(columns), temporary))

    def write_npy(temporary: Path) -> None:
        with temporary.open("wb") as file:  # a file, since np.save would add a suffix to a name
            np.save(file, array, allow_pickle=False)

    write_atomically(out / "embeddings.npy", write_npy)


def write_history(path: Path, history: list[Round]) -> None:
    """One row a round."""
    table = pa.Table.from_pylist([done.row() for done in history])
    write_atomically(path, lambda temporary: pq.write_table(table, temporary))


def check_free(out: Path) -> None:
    """Refuse a folder with a finished run, or with somebody's own files."""
    if (out / "run.json").exists():
        raise GraphveilError(f"{out} holds a finished run: choose another folder, or remove this one first.")
    check_output_folder(out, (CHECKPOINT, LAST_GOOD))


def _check_folder(out: Path, resume: bool) -> None:
    if (out / "run.json").exists():
        (out / CHECKPOINT).unlink(missing_ok=True)  # left by a kill between the last two steps
    check_free(out)
    if (out / CHECKPOINT).exists() and not resume:
        raise GraphveilError(f"{out} holds an unfinished run: add --resume to go on with it, or choose another folder.")
