"""`audit`: run a panel of fresh attackers on embeddings, anybody's, and on controls."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from joblib import Parallel, delayed
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits
from torch_geometric.data import Data

import graphveil
from graphveil.auditing import links, nodes, structure
from graphveil.auditing.attacks import (
    CLASSES_AND_FEATURES,
    CLASSES_AND_LINKS,
    KNOWN_LINKS,
    WITH_FEATURES,
    Answers,
    Attack,
    check_answers,
    scaled,
    standardised,
)
from graphveil.auditing.cache import SHARED, AnswerCache
from graphveil.auditing.certify import codes_certificate, is_discrete, limits_on_test, row_codes
from graphveil.auditing.embeddings import check_embeddings, exact, rows_digest, shape_flags
from graphveil.auditing.finding import Finding, together
from graphveil.auditing.groups import check_columns, partitions
from graphveil.auditing.information import calibrate
from graphveil.auditing.learners import Rows
from graphveil.auditing.map import draw
from graphveil.auditing.marks import CompareMarks, ReadMarks
from graphveil.auditing.metrics import Integers
from graphveil.auditing.result import Audit, Context
from graphveil.auditing.secret import LinkSecret, NodeSecret, Secret, link_secret, node_secret
from graphveil.data import UNKNOWN, Split, check_graph, digest
from graphveil.errors import GraphveilError, unknown
from graphveil.formats.audit import Origin
from graphveil.interrupts import kept_from_workers
from graphveil.randomness import stream

RESERVED = (
    "embeddings",
    "raw features",
    "public graph",
    KNOWN_LINKS,
    CLASSES_AND_FEATURES,
    CLASSES_AND_LINKS,
    "guessing",
)
EXAMPLES_PER_CELL = 50
"""With so many known examples to a cell of the table of distinct rows, the quick panel trains no learners on z."""
RAW_COLUMNS = 64
"""Raw features with more columns than this are reduced to it, by a singular value decomposition."""


@dataclass(frozen=True)
class Effort:
    """How long to try.

    Args:
        jobs: processes at once.
        time_budget: seconds; an attack that is not expected to end by then is left out, and the costliest come last.
        started: when the clock was started, by `time.perf_counter`; now, if not said.
        on_attack: called with (name, done, total) before each attack.
        cache: a folder for the answers of our panel on controls that are the same for all embeddings of a graph.
    """

    jobs: int = 1
    time_budget: float | None = None
    on_attack: Callable[[str, int, int], None] | None = None
    started: float | None = None
    cache: Path | None = None


def audit(  # noqa: PLR0913 - three are required, and each of the others is asked for by its name
    z: Any,
    graph: Data,
    split: Split,
    secret: str = "labels",
    attacks: str | Sequence[Any] | None = None,
    seed: int = 0,
    controls: Mapping[str, Any] | None = None,
    context: Context | None = None,
    effort: Effort | None = None,
    *,
    by: Sequence[str] = (),
) -> Audit:
    """What fresh attackers read about `secret` from the embeddings `z`.

    Args:
        z: (num_nodes, channels), of any maker.
        secret: "labels", "links" or the name of a node attribute.
        attacks: None or "full" for the whole panel, "quick" for a few (for z with very few distinct rows, a table of
            them and distances), or attacks of your own: anything like `graphveil.auditing.Attack`, and scikit-learn
            classifiers as they are.
        controls: other embeddings to attack in the same way, such as an untrained encoder's, by name.
        context: what only the maker of the embeddings knows.
        by: node attributes; the strongest attack's result is given for each of their values, beside those by class and
            by degree.
    """
    check_graph(graph)
    check_columns(graph, by)
    if split.num_nodes != graph.x.size(0):
        raise GraphveilError(
            f"the split is for {split.num_nodes} nodes and the graph has {graph.x.size(0)}: build it from this one."
        )
    split.check_links(graph)
    rows = check_embeddings(z, graph.x.size(0))
    codes = row_codes(z)
    context = context or Context()
    asked = resolve_secret(secret, graph, split, seed, context)
    if attacks == "quick" and isinstance(asked, NodeSecret):
        asked = asked.quick()
    full = attacks is None or attacks == "full"
    others = _controls(graph, controls or {}, seed, quick=attacks == "quick")
    tasks = on_embeddings(z, asked, attacks)
    if full:
        tasks += _holding_more(rows, scaled(others["raw features"]), asked, seed)
    tasks += _on_controls(others, asked, attacks)
    effort = effort or Effort()
    cache = None
    if effort.cache is not None and full:
        about = f"{digest(graph)}/{split.digest()}/{secret}/{_matched_by(context)}/{seed}"
        cache = AnswerCache(effort.cache, about)
    findings, dropped = run(tasks, asked, seed, effort, cache)
    by_subject: dict[str, list[Finding]] = {}
    for finding in findings:
        by_subject.setdefault(finding.subject, []).append(finding)
    for found in by_subject.values():
        found.extend(together([finding for finding in found if "z" in finding.needs and finding.on_z_alone]))
    certificate = codes_certificate(codes, graph, split, secret, _matched_by(context))
    return Audit(
        secret=asked,
        findings=by_subject.pop("embeddings"),
        controls=by_subject,
        shape=shape_flags(rows, is_discrete(codes)),
        dropped=dropped,
        context=context,
        origin=Origin(
            panel=attacks if isinstance(attacks, str) else "full" if attacks is None else "own",
            seed=seed,
            split=split.digest(),
            embeddings=rows_digest(rows),
            graphveil=graphveil.__version__,
        ),
        certificate=certificate,
        limits={} if certificate is None else limits_on_test(codes, asked),
        map=None if attacks == "quick" else draw(asked, rows, others.get("unprotected encoder"), seed),
        partitions=partitions(graph, asked, _matched_by(context) if secret == "links" else secret, by),
    )


def on_embeddings(z: Any, secret: Secret, attacks: str | Sequence[Any] | None = None) -> list["Task"]:
    """The attackers who see z, and some of whom hold the public graph too."""
    rows, codes, panel = check_embeddings(z, secret.num_nodes), row_codes(z), resolve_panel(attacks, secret)
    counting = _counting(attacks, secret, codes)
    if attacks == "quick" and counting and _fills_tables(secret, codes):
        panel = [attack for attack in panel if not {"secrets", "few secrets"} & set(attack.needs)]
    tasks = [Task("embeddings", attack, rows) for attack in [*counting, *panel]]
    return tasks + [
        Task("embeddings", attack, exact(z).astype(np.float64)) for attack in _marked(attacks, secret, codes)
    ]


def _on_controls(
    others: Mapping[str, Rows], secret: Secret, attacks: str | Sequence[Any] | None = None
) -> list["Task"]:
    """The attackers on controls. Of the full panel those are left out that are hardly ever the strongest.

    The attackers on the features alone are then those that hold them beside z, to see what z adds.
    """
    panel, tasks = resolve_panel(attacks, secret), []
    on_each = [attack for attack in panel if "graph" not in attack.needs]
    on_features = on_each
    if attacks is None or attacks == "full":
        on_each = links.on_encoders() if isinstance(secret, LinkSecret) else nodes.on_encoders()
        beside_z = [attack.name for attack in _with_features(secret, 0)]
        on_features = [attack for attack in on_each if f"{attack.name}{WITH_FEATURES}" in beside_z]
    for name, other in others.items():
        on_it, once = (on_features, False) if name == "raw features" else (on_each, True)
        tasks += [Task(name, attack, other, once) for attack in [*_counting(attacks, secret, row_codes(other)), *on_it]]
    if isinstance(secret, NodeSecret) and any("graph" in attack.needs for attack in panel):
        nothing = np.zeros((secret.num_nodes, 0), dtype=np.float32)
        tasks += [Task("public graph", attack, nothing) for attack in nodes.graph_alone()]
    return tasks


def _holding_more(z: Rows, features: Rows, secret: Secret, seed: int) -> list["Task"]:
    """The attackers who hold the features or the known links beside z, and beside the true classes in place of z.

    Args:
        features: (num_nodes, columns), scaled.
    """
    both = np.concatenate([scaled(z), features], axis=1)
    tasks = [Task("embeddings", attack, both) for attack in _with_features(secret, z.shape[1])]
    return [*tasks, *classes_and_features(secret, features), *known_links(secret, z, seed)]


def _controls(graph: Data, given: Mapping[str, Any], seed: int, quick: bool) -> dict[str, Rows]:
    """Raw features, except for a quick look, and what was given."""
    for name in given:
        if name in RESERVED:
            raise GraphveilError(f"a control is called {name!r}, which is taken: call it something else.")
    features = {} if quick else {"raw features": raw_features(graph, seed)}
    return features | {name: check_embeddings(rows, graph.x.size(0), name) for name, rows in given.items()}


def resolve_secret(name: str, graph: Data, split: Split, seed: int, context: Context) -> Secret:
    """The roles of what is asked for; links are matched by the classes that the utility keeps, if it keeps some."""
    if name != "links":
        return node_secret(graph, split, name, seed)
    return link_secret(graph, split, seed, _matched_by(context))


def _matched_by(context: Context) -> str:
    utility = context.utility.name if context.utility is not None else "links"
    return "labels" if utility == "links" else utility


@dataclass(frozen=True, eq=False)
class Task:
    """An attack on something.

    Args:
        once: whether of a node secret one part of what is known is held out, and not each in turn.
    """

    subject: str
    attack: Attack
    rows: Rows
    once: bool = False

    def __call__(self, secret: Secret, seed: int, cache: AnswerCache | None = None) -> Finding:
        """What the attack answers, or answered before; then it took no time.

        A learner that was shrunk much names the largest class wherever it is unsure, and one that found nothing names
        any. So confidence is set right on what was held out, where the attacker knows it.
        """
        name, needs, seconds = self.attack.name, self.attack.needs, 0.0
        if self.once and isinstance(secret, NodeSecret):
            secret = replace(secret, compared=1)
        answers = None if cache is None else cache.read(self.subject, self.attack, self.rows, secret)
        if answers is None:
            started = time.perf_counter()
            answers = check_answers(self._attack(secret, seed), self.attack, secret)
            if isinstance(secret, NodeSecret) and "secrets" in needs:
                right = calibrate(answers.val, secret.val.y, wary=True)
                answers = Answers(right(answers.val), right(answers.test))
            seconds = time.perf_counter() - started
            if cache is not None:
                cache.write(self.subject, self.attack, self.rows, answers)
        return Finding(self.subject, name, needs, secret, answers, seconds)

    def _attack(self, secret: Secret, seed: int) -> Answers:
        """On one thread of BLAS and torch, so that the answers do not depend on how many there are."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with threadpool_limits(1, user_api="blas"):
                return self.attack(self.rows, secret, stream(seed, "audit", self.attack.name) % 2**32)
        finally:
            torch.set_num_threads(threads)


