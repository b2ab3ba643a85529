"""Audit a finished run in its folder: its embeddings, beside those of encoders of the same kind.

Writes `audit.json` and `audit.answers.safetensors` (raw answers), and the like for every other secret; the controls are
kept in `controls.safetensors`, so that a second audit does not train them again.
"""

import copy
import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch_geometric.data import Data

from graphveil.auditing import Audit, Context, Effort, Utility, audit, read_embeddings
from graphveil.auditing.groups import check_columns
from graphveil.auditing.panel import resolve_panel, resolve_secret
from graphveil.auditing.result import answers_beside
from graphveil.data import UNKNOWN, Split, check_targets, digest, node_classes
from graphveil.data.datasets.catalog import open_graph
from graphveil.data.origin import Encoding, ReadOptions, node_ids, origin_of
from graphveil.data.readers.features import sources_of
from graphveil.data.splits.split import draw_split
from graphveil.errors import GraphveilError
from graphveil.files import hold_lock, read_json, write_tensors
from graphveil.formats.run import SCHEMA
from graphveil.randomness import stream
from graphveil.runs.trained_on import TrainedOn, exclude_trained, too_few
from graphveil.training.objectives import CODES
from graphveil.veil import Veil, start

CONTROLS = "controls.safetensors"
REFITTED = "this run from another seed"
NEEDED = ("graph", "graph_digest", "reading", "encoding", "split", "split_digest", "targets", "message_edges", "scores")


def audit_run(
    folder: Path,
    secrets: Sequence[str] = (),
    attacks: str | None = None,
    root: Path | None = None,
    controls: bool = True,
    effort: Effort | None = None,
    bins: Mapping[str, int] | None = None,
    by: Sequence[str] = (),
) -> dict[Path, Audit]:
    """Audit what lies in `folder`, once for each secret, and write the audits there; gives them by their files.

    Args:
        secrets: the run's own by default, or any other columns of its tables. attacks: "full" or "quick".
        root: of the graph's raw files. bins: as of `ReadOptions`, for secrets and groups that are not the run's own.
        controls: attack other encoders too, which are trained if they have not been: see `encoder_controls`.
        by: columns of its tables to group the strongest attack's results by.
    """
    effort = replace(effort or Effort(), started=time.perf_counter())
    record = read_record(folder)
    config = record["config"]
    trained_on, split = graph_of(folder, record, root)
    check_columns(trained_on, by, _readable(trained_on, record))
    graph = _with_classes(trained_on, record, (*secrets, *by), bins or {})
    z = read_embeddings(folder / "embeddings.npy", node_ids(graph))
    kept = record["scores"]["utility"]
    utility = None if kept is None else utility_of(config["utility"], kept, graph, split)
    no_adversary = config["objective"] == CODES
    joint = {} if no_adversary else {told["secret"]: told["value"] for told in record["scores"]["secrets"]}
    contexts = {name: Context(joint.get(name), utility) for name in secrets or config["secrets"]}
    for name, context in contexts.items():  # refuse before anything is trained
        if name == "links" and (fault := too_few(graph, split, name)) is not None:
            raise GraphveilError(f"links cannot be audited: {fault}")
        if name not in ("links", *record["targets"]):
            _check_known(graph, split, name, record)
        resolve_panel(attacks, resolve_secret(name, graph, split, config["seed"], context))
    found = {}
    with hold_lock(folder / ".lock", 0, f"another process is writing to {folder}: wait for it."):
        encoders: dict[str, Tensor] = {}
        notes: tuple[str, ...] = ()
        if controls and attacks != "quick":
            if effort.on_attack is not None:
                effort.on_attack("training encoders as controls", 0, 1)
            given = [name for name in contexts if _feature_columns(trained_on, name)]
            encoders, notes = encoder_controls(folder, trained_on, split, given)
        for name, context in contexts.items():
            beside = {title: rows for title, rows in encoders.items() if title not in map(_without, contexts)}
            beside |= {title: rows for title, rows in encoders.items() if title == _without(name)}
            said = replace(context, notes=(*notes, *_a_feature(trained_on, name)), doubts=_seen_before(record, name))
            one = audit(z, graph, split, name, attacks, config["seed"], beside, said, effort, by=by)
            file = audit_path(folder, name, config["secrets"])
            one.save(file)
            found[file] = one
    return found


