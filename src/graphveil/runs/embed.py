"""Apply a trained encoder to new nodes, or to a newer graph, and say where that graph is unlike the one it knows.

The folder that is written is like a run's, so that `graphveil audit`, `report` and `export` take it. Its readings are
its own: messages pass along all links, and whoever wants to know what leaks must audit it anew.

Codes stay: a node that has a code in the run keeps it, and the new folder holds the codes of old and new nodes, so that
a later graph embedded from there keeps all of them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphveil.auditing import Utility
from graphveil.data import Split, digest
from graphveil.data.datasets.catalog import is_named, open_graph
from graphveil.data.graph import UNKNOWN, node_classes
from graphveil.data.origin import Encoding, ReadOptions, node_ids, origin_of
from graphveil.data.readers.find import are_tables
from graphveil.data.summary import differences, summary, unknown_counts
from graphveil.errors import GraphveilError
from graphveil.formats.run import RunRecord
from graphveil.runs.audit import utility_of
from graphveil.runs.folder import RunFolder
from graphveil.runs.protect import certify_secrets, plain_certificates
from graphveil.runs.trained_on import TrainedOn, exclude_trained, too_few
from graphveil.target import BUILT_IN, LINKS, Target
from graphveil.training.objectives import CODES
from graphveil.training.score import score_codes
from graphveil.training.targets import chance_level, utility_target
from graphveil.training.targets import evaluate as evaluate_target
from graphveil.veil import Veil


@dataclass(frozen=True)
class Embedded:
    """Embeddings that the encoder of a run has computed for another graph.

    Args:
        folder: the folder that was written.
        z: the embeddings, (num_nodes, channels).
        known: how many nodes of this graph are also nodes of the run, by their ids.
        secrets: the secrets of the run that can be audited on this graph.
        unseen: a sentence for each other secret of the run.
        warnings: a sentence for each difference between this graph and that of the run.
        kept_codes: how many nodes kept the code that they have in the run; None for a run without codes.
        utility: the test value of the utility on this graph; None if it cannot be evaluated.
    """

    folder: Path
    z: Tensor
    known: int
    secrets: tuple[str, ...]
    unseen: tuple[str, ...]
    warnings: tuple[str, ...]
    kept_codes: int | None
    utility: Utility | None


def embed(
    run: str | Path,
    graph: str,
    out: str | Path,
    otherwise: Mapping[str, Any] | None = None,
    root: Path | None = None,
    device: str = "auto",
) -> Embedded:
    """Embed `graph` with the encoder of `run`, and write the embeddings as a run folder.

    Args:
        run: the folder of a finished run.
        graph: the name of a graph, a file or a folder.
        out: the folder to write.
        otherwise: fields of `ReadOptions` that override those of the run, by name.
        root: the folder of the raw files of a named graph.
        device: "cpu", "cuda" or "auto".

    Returns:
        The embeddings, and how the graph differs from that of the run.
    """
    run, out = Path(run), Path(out)
    trained, folder = RunFolder(run), RunFolder(out)
    folder.check_free()
    record, veil = trained.record(), trained.veil()
    veil.device = device
    encoding = _encoding(run, record)
    named = is_named(graph)
    reading = ReadOptions(**otherwise or {}) if named else _reading(record, graph, otherwise or {})
    opened = open_graph(graph, reading, root, encoding=encoding)
    warnings = [*origin_of(opened).differences, *_unlike(record, opened, encoding)]
    z, kept_codes = veil.transform(opened), None
    trained_on = trained.trained_on()
    not_recorded = trained_on.not_recorded((veil.utility, *veil.secrets))
    warnings += [
        f"The run does not record which {what} it was trained on, so the test part may contain some of them."
        for what in not_recorded
    ]
    parts = _parts(veil, opened, trained_on)
    certificates = {} if parts.split is None else certify_secrets(veil, z, opened, parts.split, parts.secrets)
    scores = _scores(veil, opened, parts, z)
    utility = None
    if parts.split is not None and scores["utility"] is not None:
        utility = utility_of(veil.utility, scores["utility"], opened, parts.split)
    results = {
        "scores": scores,
        "graph": graph if named else str(Path(graph).expanduser().resolve()),
        "reading": None if named else asdict(origin_of(opened).reading),
        "encoding": record.encoding,
        "features": summary(opened),
        "unknown": unknown_counts(opened, parts.targets),
        "certificates": plain_certificates(certificates),
        "split": "proportional",
        "targets": parts.targets or [LINKS],
        "graph_digest": digest(opened),
        "split_digest": "" if parts.split is None else parts.split.digest(),
        "message_edges": "all",
        "embedded": {"run": trained.model_digest, "warnings": warnings, "not_recorded": not_recorded},
    }
    if veil.objective == CODES:
        kept_codes = veil.adopt(opened)
    with folder.create():
        folder.check_free()
        folder.write(veil, node_ids(opened), z, trained_on, results)
    known = _known(trained, opened)
    return Embedded(out, z, known, parts.secrets, parts.unseen, tuple(warnings), kept_codes, utility)


@dataclass(frozen=True, eq=False)
class _Parts:
    """What can be evaluated on a graph.

    Args:
        targets: the run's targets that the graph has.
        evaluated: those of them with enough nodes or links that are new to the encoder.
        secrets: the secrets among these.
        unseen: a sentence for each secret that is not among these.
        split: the split of the graph; None if it cannot be split.
    """

    targets: list[str]
    evaluated: list[str]
    secrets: tuple[str, ...]
    unseen: tuple[str, ...]
    split: Split | None


def _parts(veil: Veil, graph: Data, seen: TrainedOn) -> _Parts:
    faults = {name: _fault(graph, name) for name in (veil.utility, *veil.secrets)}
    targets = [name for name, fault in faults.items() if fault is None]
    try:
        split = Split.proportional(graph, veil.seed, message_edges="all", targets=targets or [LINKS])
    except GraphveilError as error:
        return _Parts(targets, [], (), tuple(_unaudited(name, str(error)) for name in veil.secrets), None)
    split = exclude_trained(split, graph, seen)
    faults |= {name: too_few(graph, split, name) for name in targets}
    evaluated = [name for name, fault in faults.items() if fault is None]
    unseen = tuple(_unaudited(name, str(faults[name])) for name in veil.secrets if name not in evaluated)
    return _Parts(targets, evaluated, tuple(name for name in veil.secrets if name in evaluated), unseen, split)


def _fault(graph: Data, name: str) -> str | None:
    """Why a target cannot be evaluated on this graph."""
    if Target.of(name).is_links:
        return None
    try:
        classes = node_classes(graph, name)
    except GraphveilError as error:
        return str(error)
    different = classes[classes != UNKNOWN].unique().numel()
    return None if different > 1 else f"{different} of its classes is known here, and two are needed."


def _unaudited(name: str, fault: str) -> str:
    return f"{name} {'were' if name in BUILT_IN else 'was'} not audited: {fault}"


def _scores(veil: Veil, graph: Data, parts: _Parts, z: Tensor) -> dict[str, Any]:
    """The utility's own head on this graph, and the adversaries if none of their secrets is missing.

    Where links are kept, messages pass along a part of them alone here: the links that are scored must be new.
    """
    if parts.split is None or veil.utility not in parts.evaluated:
        return {"utility": None, "utility_metric": None, "utility_chance": None, "secrets": []}
    split = parts.split.without_held_out_links(veil.utility)
    if split.message_edges != parts.split.message_edges:
        z = veil.transform(graph, split)
    if not parts.unseen:
        return asdict(veil.score(graph, split))
    utility = utility_target(veil.utility, graph, [split], torch.device("cpu"))
    if veil.objective == CODES:
        return asdict(score_codes(veil.codes(graph, split), veil.book, utility, {}))
    value = float(evaluate_target(utility, veil.modules_["utility"].cpu(), z, utility.test))
    chance = float(chance_level(utility, utility.test))
    return {"utility": value, "utility_metric": utility.target.metric, "utility_chance": chance, "secrets": []}


def _reading(record: RunRecord, graph: str, given: Mapping[str, Any]) -> ReadOptions:
    """As the run's graph was read, but for what is given; its own table of nodes and its bins are not this graph's.

    Nor are the names of its columns where one is of tables, and the other a file of one piece.
    """
    before = ReadOptions() if record.reading is None else ReadOptions(**record.reading)
    if are_tables(Path(record.graph)) != are_tables(Path(graph).expanduser()):
        before = replace(before, source=None, target=None, id=None, label=None)
    nodes = {"nodes": str(Path(given["nodes"]).expanduser().resolve())} if given.get("nodes") else {}
    return replace(before, **{"nodes": None, "bins": {}} | dict(given) | nodes)


def _encoding(run: Path, record: RunRecord) -> Encoding | None:
    """How the run's columns became features; None where it had a graph that was not read from tables."""
    try:
        encoding = None if record.encoding is None else Encoding.from_plain(record.encoding)
        learned = record.reading is not None and record.reading.get("missing") == "embedding"
    except (KeyError, TypeError, AttributeError) as error:
        raise GraphveilError(f"{run} does not say how its features were made ({error}): train it again.") from error
    if learned and (encoding is None or not encoding.columns):
        raise GraphveilError(
            f"{run} has learned features per node, so it cannot embed other nodes:"
            " train it again on this graph, or with --missing degree."
        )
    return encoding


def _unlike(record: RunRecord, graph: Data, encoding: Encoding | None) -> list[str]:
    try:
        return differences(record.features, graph, encoding or Encoding())
    except (KeyError, TypeError, ValueError):
        return ["The run does not say what its features looked like, so that nothing can be compared."]


def _known(run: RunFolder, graph: Data) -> int:
    """The number of nodes whose ids the run has too."""
    try:
        before = run.embeddings().ids
    except GraphveilError:
        return 0
    return int(pc.sum(pc.is_in(node_ids(graph).cast("string"), value_set=before.cast("string"))).as_py() or 0)