def run(
    tasks: Sequence[Task], secret: Secret, seed: int, effort: Effort, cache: AnswerCache | None = None
) -> tuple[list[Finding], list[str]]:
    """All findings, and the names of the attacks that there was no time for.

    Args:
        cache: of controls that are the same for all embeddings.
    """
    started, dropped = effort.started or time.perf_counter(), list[str]()
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
            yield delayed(task)(secret, seed, cache if task.subject in SHARED else None)

    costs = {(task.subject, task.attack.name): task.attack.cost for task in tasks}
    findings: list[Finding] = []
    jobs = min(effort.jobs, len(tasks))  # each is a process, whether there is work for it or not
    with kept_from_workers():
        found = Parallel(n_jobs=jobs, return_as="generator", pre_dispatch="n_jobs")(in_time())
    for finding in found:
        if finding.seconds > 0:
            pace.append((costs[finding.subject, finding.attack], finding.seconds / jobs))
        findings.append(finding)
    return findings, dropped


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
        if x.min() >= 0:
            x = TfidfTransformer().fit_transform(x)
        else:
            x = MaxAbsScaler().fit_transform(x) if sp.issparse(x) else standardised(x)
        x = TruncatedSVD(RAW_COLUMNS, random_state=stream(seed, "audit", "raw") % 2**32).fit_transform(x)
    return np.asarray(x.todense() if sp.issparse(x) else x, dtype=np.float32)


