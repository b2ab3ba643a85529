"""Audit a finished run in its folder: its embeddings, beside an untrained and an unprotected encoder of the same kind.

Writes `audit.json` and `audit.safetensors` (raw answers); the controls are kept in `controls.safetensors`, so that a
second audit does not train them again.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch_geometric.data import Data

from graphveil.audit import Audit, Context, Effort, Utility, audit, read_embeddings
from graphveil.data import SPLITS, UNKNOWN, Split, digest, load, node_classes
from graphveil.errors import GraphveilError, unknown
from graphveil.files import hold_lock, write_tensors
from graphveil.veil import SCHEMA, Veil, start

CONTROLS = "controls.safetensors"


def review(
    folder: Path,
    secret: str | None = None,
    attacks: str | None = None,
    root: Path | None = None,
    with_controls: bool = True,
    effort: Effort | None = None,
) -> Audit:
    """Audit what lies in `folder`, and write the audit there.

    Args:
        secret: the run's own by default. attacks: "full" or "quick". root: of the graph's raw files.
        with_controls: train an unprotected encoder to compare with, unless that was done before.
    """
    record = read_record(folder)
    graph = load(record["graph"], root)
    if digest(graph) != record["graph_digest"]:
        raise GraphveilError(f"{record['graph']} is not the graph that {folder} was trained on: give its own --root.")
    split = SPLITS[record["split"]](graph, record["config"]["seed"], message_edges=record["message_edges"])
    if split.digest() != record["split_digest"]:
        raise GraphveilError(f"the split of {folder} cannot be drawn again: it was made by another version.")
    config, asked = record["config"], secret or record["config"]["secret"]
    z = read_embeddings(folder / "embeddings.npy", graph.x.size(0))
    busy = f"another process is writing to {folder}: wait for it."
    with hold_lock(folder / ".lock", 0, busy):
        controls = {}
        if with_controls and attacks != "quick":
            if effort is not None and effort.on_attack is not None:
                effort.on_attack("training an unprotected encoder", 0, 1)
            controls = encoder_controls(folder, graph, split)
        found = audit(
            z,
            graph,
            split,
            asked,
            attacks=attacks,
            seed=config["seed"],
            controls=controls,
            context=Context(
                joint=record["scores"]["adversary"] if asked == config["secret"] else None,
                utility=_utility(record, graph, split),
            ),
            effort=effort,
        )
        found.save(folder / "audit.json")
    return found


def review_file(
    file: Path,
    graph: str,
    secret: str,
    split: str,
    seed: int,
    out: Path,
    attacks: str | None = None,
    root: Path | None = None,
    effort: Effort | None = None,
) -> Audit:
    """Audit embeddings that lie in a file, and write the audit to `out`."""
    loaded = load(graph, root)
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    z = read_embeddings(file, loaded.x.size(0))
    parts = SPLITS[split](loaded, seed, message_edges="all")
    found = audit(z, loaded, parts, secret, attacks=attacks, seed=seed, effort=effort)
    found.save(out)
    return found


def read_record(folder: Path) -> dict[str, Any]:
    """What `run.json` says, if it says enough to repeat the run."""
    try:
        record: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        if record["schema"] != SCHEMA:
            raise ValueError(f"its schema is {record['schema']!r}, not {SCHEMA!r}")
        for key in ("graph", "split", "message_edges", "graph_digest", "split_digest", "scores", "config"):
            record[key]
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise GraphveilError(
            f"{folder} is not a finished run of `graphveil protect` ({reason}): give its folder, or audit a file with"
            " --embeddings, --graph and --secret."
        ) from error
    return record


def encoder_controls(folder: Path, graph: Data, split: Split) -> dict[str, Tensor]:
    """Embeddings of the run's encoder before training, and after training without protection.

    None where the encoder is the caller's own: a file never makes this program import code.
    """
    try:
        veil = Veil.load(folder)
    except GraphveilError:
        return {}
    wanted = ("untrained encoder", "unprotected encoder") if veil.tradeoff < 1 else ("untrained encoder",)
    file = folder / CONTROLS
    try:
        kept = load_file(file)
        if set(kept) == set(wanted):
            return kept
    except (OSError, SafetensorError):
        pass
    controls = {"untrained encoder": start([veil], graph, [split]).embed().cpu()}
    if veil.tradeoff < 1:
        plain = Veil(
            veil.utility,
            veil.secret,
            veil.encoder,
            tradeoff=1.0,
            objective=veil.objective,
            adversary=replace(veil.adversary, steps=1),  # it has no say at a trade-off of 1
            recipe=veil.recipe,
            seed=veil.seed,
        )
        controls["unprotected encoder"] = plain.fit(graph, split).transform(graph, split)
    write_tensors(file, controls)
    return controls


def _utility(record: dict[str, Any], graph: Data, split: Split) -> Utility:
    name = record["config"]["utility"]
    if name == "links":
        return Utility(name, record["scores"]["utility"], 0.5, 2 * split.test_links.size(1))
    y = node_classes(graph, name)[split.test_nodes]
    shares = np.bincount(y[y != UNKNOWN].numpy())
    return Utility(name, record["scores"]["utility"], float(shares.max() / shares.sum()), int(shares.sum()))
