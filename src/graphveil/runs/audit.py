"""Audit a finished run in its folder, beside other encoders of its kind, or embeddings in any file."""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from graphveil.auditing import Audit, Context, Effort, Utility, audit, read_embeddings
from graphveil.auditing.panel import early_attacks, resolve_panel, resolve_secret
from graphveil.auditing.result import answers_beside
from graphveil.data import UNKNOWN, Split, node_classes
from graphveil.data.origin import node_ids
from graphveil.errors import GraphveilError
from graphveil.formats.run import RunRecord
from graphveil.runs.controls import Controls, encoder_controls, feature_columns, without_feature
from graphveil.runs.folder import RunFolder
from graphveil.runs.graphs import Source, graph_of, with_columns
from graphveil.runs.trained_on import too_few
from graphveil.target import CHANCE_AUC, LINKS, Target
from graphveil.training.objectives import CODES


def audit_run(
    path: Path,
    secrets: Sequence[str] = (),
    attacks: str | None = None,
    root: Path | None = None,
    controls: bool = True,
    effort: Effort | None = None,
    bins: Mapping[str, int] | None = None,
    by: Sequence[str] = (),
    *,
    resume: bool = False,
) -> dict[Path, Audit]:
    """Audit the run in a folder once for each secret, and write the audits there.

    The answers of finished attacks are kept in the folder until the last audit is written.

    Args:
        path: the folder of the run.
        secrets: the run's own by default, or any other columns of its tables.
        attacks: "full" or "quick".
        root: the folder of the graph's raw files.
        controls: attack other encoders too; see `encoder_controls`.
        effort: the time budget and the number of processes.
        bins: as in `ReadOptions`, for secrets and groups that are no targets of the run.
        by: columns of its tables to group the strongest attack's results by.
        resume: use the answers that an interrupted audit of these embeddings has kept.

    Returns:
        The audits by their files.
    """
    folder = RunFolder(path)
    effort = replace(effort or Effort(), started=time.perf_counter(), unfinished=folder.unfinished_audit)
    record = folder.record()
    config = record.config
    trained_on, split = graph_of(folder, record, root)
    graph = with_columns(trained_on, Source.of(record), secrets, by, bins or {})
    z = folder.embeddings_of(node_ids(graph))
    contexts = _contexts(record, secrets or config.secrets, graph, split)
    for name, context in contexts.items():  # refuse before anything is trained
        if Target.of(name).is_links and (fault := too_few(graph, split, name)) is not None:
            raise GraphveilError(f"{name} cannot be audited: {fault}")
        if name not in (LINKS, *record.targets):
            _check_known(graph, split, name, record)
        resolve_panel(attacks, resolve_secret(name, graph, split, config.seed, context))
    audits = {}
    with folder.edit():
        if not resume:
            _remove(folder.unfinished_audit)
        others = Controls()
        features = [name for name in contexts if feature_columns(trained_on, name)]
        if controls and attacks != "quick":
            if effort.on_attack is not None:
                effort.on_attack("training encoders as controls", 0, 1)

            def attack_meanwhile() -> list[partial[None]]:
                return [
                    attack
                    for name, context in contexts.items()
                    for attack in early_attacks(z, graph, split, name, attacks, config.seed, context, effort)
                ]

            others = encoder_controls(folder, trained_on, split, features, effort.jobs, attack_meanwhile)
        of_others = {without_feature(name): name for name in contexts}
        for name, context in contexts.items():
            own = {title: rows for title, rows in others.embeddings.items() if of_others.get(title, name) == name}
            given = (f"{name} is one of the features that the encoder was given",) if name in features else ()
            utility = None if context.utility is None else replace(context.utility, unprotected=others.utility)
            about = replace(context, utility=utility, notes=(*others.notes, *given), overlaps=_overlaps(record, name))
            file = folder.audit_file(name, config.secrets)
            audits[file] = audit(z, graph, split, name, attacks, config.seed, own, about, effort, by=by)
            audits[file].save(file)
        _remove(folder.unfinished_audit)
    return audits


def _remove(folder: Path) -> None:
    """Remove the answers of an unfinished audit, but nothing behind a link."""
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _contexts(record: RunRecord, secrets: Sequence[str], graph: Data, split: Split) -> dict[str, Context]:
    """What the record of a run says beside its embeddings, for the audit of each secret."""
    config, scores = record.config, record.scores
    utility = None if scores.utility is None else utility_of(config.utility, scores.utility, graph, split)
    joint = {} if config.objective == CODES else {own.secret: own.value for own in scores.secrets}
    return {name: Context(joint.get(name), utility) for name in secrets}


def audit_embeddings_file(
    file: Path,
    graph: Data,
    split: Split,
    secret: str,
    seed: int,
    out: Path,
    attacks: str | None = None,
    effort: Effort | None = None,
    by: Sequence[str] = (),
) -> Audit:
    """Audit embeddings that lie in a file, and write the audit to `out`."""
    if file.resolve() in (out.resolve(), answers_beside(out).resolve()):
        raise GraphveilError(f"--out {out} would overwrite the embeddings in {file}: choose another name.")
    z = read_embeddings(file, node_ids(graph))
    found = audit(z, graph, split, secret, attacks=attacks, seed=seed, effort=effort, by=by)
    found.save(out)
    return found


def _check_known(graph: Data, split: Split, name: str, record: RunRecord) -> None:
    """Refuse a secret of which too little is known among the nodes that the run was split into."""
    known = node_classes(graph, name).cpu() != UNKNOWN
    for part, nodes in (("training", split.train_nodes), ("validation", split.val_nodes), ("test", split.test_nodes)):
        if not known[nodes].any():
            raise GraphveilError(
                f"{name!r} is known for none of the {part} nodes of this run, which was split by"
                f" {' and '.join(record.targets)}: audit its embeddings.parquet with --embeddings, --graph and"
                f" --secret {name}, which draws a new split."
            )


def _overlaps(record: RunRecord, secret: str) -> tuple[str, ...]:
    """Why an audit of embeddings by an earlier encoder may understate what they reveal."""
    what = Target.of(secret).examples
    if record.embedded is None or what not in record.embedded.not_recorded:
        return ()
    return (f"{what} that the encoder was trained on may be in the test part, and embeddings reveal less about them",)


def utility_of(name: str, value: float, graph: Data, split: Split, unprotected: float | None = None) -> Utility:
    """The test value of a utility with its chance level, beside that of the unprotected encoder, if known."""
    if Target.of(name).is_links:
        return Utility(name, value, CHANCE_AUC, 2 * split.test_links.size(1), unprotected)
    y = node_classes(graph, name)[split.test_nodes]
    shares = np.bincount(y[y != UNKNOWN].numpy())
    return Utility(name, value, float(shares.max() / shares.sum()), int(shares.sum()), unprotected)