def resolve_panel(attacks: str | Sequence[Any] | None, secret: Secret) -> list[Attack]:
    """The attacks that were asked for: by name, or one by one."""
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
                " graphveil.auditing.Attack."
            )
    if not found:
        raise GraphveilError("no attack was given: leave out `attacks` for the whole panel.")
    names = [attack.name for attack in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise GraphveilError(f"two attacks are called {twice!r}: give them names that differ.")
    return found


def _counting(attacks: str | Sequence[Any] | None, secret: Secret, codes: Integers) -> list[Attack]:
    """The attacks of a panel by name that need few distinct rows, where there are few."""
    if not (attacks is None or isinstance(attacks, str)) or not is_discrete(codes):
        return []
    return links.counting() if isinstance(secret, LinkSecret) else nodes.counting()


def _marked(attacks: str | Sequence[Any] | None, secret: Secret, codes: Integers) -> list[Attack]:
    """The attack of a panel by name on what a file carries beside its numbers, where rows are not counted anyway."""
    if not (attacks is None or isinstance(attacks, str)) or is_discrete(codes):
        return []
    return [CompareMarks() if isinstance(secret, LinkSecret) else ReadMarks()]


def _fills_tables(secret: Secret, codes: Integers) -> bool:
    """Whether the known examples are so many to a cell of the table of codes that a learner hardly adds to counting."""
    count = int(codes.max()) + 1
    if isinstance(secret, LinkSecret):
        return EXAMPLES_PER_CELL * count * (count + 1) // 2 <= len(secret.known.y)
    return EXAMPLES_PER_CELL * count * secret.num_classes <= len(secret.known["all"].y)


def _with_features(secret: Secret, z_columns: int) -> list[Attack]:
    return links.with_features() if isinstance(secret, LinkSecret) else nodes.with_features(z_columns)


def classes_and_features(secret: Secret, features: Rows) -> list[Task]:
    """The control of a link secret: the attackers with features, given the true classes in place of z.

    Args:
        features: (num_nodes, columns), scaled as beside z.
    """
    if not isinstance(secret, LinkSecret) or secret.classes is None:
        return []
    rows = np.concatenate([_true_classes(secret.classes), features], axis=1)
    return [Task(CLASSES_AND_FEATURES, attack, rows) for attack in links.with_features()]


def known_links(secret: Secret, z: Rows, seed: int) -> list[Task]:
    """Of a link secret: the attackers who hold the known links beside z, without z, and beside the true classes."""
    if not isinstance(secret, LinkSecret):
        return []
    with threadpool_limits(1, user_api="blas"):  # as in a `Task`
        known = structure.known_links(secret, stream(seed, "audit", KNOWN_LINKS) % 2**32)
    nothing = np.zeros((secret.num_nodes, 0), dtype=np.float32)
    tasks = [Task(KNOWN_LINKS, attack, nothing) for attack in structure.links_alone(known)]
    tasks += [Task("embeddings", attack, z) for attack in structure.with_links(known)]
    if secret.classes is not None:
        classes = _true_classes(secret.classes)
        tasks += [Task(CLASSES_AND_LINKS, attack, classes) for attack in structure.with_links(known)]
    return tasks


def _true_classes(classes: Integers) -> Rows:
    """One column for each class, scaled; 0 in all of them before scaling where the class is unknown."""
    one_hot = classes[:, None] == np.unique(classes[classes != UNKNOWN])
    return scaled(one_hot.astype(np.float32))


def _title(task: Task) -> str:
    return task.attack.name if task.subject == "embeddings" else f"{task.attack.name} on {task.subject}"
