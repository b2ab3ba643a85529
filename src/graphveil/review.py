"""Audit a finished run in its folder: its embeddings, beside an untrained and an unprotected encoder of the same kind.

Writes `audit.json` and `audit.answers.safetensors` (raw answers); the controls are kept in `controls.safetensors`, so
that a second audit does not train them again.
"""

import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch_geometric.data import Data

from graphveil.audit import Audit, Context, Effort, Utility, audit, read_embeddings
from graphveil.audit.panel import the_panel, the_secret
from graphveil.audit.result import answers_beside
from graphveil.data import SPLITS, UNKNOWN, Split, digest, load, node_classes
from graphveil.errors import GraphveilError
from graphveil.files import hold_lock, write_tensors
from graphveil.veil import SCHEMA, Veil, start

CONTROLS = "controls.safetensors"


def review(
    folder: Path,
    secret: str | None = None,
    attacks: str | None = None,
    root: Path | None = None,
    controls: bool = True,
    effort: Effort | None = None,
) -> Audit:
    """Audit what lies in `folder`, and write the audit there.

    Args:
        secret: the run's own by default. attacks: "full" or "quick". root: of the graph's raw files.
        controls: attack an untrained and an unprotected encoder too; the latter is trained if it has not been.
    """
    effort = replace(effort or Effort(), started=time.perf_counter())
    record = read_record(folder)
    graph = load(record["graph"], root)
    if digest(graph) != record["graph_digest"]:
        raise GraphveilError(f"{record['graph']} is not the graph that {folder} was trained on: give its own --root.")
    config = record["config"]
    split = SPLITS[record["split"]](graph, config["seed"], message_edges=record["message_edges"])
    if split.digest() != record["split_digest"]:
        raise GraphveilError(f"the split of {folder} cannot be drawn again: it was made by another version.")
    z = read_embeddings(folder / "embeddings.npy", graph.x.size(0))
    asked = secret or config["secret"]
    context = Context(
        joint=record["scores"]["adversary"] if asked == config["secret"] else None,
        utility=utility_of(config["utility"], record["scores"]["utility"], graph, split),
    )
    the_panel(attacks, the_secret(asked, graph, split, config["seed"], context))  # refuse before anything is trained
    with hold_lock(folder / ".lock", 0, f"another process is writing to {folder}: wait for it."):
        encoders: dict[str, Tensor] = {}
        if controls and attacks != "quick":
            if effort.on_attack is not None:
                effort.on_attack("training an unprotected encoder", 0, 1)
            encoders, notes = encoder_controls(folder, graph, split)
            context = replace(context, notes=notes)
        found = audit(z, graph, split, asked, attacks, config["seed"], encoders, context, effort)
        found.save(folder / "audit.json")
    return found


def review_file(
    file: Path,
    graph: Data,
    split: Split,
    secret: str,
    seed: int,
    out: Path,
    attacks: str | None = None,
    effort: Effort | None = None,
) -> Audit:
    """Audit embeddings that lie in a file, and write the audit to `out`."""
    if file.resolve() in (out.resolve(), answers_beside(out).resolve()):
        raise GraphveilError(f"--out {out} would overwrite the embeddings in {file}: choose another name.")
    z = read_embeddings(file, graph.x.size(0))
    found = audit(z, graph, split, secret, attacks=attacks, seed=seed, effort=effort)
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


def encoder_controls(folder: Path, graph: Data, split: Split) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Embeddings of the run's encoder before training, and after training without protection; and what to say of it.

    None where the encoder is the caller's own: a file never makes this program import code.
    """
    try:
        veil = Veil.load(folder)
    except GraphveilError as error:
        return {}, (f"no control by an encoder: {error}",)
    run = hashlib.sha256((folder / "run.json").read_bytes()).hexdigest()
    file = folder / CONTROLS
    try:
        with safe_open(file, "pt") as kept:
            if (kept.metadata() or {}).get("run") == run:
                return {name: kept.get_tensor(name) for name in kept.keys()}, ()  # noqa: SIM118 - not a dict
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
    write_tensors(file, controls, {"run": run})
    return controls, ()


def utility_of(name: str, value: float, graph: Data, split: Split) -> Utility:
    """A utility's reading on the test part, beside guessing it."""
    if name == "links":
        return Utility(name, value, 0.5, 2 * split.test_links.size(1))
    y = node_classes(graph, name)[split.test_nodes]
    shares = np.bincount(y[y != UNKNOWN].numpy())
    return Utility(name, value, float(shares.max() / shares.sum()), int(shares.sum()))