def audit_path(folder: Path, secret: str, secrets: Sequence[str]) -> Path:
    """Where the audit of a secret lies: the run's first in `audit.json`, any other under a name made from its own."""
    if secret == secrets[0]:
        return folder / "audit.json"
    plain = re.sub("[^a-z0-9]+", "-", secret.lower()).strip("-")[:40]
    mark = "" if plain == secret else f"-{hashlib.sha256(secret.encode()).hexdigest()[:8]}"
    return folder / f"audit.{plain}{mark}.json"


def graph_of(folder: Path, record: Mapping[str, Any], root: Path | None = None) -> tuple[Data, Split]:
    """The graph and the split of a run, refused if they are not those that it was trained on."""
    reading = record["reading"]
    graph = _opened(record, None if reading is None else ReadOptions(**reading), root)
    if digest(graph) != record["graph_digest"]:
        raise GraphveilError(
            f"{record['graph']} is not the graph that {folder} was trained on: put the old one back, or apply the run"
            " to the new one with `graphveil embed`."
        )
    seed, edges, targets = record["config"]["seed"], record["message_edges"], record["targets"]
    split = draw_split(record["split"], graph, seed, edges, targets)
    if "embedded" in record:
        split = exclude_trained(split, graph, TrainedOn.read(folder))
    if split.digest() != record["split_digest"]:
        raise GraphveilError(f"the split of {folder} cannot be drawn again: it was made by another version.")
    return graph, split


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


def read_record(folder: Path) -> dict[str, Any]:
    """What `run.json` says, if it says enough to repeat the run."""
    try:
        record: dict[str, Any] = read_json(folder / "run.json")
        if record["schema"] != SCHEMA:
            raise ValueError(f"its schema is {record['schema']!r}, not {SCHEMA!r}")
        for key in NEEDED:
            record[key]
        if not record["config"]["secrets"]:
            raise ValueError("it hides nothing")
        if "embedded" in record and not isinstance(record["embedded"]["not_recorded"], list):
            raise ValueError("it does not say what its encoder was trained on")
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            reason = "there is no run.json"
        elif isinstance(error, KeyError):
            reason = f"its run.json has no {error}"
        else:
            reason = str(error) if isinstance(error, ValueError) else "its run.json cannot be read"
        raise GraphveilError(
            f"{folder} is not a finished run of `graphveil protect` ({reason}): give its folder, or audit a file with"
            " --embeddings, --graph and --secret."
        ) from error
    return record


