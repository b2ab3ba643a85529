"""`audit`: run a panel of fresh attackers on embeddings, anybody's, and on controls."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from joblib import Parallel, delayed
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from threadpoolctl import threadpool_limits
from torch_geometric.data import Data

from graphveil.audit import links, nodes
from graphveil.audit.attacks import Answers, Attack, check_answers, standardised
from graphveil.audit.embeddings import check_embeddings, shape_flags
from graphveil.audit.information import calibrate
from graphveil.audit.learners import Rows
from graphveil.audit.metrics import Array
from graphveil.audit.result import Audit, Context, Finding
from graphveil.audit.secret import LinkSecret, Secret, link_secret, node_secret
from graphveil.data import Split, check_graph
from graphveil.errors import GraphveilError, unknown
from graphveil.randomness import stream

TOGETHER = 3
RAW_COLUMNS = 64
"""Raw features with more columns than this are reduced to it, by a singular value decomposition."""


@dataclass(frozen=True)
class Effort:
    """How long to try.

    Args:
        jobs: processes at once. time_budget: seconds after which no attack is begun; the costliest come last.
        on_attack: called with (name, done, total) before each attack.
    """

    jobs: int = 1
    time_budget: float | None = None
    on_attack: Callable[[str, int, int], None] | None = None


def audit(
    z: Any,
    graph: Data,
    split: Split,
    secret: str = "labels",
    attacks: str | Sequence[Any] | None = None,
    seed: int = 0,
    controls: Mapping[str, Any] | None = None,
    context: Context | None = None,
    effort: Effort | None = None,
) -> Audit:
    """What fresh attackers read about `secret` from the embeddings `z`.

    Args:
        z: (num_nodes, channels), of any maker.
        secret: "labels", "links" or the name of a node attribute.
        attacks: None or "full" for the whole panel, "quick" for a few, or attacks of your own: anything like
            `graphveil.audit.Attack`, and scikit-learn classifiers as they are.
        controls: other embeddings to attack in the same way, such as an untrained encoder's, by name.
        context: what only the maker of the embeddings knows.
    """
    check_graph(graph)
    if split.num_nodes != graph.x.size(0):
        raise GraphveilError(
            f"the split is for {split.num_nodes} nodes and the graph has {graph.x.size(0)}: build it from this one."
        )
    split.check_links(graph)
    rows = check_embeddings(z, graph.x.size(0))
    asked: Secret = link_secret(graph, split, seed) if secret == "links" else node_secret(graph, split, secret, seed)
    panel = _panel(attacks, asked)
    on_z = [attack for attack in panel if "graph" not in attack.needs]
    tasks = [Task("embeddings", attack, rows) for attack in panel]
    if not isinstance(asked, LinkSecret) and len(on_z) < len(panel):
        tasks += [Task("public graph", attack, rows) for attack in nodes.graph_alone()]
    if attacks != "quick":
        others = {"raw features": raw_features(graph, seed)}
        others |= {name: check_embeddings(other, graph.x.size(0)) for name, other in (controls or {}).items()}
        tasks += [Task(name, attack, other) for name, other in others.items() for attack in on_z]
    findings, dropped = run(tasks, asked, seed, effort or Effort())
    by_subject: dict[str, list[Finding]] = {}
    for finding in findings:
        by_subject.setdefault(finding.subject, []).append(finding)
    for found in by_subject.values():
        found.extend(together([finding for finding in found if "z" in finding.needs and "graph" not in finding.needs]))
    return Audit(
        secret=asked,
        findings=by_subject.pop("embeddings"),
        controls=by_subject,
        shape=shape_flags(rows),
        dropped=dropped,
        context=context or Context(),
    )


@dataclass(frozen=True, eq=False)
class Task:
    """An attack on something."""

    subject: str
    attack: Attack
    rows: Rows

    def __call__(self, secret: Secret, seed: int) -> Finding:
        """Attack, on one thread of BLAS and torch, so that the answers do not depend on how many there are."""
        started, threads = time.perf_counter(), torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with threadpool_limits(1, user_api="blas"):
                answers = self.attack(self.rows, secret, stream(seed, "audit", self.attack.name) % 2**32)
        finally:
            torch.set_num_threads(threads)
        check_answers(answers, self.attack, secret)
        seconds = time.perf_counter() - started
        return Finding(self.subject, self.attack.name, self.attack.needs, secret, answers, seconds)


def run(tasks: Sequence[Task], secret: Secret, seed: int, effort: Effort) -> tuple[list[Finding], list[str]]:
    """All findings, and the names of the attacks that there was no time for."""
    started, dropped = time.perf_counter(), list[str]()
    pace: list[tuple[float, float]] = []  # cost and seconds of what is done

    def in_time() -> Iterator[Any]:
        for number, task in enumerate(tasks):
            elapsed = time.perf_counter() - started
            cost, seconds = (sum(part) for part in zip(*pace, strict=True)) if pace else (1.0, 0.0)
            expected = task.attack.cost * seconds / cost
            if number and effort.time_budget is not None and elapsed + expected > effort.time_budget:
                dropped.append(_title(task))
                continue
            if effort.on_attack is not None:
                effort.on_attack(_title(task), number, len(tasks))
            yield delayed(task)(secret, seed)

    costs = {(task.subject, task.attack.name): task.attack.cost for task in tasks}
    findings: list[Finding] = []
    for finding in Parallel(n_jobs=effort.jobs, return_as="generator", pre_dispatch="n_jobs")(in_time()):
        pace.append((costs[finding.subject, finding.attack], finding.seconds / effort.jobs))
        findings.append(finding)
    return findings, dropped


def together(findings: Sequence[Finding]) -> list[Finding]:
    """One more finding where there are enough: the best three on the validation part, their log-odds averaged.

    Which of many near-equal attacks is luckiest on the test part cannot be known; what they agree on is about as good.
    """
    best = sorted(findings, key=lambda finding: -finding.validation)[:TOGETHER]
    if len(findings) <= TOGETHER:
        return []
    secret = best[0].secret
    calibrations = [calibrate(finding.answers.val, secret.val.y) for finding in best]

    def average(part: str) -> Array | None:
        answers = [getattr(finding.answers, part) for finding in best]
        if any(answer is None for answer in answers):
            return None
        log_q: Array = np.mean(
            [set_right(answer) for set_right, answer in zip(calibrations, answers, strict=True)], axis=0
        )
        return log_q[:, 1] - log_q[:, 0] if isinstance(secret, LinkSecret) else log_q

    parts = [average(part) for part in ("val", "test", "matched_val", "matched_test")]
    assert parts[0] is not None
    assert parts[1] is not None
    answers = Answers(parts[0], parts[1], parts[2], parts[3])
    return [Finding(best[0].subject, "best three together", best[0].needs, secret, answers, 0.0)]


def raw_features(graph: Data, seed: int) -> Rows:
    """The graph's features without a model; of many columns the main directions.

    Counts of words are first weighted by how rare each is, which helps an attacker who knows few labels.
    """
    x: Any = graph.x.cpu()
    if x.layout == torch.sparse_csr:
        parts = (part.numpy() for part in (x.values(), x.col_indices(), x.crow_indices()))
        x = sp.csr_matrix(tuple(parts), shape=tuple(x.shape))
    else:
        x = x.numpy()
    if x.shape[1] > RAW_COLUMNS:
        x = TfidfTransformer().fit_transform(x) if x.min() >= 0 else standardised(x)
        x = TruncatedSVD(RAW_COLUMNS, random_state=stream(seed, "audit", "raw") % 2**32).fit_transform(x)
    return np.asarray(x.todense() if sp.issparse(x) else x, dtype=np.float32)


def _panel(attacks: str | Sequence[Any] | None, secret: Secret) -> list[Attack]:
    of_links = isinstance(secret, LinkSecret)
    if attacks is None or attacks == "full":
        return links.panel(secret) if isinstance(secret, LinkSecret) else nodes.panel()
    if attacks == "quick":
        return links.quick() if of_links else nodes.quick()
    if isinstance(attacks, str):
        raise unknown("panel", attacks, ("full", "quick"))
    found: list[Attack] = []
    for given in attacks:
        if hasattr(given, "fit") and hasattr(given, "predict_proba"):
            make = links.as_link_attacks if of_links else nodes.as_node_attacks
            found += make(type(given).__name__, [given])
        elif callable(given) and all(hasattr(given, name) for name in ("name", "needs", "cost")):
            found.append(given)
        else:
            raise GraphveilError(
                f"{given!r} is no attack: give scikit-learn classifiers that have predict_proba, or objects like"
                " graphveil.audit.Attack."
            )
    if not found:
        raise GraphveilError("no attack was given: leave out `attacks` for the whole panel.")
    names = [attack.name for attack in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise GraphveilError(f"two attacks are called {twice!r}: give them names that differ.")
    return found


def _title(task: Task) -> str:
    return task.attack.name if task.subject == "embeddings" else f"{task.attack.name} on {task.subject}"
