"""`protect`: train a veil, score it, and write its run folder."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from graphveil.auditing import Utility
from graphveil.auditing.certify import certificate_of
from graphveil.codes import Certificate
from graphveil.data import Split, digest
from graphveil.data.origin import node_ids, origin_of
from graphveil.data.summary import summary, unknown_counts
from graphveil.errors import DivergedError
from graphveil.processes import begin, has_begun, joined, launched
from graphveil.runs.audit import utility_of
from graphveil.runs.folder import RunFolder
from graphveil.runs.trained_on import TrainedOn
from graphveil.target import Target
from graphveil.training.inputs import pick_device
from graphveil.training.loop import Training
from graphveil.training.score import Score
from graphveil.veil import Veil


@dataclass(frozen=True)
class Run:
    """A finished run.

    Args:
        veil: the fitted veil.
        score: its utility, and its own attack on each secret, on the test part.
        z: the embeddings, (num_nodes, channels).
        seconds: how long the training took.
        certificates: the certificates by secret; None if the embeddings have too many distinct rows for one.
        utility: the test value of the utility with its chance level.
    """

    veil: Veil
    score: Score
    z: Tensor
    seconds: float
    certificates: Mapping[str, Certificate | None]
    utility: Utility


def protect(
    veil: Veil,
    graph: Data,
    split: Split,
    out: Path,
    resume: bool = False,
    on_round: Callable[[Training], None] | None = None,
    source: Mapping[str, Any] | None = None,
) -> Run:
    """Train `veil` and write its files into `out`.

    Args:
        veil: what to train.
        graph: the graph to train on.
        split: the split of its nodes and links.
        out: the folder to write.
        resume: continue an unfinished run in that folder.
        on_round: called after every round.
        source: where graph and split came from, so that they can be opened again: {"graph": ..., "reading": ...,
            "split": ...}.
    """
    folder = RunFolder(out)
    with folder.create():
        folder.check_startable(resume or has_begun(out))
        begin(out)
        started = time.perf_counter()
        try:
            with joined(pick_device(veil.device)):
                veil.fit(graph, split, checkpoint=folder.checkpoint, on_round=on_round)
        except DivergedError as error:
            veil.save(folder.last_good)
            raise DivergedError(f"{error} It can be loaded from {folder.last_good}.") from error
        seconds = time.perf_counter() - started
        z = veil.transform(graph, split)
        score = veil.score(graph, split, z)
        certificates = certify_secrets(veil, z, graph, split, veil.secrets)
        results = {
            "scores": asdict(score),
            "seconds": round(seconds, 3),
            "rounds": len(veil.history_),
            "processes": launched().size,
            "graph_digest": digest(graph),
            "split_digest": split.digest(),
            "message_edges": split.message_edges,
            "targets": list(split.targets),
            "reading": None,
            "encoding": asdict(origin_of(graph).encoding),
            "features": summary(graph),
            "unknown": unknown_counts(graph, split.targets),
            "certificates": plain_certificates(certificates),
            **(source or {}),
        }
        trained_on = TrainedOn.of(graph, split, (veil.utility, *veil.secrets))
        folder.write(veil, node_ids(graph), z, trained_on, results, veil.history_)
    return Run(veil, score, z, seconds, certificates, utility_of(veil.utility, score.utility, graph, split))


def take_part(veil: Veil, graph: Data, split: Split, out: Path) -> None:
    """Train together with the first of several processes, which calls `protect`, and write nothing.

    Args:
        veil: what to train, as in the first process.
        graph: likewise.
        split: likewise.
        out: likewise; this process does not need the folder.
    """
    with joined(pick_device(veil.device)):
        veil.fit(graph, split, checkpoint=RunFolder(out).checkpoint)


def certify_secrets(
    veil: Veil, z: Tensor, graph: Data, split: Split, secrets: tuple[str, ...]
) -> dict[str, Certificate | None]:
    """The certificate of each secret; class-matched links are matched by the classes that the veil keeps."""
    matched_by = Target.of(veil.utility).matched_by
    return {secret: certificate_of(z, graph, split, secret, matched_by) for secret in secrets}


def plain_certificates(certificates: Mapping[str, Certificate | None]) -> dict[str, Any]:
    """As `run.json` holds them."""
    return {
        secret: certificate and certificate.to_dict() | {"sentence": certificate.sentence}
        for secret, certificate in certificates.items()
    }
