"""Embeddings of other encoders of a run's kind, beside which its audit is read.

They are kept in the run's folder, so that a second audit does not train them again.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphveil.auditing.attacks import UNPROTECTED
from graphveil.data import Split, check_targets
from graphveil.data.origin import origin_of
from graphveil.data.readers.features import sources_of
from graphveil.data.sparse import CsrParts, csr, join_features, split_features
from graphveil.errors import GraphveilError
from graphveil.pool import parallel
from graphveil.randomness import stream
from graphveil.runs.folder import RunFolder
from graphveil.runs.trained_on import too_few
from graphveil.training.inputs import pick_device
from graphveil.veil import Fitting, Veil

UNTRAINED = "untrained encoder"
REFITTED = "this run with another seed"
LARGEST = 1_000_000
"""Encoders on graphs with more links are trained one after the other, with all threads, since each needs its memory."""


@dataclass(frozen=True)
class Controls:
    """Other encoders of a run's kind.

    Args:
        embeddings: the embeddings by the name of the control.
        utility: the test value of the encoder that was trained without protection; None without one.
        notes: a sentence for each control that is missing.
    """

    embeddings: Mapping[str, Tensor] = field(default_factory=dict)
    utility: float | None = None
    notes: tuple[str, ...] = ()


def encoder_controls(
    folder: RunFolder,
    graph: Data,
    split: Split,
    features: Sequence[str] = (),
    jobs: int = 1,
    meanwhile: Callable[[], Sequence[Callable[[], object]]] = tuple,
) -> Controls:
    """Train the controls of a run, or read those that an earlier audit has kept.

    They are the encoder before training, the encoder trained without protection, and the whole run with another seed,
    which shows how much of an audit is chance in training. For a secret that is among the features, an unprotected
    encoder without that feature is added. A run with modules of the caller's own has none, because a file never makes
    this program import code.

    Args:
        folder: the folder of the run.
        graph: the graph that it was trained on.
        split: the split of that graph.
        features: the secrets that are among the features.
        jobs: how many encoders to train at once.
        meanwhile: returns functions to call in the processes that have no encoder left to train. It is not called if
            encoders are trained one at a time, or not at all.
    """
    try:
        veil = folder.veil()
        check_targets(graph, veil.utility, veil.secrets)
    except GraphveilError as error:
        return Controls(notes=(f"control encoders were skipped: {error}",))
    for name in (veil.utility, *veil.secrets):
        if (fault := too_few(graph, split, name)) is not None:
            return Controls(notes=(f"control encoders were skipped, because {name} cannot be evaluated: {fault}",))
    kept, utility = folder.controls()
    if kept and set(map(without_feature, features)) <= set(kept):
        return Controls(kept, utility)
    learned = split.without_held_out_links(veil.utility)
    plain = veil.unprotected(graph)
    controls = {UNTRAINED: Fitting([plain], graph, [learned]).training.method.embed().cpu()}
    todo = {UNPROTECTED: (plain, graph)} if veil.tradeoff < 1 else {}
    for name in features:
        without = _without_columns(graph, feature_columns(graph, name))
        todo[without_feature(name)] = (veil.unprotected(without), without)
    veil.seed = stream(veil.seed, "again") % 2**31
    todo[REFITTED] = (veil, graph)
    at_once = jobs > 1 and pick_device(veil.device).type == "cpu" and graph.edge_index.size(1) <= 2 * LARGEST
    fits = [partial(_fit, own, *split_features(of), learned, split) for own, of in todo.values()]
    done: Iterator[Any] = parallel([*fits, *(meanwhile() if at_once else ())], jobs if at_once else 1)
    for name, (z, kept) in zip(todo, done, strict=False):
        controls[name] = z
        if name == UNPROTECTED:
            utility = kept
    folder.write_controls(controls, utility)
    for _ in done:
        pass  # wait for the rest
    return Controls(controls, utility)


def _fit(veil: Veil, graph: Data, features: CsrParts | None, learned: Split, split: Split) -> tuple[Tensor, float]:
    """Train a control; returns its embeddings and its utility on the test part."""
    graph = join_features(graph, features)
    z = veil.fit(graph, learned).transform(graph, split)
    return z, veil.score(graph, learned, z).utility


def without_feature(secret: str) -> str:
    """The name of the control for a secret that is among the features."""
    return f"{UNPROTECTED} without {secret}"


def feature_columns(graph: Data, name: str) -> list[int]:
    """The columns of x that come from a column of the graph's tables."""
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
    """The same graph with zeros in these columns of x."""
    without = copy.copy(graph)
    kept = torch.ones(graph.x.size(1))
    kept[list(columns)] = 0
    x = graph.x
    if x.layout == torch.sparse_csr:
        values = x.values() * kept[x.col_indices()]
        without.x = csr(x.crow_indices(), x.col_indices(), values, tuple(x.shape))
    else:
        without.x = x * kept
    return without