def encoder_controls(
    folder: Path, graph: Data, split: Split, given: Sequence[str] = ()
) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Embeddings of the run's encoder before training, and after training without protection; and what to say of it.

    And those of the whole run from another seed: how far the two audits differ is what training leaves to chance. Of a
    secret that is among the features also those of an unprotected encoder which was not given it.

    None where the encoder is the caller's own: a file never makes this program import code.

    Args:
        given: the secrets that are among the features.
    """
    try:
        veil = Veil.load(folder)
        check_targets(graph, veil.utility, veil.secrets)
    except GraphveilError as error:
        return {}, (f"no control by an encoder: {error}",)
    for name in (veil.utility, *veil.secrets):
        if (fault := too_few(graph, split, name)) is not None:
            return {}, (f"no control by an encoder, which would be trained for {name} too: {fault}",)
    run = hashlib.sha256((folder / "run.json").read_bytes()).hexdigest()
    file = folder / CONTROLS
    try:
        with safe_open(file, "pt") as kept:
            names = list(kept.keys())
            if (kept.metadata() or {}).get("run") == run and set(map(_without, given)) <= set(names):
                return {name: kept.get_tensor(name) for name in names}, ()
    except (OSError, SafetensorError):
        pass
    learned = replace(split, message_edges="train") if veil.utility == "links" else split  # scored links stay unseen
    plain = veil.unprotected()
    controls = {"untrained encoder": start([plain], graph, [learned]).method.embed().cpu()}
    if veil.tradeoff < 1:
        controls["unprotected encoder"] = plain.fit(graph, learned).transform(graph, split)
    for name in given:
        less = _without_columns(graph, _feature_columns(graph, name))
        controls[_without(name)] = veil.unprotected().fit(less, learned).transform(less, split)
    veil.seed = stream(veil.seed, "again") % 2**31
    controls[REFITTED] = veil.fit(graph, learned).transform(graph, split)
    write_tensors(file, controls, {"run": run})
    return controls, ()


def _without(secret: str) -> str:
    """The name of the control of a secret that is among the features."""
    return f"unprotected encoder without {secret}"


def _feature_columns(graph: Data, name: str) -> list[int]:
    """The columns of x that come from a column of the tables."""
    found: list[int] = []
    start = 0
    for column in origin_of(graph).encoding.columns:
        sources = sources_of(column)
        if name in sources:
            each = column.width // len(sources)
            first = start + each * list(sources).index(name)
            found += range(first, first + each)
        start += column.width
    return found


def _without_columns(graph: Data, columns: Sequence[int]) -> Data:
    """The same graph with columns of x that are 0."""
    less = copy.copy(graph)
    kept = torch.ones(graph.x.size(1))
    kept[list(columns)] = 0
    x = graph.x
    if x.layout == torch.sparse_csr:
        values = x.values() * kept[x.col_indices()]
        less.x = torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)
    else:
        less.x = x * kept
    return less


def _opened(record: Mapping[str, Any], reading: ReadOptions | None, root: Path | None = None) -> Data:
    encoding = Encoding.from_plain(record["encoding"]) if "embedded" in record else None  # an earlier graph's
    return open_graph(record["graph"], reading, root, encoding)


def with_columns(graph: Data, source: Mapping[str, Any], columns: Sequence[str], bins: Mapping[str, int]) -> Data:
    """The same graph with columns of its tables to group by; features and all else stay as they are.

    Args:
        source: how to open the graph again: "graph", its name or path, and "reading".
        bins: as of `ReadOptions`, for these columns.
    """
    check_columns(graph, columns, _readable(graph, source))
    return _with_classes(graph, source, columns, bins)


def _readable(graph: Data, source: Mapping[str, Any]) -> Sequence[str]:
    """All columns of the tables of a graph that was read from some."""
    return () if source["reading"] is None else origin_of(graph).columns


def _with_classes(graph: Data, record: Mapping[str, Any], columns: Sequence[str], bins: Mapping[str, int]) -> Data:
    """The same graph with the classes of other columns of its tables; all else stays as the encoder was trained on."""
    wanted = [name for name in dict.fromkeys(columns) if name not in ("links", "labels", *graph.keys())]
    if others := [name for name in bins if name not in wanted]:
        raise GraphveilError(
            f"bins are given for {others[0]!r}: give them for a column that is audited, and that the run does not keep"
            " or hide itself."
        )
    if not wanted or record["reading"] is None:
        return graph
    reading = ReadOptions(**record["reading"]).wanting(*wanted)
    features = [name for name in reading.features or () if name not in wanted] or None
    again = _opened(record, replace(reading, features=features, bins={**reading.bins, **bins}))
    if not node_ids(again).equals(node_ids(graph)):
        raise GraphveilError(f"{record['graph']} changed while it was read: try again.")
    found, origin = copy.copy(graph), origin_of(graph)
    for name in wanted:
        found[name] = node_classes(again, name)
    classes = {**origin_of(again).encoding.classes, **origin.encoding.classes}
    found.origin = replace(origin, encoding=replace(origin.encoding, classes=classes))
    return found


def _check_known(graph: Data, split: Split, name: str, record: Mapping[str, Any]) -> None:
    """Refuse a secret of which too little is known among the nodes that the run was split into."""
    known = node_classes(graph, name).cpu() != UNKNOWN
    for part, nodes in (("training", split.train_nodes), ("validation", split.val_nodes), ("test", split.test_nodes)):
        if not known[nodes].any():
            raise GraphveilError(
                f"{name!r} is known for none of the {part} nodes of this run, which was split by"
                f" {' and '.join(record['targets'])}: audit its embeddings.parquet by --embeddings, --graph and"
                f" --secret {name}, which splits the nodes anew."
            )


def _a_feature(graph: Data, secret: str) -> tuple[str, ...]:
    """That a secret went into the encoder as a column of its own."""
    if _feature_columns(graph, secret):
        return (f"{secret} is one of the features that the encoder was given",)
    return ()


def _seen_before(record: Mapping[str, Any], secret: str) -> tuple[str, ...]:
    """What makes an audit of embeddings by an earlier encoder too kind."""
    what = "links" if secret == "links" else "nodes"
    if "embedded" not in record or what not in record["embedded"]["not_recorded"]:
        return ()
    return (
        f"{what} that the encoder was trained on may be in the test part, and of those it tells less than of others",
    )


def utility_of(name: str, value: float, graph: Data, split: Split) -> Utility:
    """A utility's reading on the test part, beside guessing it."""
    if name == "links":
        return Utility(name, value, 0.5, 2 * split.test_links.size(1))
    y = node_classes(graph, name)[split.test_nodes]
    shares = np.bincount(y[y != UNKNOWN].numpy())
    return Utility(name, value, float(shares.max() / shares.sum()), int(shares.sum()))
