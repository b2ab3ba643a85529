"""`audit`: run a panel of attacks on embeddings and on controls."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from torch_geometric.data import Data

import graphveil
from graphveil.auditing import links, nodes
from graphveil.auditing.attacks import UNPROTECTED, WITH_FEATURES, Attack, scaled
from graphveil.auditing.cache import AnswerCache
from graphveil.auditing.certify import codes_certificate, is_discrete, limits_on_test, row_codes
from graphveil.auditing.context import Context
from graphveil.auditing.controls import control_rows, holding_features, known_link_tasks, with_features
from graphveil.auditing.embeddings import check_embeddings, exact, rows_digest, shape_flags
from graphveil.auditing.finding import Finding, ensemble
from graphveil.auditing.groups import check_columns, partitions
from graphveil.auditing.hidden_channels import LinkChannelAttack, NodeChannelAttack
from graphveil.auditing.learners import Rows
from graphveil.auditing.map import draw
from graphveil.auditing.metrics import Integers
from graphveil.auditing.result import Audit
from graphveil.auditing.secret import LinkSecret, NodeSecret, Secret, link_secret, node_secret
from graphveil.auditing.tasks import Effort, Task, run
from graphveil.data import Split, check_graph, check_split, digest
from graphveil.errors import GraphveilError, unknown
from graphveil.formats.audit import Origin
from graphveil.target import LABELS, Target

EXAMPLES_PER_CELL = 50
"""With as many known examples per cell of the table of codes and classes, the quick panel runs no learners on z."""


def audit(  # noqa: PLR0913 - three are required, and each of the others is given by its name
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
    """Measure how well a panel of attacks predicts a secret from embeddings.

    Args:
        z: embeddings, (num_nodes, channels), from any method.
        graph: the graph of the nodes.
        split: its split; attacks are scored on the test part.
        secret: "labels", "links" or the name of a node attribute.
        attacks: None or "full" for the full panel, "quick" for a few attacks (for discrete z with enough known secrets,
            only counts and distances), or a list of attacks: scikit-learn classifiers, or objects that implement
            `graphveil.auditing.Attack`.
        seed: the seed of everything that is drawn.
        controls: further embeddings to attack in the same way, by name, such as those of an untrained encoder.
        context: the utility, the joint adversary and notes, if known.
        effort: the time budget and the number of processes.
        by: node attributes; the result of the strongest attack is also given for each of their values, besides those by
            class and by degree.

    Returns:
        The audit; print it, or save it with `Audit.save`.
    """
    check_graph(graph)
    check_columns(graph, by)
    check_split(split, graph)
    rows = check_embeddings(z, graph.x.size(0))
    codes = row_codes(z)
    context, effort = context or Context(), effort or Effort()
    attacked = _attacked(secret, graph, split, attacks, seed, context)
    others = control_rows(graph, controls or {}, seed, quick=attacks == "quick")
    tasks = _without_known_links(z, attacked, attacks, others.get("raw features"))
    if _is_full(attacks):
        tasks += known_link_tasks(attacked, rows, seed)
    tasks += _on_controls(others, attacked, attacks)
    cache = _cache(effort, graph, split, secret, attacks, seed, context)
    findings, dropped = run(tasks, attacked, seed, effort, cache)
    by_subject: dict[str, list[Finding]] = {}
    for finding in findings:
        by_subject.setdefault(finding.subject, []).append(finding)
    for of_subject in by_subject.values():
        of_subject.extend(ensemble([one for one in of_subject if "z" in one.needs and one.on_z_alone]))
    certificate = codes_certificate(codes, graph, split, secret, _matched_by(context))
    return Audit(
        secret=attacked,
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
        limits={} if certificate is None else limits_on_test(codes, attacked),
        map=None if attacks == "quick" else draw(attacked, rows, others.get(UNPROTECTED), seed),
        partitions=partitions(graph, attacked, _matched_by(context) if attacked.target.is_links else secret, by),
    )


def early_attacks(
    z: Any,
    graph: Data,
    split: Split,
    secret: str,
    attacks: str | None,
    seed: int,
    context: Context,
    effort: Effort,
) -> list[partial[None]]:
    """The attacks of `audit` that need no encoder as a control, as functions that keep their answers for `audit`.

    They can run while these encoders train. There are none with a time budget, which may skip attacks, and without a
    folder for answers. Attacks on known links, which take a few seconds to prepare, are left to `audit`.

    Args:
        z, graph, split, secret, attacks, seed, context, effort: as in `audit`.

    Returns:
        A function for each attack, the costliest first.
    """
    cache = _cache(effort, graph, split, secret, attacks, seed, context)
    if cache is None or cache.subjects is not None or effort.time_budget is not None:
        return []
    attacked = _attacked(secret, graph, split, attacks, seed, context)
    others = control_rows(graph, {}, seed, quick=attacks == "quick")
    tasks = _without_known_links(z, attacked, attacks, others.get("raw features"))
    tasks += _on_controls(others, attacked, attacks)
    tasks.sort(key=lambda task: task.attack.cost, reverse=True)
    return [partial(task.keep, attacked, seed, cache) for task in tasks]


def resolve_secret(name: str, graph: Data, split: Split, seed: int, context: Context) -> Secret:
    """Take the known secrets and the queries of a secret from the split.

    Args:
        name: "labels", "links" or the name of a node attribute.
        graph: the graph of the nodes.
        split: its split.
        seed: the seed of the samples.
        context: links are matched by the classes that the utility keeps; by the labels if it keeps links.
    """
    if not Target.of(name).is_links:
        return node_secret(graph, split, name, seed)
    return link_secret(graph, split, seed, _matched_by(context))


def _attacked(
    name: str, graph: Data, split: Split, attacks: str | Sequence[Any] | None, seed: int, context: Context
) -> Secret:
    """The secret as the panel attacks it."""
    secret = resolve_secret(name, graph, split, seed, context)
    return secret.quick() if attacks == "quick" and isinstance(secret, NodeSecret) else secret


def _is_full(attacks: str | Sequence[Any] | None) -> bool:
    return attacks is None or attacks == "full"


def _cache(
    effort: Effort,
    graph: Data,
    split: Split,
    secret: str,
    attacks: str | Sequence[Any] | None,
    seed: int,
    context: Context,
) -> AnswerCache | None:
    """The cache of an audit; None for attacks of the caller, whose names do not identify them."""
    if attacks not in (None, "full", "quick"):
        return None
    about = f"{digest(graph)}/{split.digest()}/{secret}/{_matched_by(context)}/{seed}"
    if effort.unfinished is not None:
        return AnswerCache(effort.unfinished, f"{about}/{attacks or 'full'}", subjects=None)
    return None if effort.cache is None or attacks == "quick" else AnswerCache(effort.cache, about)


def _matched_by(context: Context) -> str:
    """The node attribute of class-matched pairs."""
    return LABELS if context.utility is None else Target.of(context.utility.name).matched_by


def resolve_panel(attacks: str | Sequence[Any] | None, secret: Secret) -> list[Attack]:
    """The attacks of a panel, given by its name or as a list; see `audit`.

    Args:
        attacks: None, "full", "quick" or a list.
        secret: the secret that is attacked.
    """
    of_links = isinstance(secret, LinkSecret)
    if attacks is None or attacks == "full":
        return links.panel(secret) if isinstance(secret, LinkSecret) else nodes.panel()
    if attacks == "quick":
        return links.quick() if of_links else nodes.quick()
    if isinstance(attacks, str):
        raise unknown("panel", attacks, ("full", "quick"))
    panel: list[Attack] = []
    for given in attacks:
        if hasattr(given, "fit") and hasattr(given, "predict_proba"):
            as_attacks = links.as_link_attacks if of_links else nodes.as_node_attacks
            panel += as_attacks(type(given).__name__, [given])
        elif callable(given) and all(hasattr(given, name) for name in ("name", "needs", "cost")):
            panel.append(given)
        else:
            raise GraphveilError(
                f"{given!r} is not an attack: give scikit-learn classifiers that have predict_proba, or objects like"
                " graphveil.auditing.Attack."
            )
    if not panel:
        raise GraphveilError("the list of attacks is empty: omit `attacks` for the full panel.")
    names = [attack.name for attack in panel]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise GraphveilError(f"two attacks are called {twice!r}: give them different names.")
    return panel


def _without_known_links(
    z: Any, secret: Secret, attacks: str | Sequence[Any] | None, features: Rows | None
) -> list[Task]:
    """The attackers who hold z, and in the full panel those who hold z and the features."""
    tasks = on_embeddings(z, secret, attacks)
    if features is not None and _is_full(attacks):
        tasks += holding_features(check_embeddings(z, secret.num_nodes), scaled(features), secret)
    return tasks


def on_embeddings(z: Any, secret: Secret, attacks: str | Sequence[Any] | None = None) -> list[Task]:
    """The attacks of the panel on z; some attackers also know the public graph.

    Args:
        z: embeddings, (num_nodes, channels).
        secret: the secret that is attacked.
        attacks: as in `audit`.
    """
    rows, codes, panel = check_embeddings(z, secret.num_nodes), row_codes(z), resolve_panel(attacks, secret)
    counting = _counting_attacks(attacks, secret, codes)
    if attacks == "quick" and counting and _table_is_filled(secret, codes):
        panel = [attack for attack in panel if not {"secrets", "few secrets"} & set(attack.needs)]
    tasks = [Task("embeddings", attack, rows) for attack in [*counting, *panel]]
    channels = _channel_attacks(attacks, secret, codes)
    return tasks + [Task("embeddings", attack, exact(z).astype(np.float64)) for attack in channels]


def _on_controls(others: Mapping[str, Rows], secret: Secret, attacks: str | Sequence[Any] | None) -> list[Task]:
    """The attacks on controls.

    The full panel leaves out attacks that are rarely the strongest. On raw features it runs the same attacks as on z
    and the features, so that the difference is what z adds.
    """
    panel, tasks = resolve_panel(attacks, secret), list[Task]()
    on_encoders = [attack for attack in panel if "graph" not in attack.needs]
    on_features = on_encoders
    if _is_full(attacks):
        on_encoders = links.on_encoders() if isinstance(secret, LinkSecret) else nodes.on_encoders()
        beside_z = [attack.name for attack in with_features(secret, 0)]  # only their names are needed
        on_features = [attack for attack in on_encoders if f"{attack.name}{WITH_FEATURES}" in beside_z]
    for name, other in others.items():
        chosen, one_fold = (on_features, False) if name == "raw features" else (on_encoders, True)
        counting = _counting_attacks(attacks, secret, row_codes(other))
        tasks += [Task(name, attack, other, one_fold) for attack in [*counting, *chosen]]
    if isinstance(secret, NodeSecret) and any("graph" in attack.needs for attack in panel):
        no_columns = np.zeros((secret.num_nodes, 0), dtype=np.float32)
        tasks += [Task("public graph", attack, no_columns) for attack in nodes.graph_alone()]
    return tasks


def _counting_attacks(attacks: str | Sequence[Any] | None, secret: Secret, codes: Integers) -> list[Attack]:
    """The attacks of a named panel on few distinct rows; none if there are many."""
    if not (attacks is None or isinstance(attacks, str)) or not is_discrete(codes):
        return []
    return links.counting() if isinstance(secret, LinkSecret) else nodes.counting()


def _channel_attacks(attacks: str | Sequence[Any] | None, secret: Secret, codes: Integers) -> list[Attack]:
    """The attacks of a named panel on hidden channels; none for discrete embeddings, which are counted."""
    if not (attacks is None or isinstance(attacks, str)) or is_discrete(codes):
        return []
    return [LinkChannelAttack() if isinstance(secret, LinkSecret) else NodeChannelAttack()]


def _table_is_filled(secret: Secret, codes: Integers) -> bool:
    """Whether there are so many known examples per cell of the table of codes that learners hardly add to counting."""
    count = int(codes.max()) + 1
    if isinstance(secret, LinkSecret):
        return EXAMPLES_PER_CELL * count * (count + 1) // 2 <= len(secret.known.y)
    return EXAMPLES_PER_CELL * count * secret.num_classes <= len(secret.known["all"].y)
