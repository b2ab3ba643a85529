"""Trials: an audit of an embedding whose leak is known. Each is a function of a seed."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import entr
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import graphveil as gv
from benchmarks.power.outside import outside
from benchmarks.power.worlds import LEAKS, Rows, planted, secret_of
from graphveil.auditing import Audit, Context, Effort, NodeSecret, Utility
from graphveil.auditing.finding import ensemble
from graphveil.auditing.metrics import Integers
from graphveil.auditing.panel import on_embeddings
from graphveil.auditing.tasks import run

USEFUL = Context(utility=Utility("links", 0.9, 0.5, 1000))
NODES = 600
"""Nodes of the graphs on which noise is audited."""
LN2 = float(np.log(2))


def audit_of_z(z: Rows, secret: NodeSecret, seed: int) -> Audit:
    """An audit by the attacks on z alone."""
    tasks = [task for task in on_embeddings(z, secret) if "graph" not in task.attack.needs]
    findings, _ = run(tasks, secret, seed, Effort())
    return Audit(secret, [*findings, *ensemble(findings)], {}, context=USEFUL)


def leak(kind: str, bayes: float, n: int, seed: int) -> dict[str, Any]:
    """The error of the headline against the accuracy of the best rule, with n known nodes and n queries."""
    z, y = LEAKS[kind](bayes, n, np.random.default_rng(seed))
    audit = audit_of_z(z, secret_of(y, seed), seed)
    headline = audit.strongest.headline
    return {
        "error": headline.value - bayes,
        "shape_known": _knowing_the_shape(kind, z, y) - bayes,
        "own_interval": headline.covers(bayes),
        "covers": headline.low <= bayes <= audit.upper,
        "attack": audit.strongest.attack,
    }


def _knowing_the_shape(kind: str, z: Rows, y: Integers) -> float:
    """The accuracy of an attacker who knows the kind of leak, and only learns its parameters."""
    half, model = len(y) // 2, LogisticRegression(C=1e6, max_iter=1000)
    if kind == "ring":
        z, model = np.square(z).sum(axis=1, keepdims=True), DecisionTreeClassifier(max_depth=1)
    return float(model.fit(z[:half], y[:half]).score(z[half:], y[half:]))


def information(kind: str, nats: float, n: int, seed: int) -> dict[str, Any]:
    """The lower bound of the mutual information, of which the true value is `nats`."""
    bayes = _bayes_of(kind, nats)
    z, y = LEAKS[kind](bayes, n, np.random.default_rng(seed))
    result = audit_of_z(z, secret_of(y, seed), seed).information
    return {"lower": result.lower.estimate.value, "warning": result.lower.warning}


def _bayes_of(kind: str, nats: float) -> float:
    """The accuracy of the best rule at this mutual information with a coin."""
    nats_of = {"codes": _nats_of_codes, "ring": _nats_of_codes, "line": _nats_of_line}[kind]
    return float(brentq(lambda bayes: nats_of(bayes) - nats, 0.5 + 1e-6, 1 - 1e-9))


def _nats_of_codes(bayes: float) -> float:
    return LN2 - float(entr(bayes) + entr(1 - bayes))


def _nats_of_line(bayes: float) -> float:
    """E log p(y | z) / p(y), for z with mean d or -d by the side of the coin, and standard deviation 1."""
    d = norm.ppf(bayes)
    z = np.linspace(d - 9, d + 9, 20_001)
    return LN2 - float(np.trapezoid(norm.pdf(z - d) * np.log1p(np.exp(-2 * d * z)), z))


def noise(kind: str, seed: int) -> dict[str, Any]:
    """A full audit of noise: of a secret with 2 or 7 classes, or of links."""
    spec = gv.GraphSpec(num_nodes=NODES, num_edges=2000, num_features=30, num_classes=3, skew=50.0)
    graph = gv.generate(spec, seed)
    random = np.random.default_rng(seed)
    secret, edges = ("links", "all") if kind == "links" else ("secret", "train")
    if kind != "links":
        graph.secret = torch.from_numpy(random.permutation(NODES) % int(kind[0]))  # all classes have the same size
    split = gv.Split.proportional(graph, seed, message_edges=edges)  # type: ignore[arg-type]
    z = random.standard_normal((NODES, 8)).astype(np.float32)
    useful = Utility("labels" if kind == "links" else "links", 0.9, 0.5, 1000)
    audit = gv.audit(np.round(16 * z) / 16, graph, split, secret, seed=seed, context=Context(utility=useful))
    return {
        "outside": not audit.strongest.headline.covers(audit.secret.chance),
        "leaks": bool(audit.reasons),
        "reasons": [reason.sentence for reason in audit.reasons],
        "flags": [flag.name for flag in audit.flags],
    }


def plant(name: str, share: float, n: int, seed: int) -> dict[str, Any]:
    """Whether a planted secret is found, with n known nodes and n queries."""
    z, y = planted(name, share, n, np.random.default_rng(seed))
    audit = audit_of_z(z, secret_of(y, seed), seed)
    return {
        "found": bool(audit.reasons),
        "value": audit.strongest.headline.value,
        "attack": audit.strongest.attack,
    }


TRIALS: dict[str, Callable[..., dict[str, Any]]] = {
    "leak": leak,
    "information": information,
    "noise": noise,
    "plant": plant,
    "outside": outside,
}


def run_trial(trial: str, *settings: Any) -> dict[str, Any]:
    """Run a trial by its name on one thread, and add its settings and its time to the result."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = TRIALS[trial](*settings)
    return {"trial": trial, "settings": list(settings), "seconds": round(time.perf_counter() - start, 1)} | result
