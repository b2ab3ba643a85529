"""Attack results by group of nodes: by class, by degree tercile and by the values of a column.

An average can hide a group about which the embeddings reveal far more. Each group has a value and a reference, the
chance level in that group:

| groups | value | reference |
|---|---|---|
| nodes, by degree tercile or column | accuracy | share of the group's most frequent class among all known nodes |
| nodes, by the secret's own class | TPR - FPR | 0 |
| pairs, by class or column | AUC of the pairs with at least one end in the group | 0.5 |
| pairs, by degree tercile | AUC of the pairs whose end of smaller degree is in the tercile | 0.5 |

TPR - FPR is the share of the class that the attack assigns to it, minus the share of all other nodes that it assigns
to it: 0 at chance, 1 for a perfect attack. The accuracy within a class is not used, because always predicting that
class has an accuracy of 1 there. With two classes, both have the same value. If the utility keeps classes, the
reference of pairs is the AUC of the best rule on the true classes, on the same pairs, if that is above 0.5.

The intervals hold for all judged groups together: the error of 2.5 % on either side is divided by their number
(Bonferroni, which holds for overlapping groups too). Shares have exact intervals (Clopper-Pearson), because Wilson's
can have more than ten times the error that they state at such small levels and counts. The intervals of an AUC are
approximate: in simulated noise 1 to 2 % of the audits had a group of pairs above its reference, and 3.4 % in the worst
case, where scores belong to nodes and a few hubs have most of the links.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr, stdtrit
from torch_geometric.data import Data

from graphveil.auditing.metrics import Array, Integers, auc, clopper_pearson, share_difference
from graphveil.auditing.secret import NodeSecret, Queries, Secret
from graphveil.data import UNKNOWN, node_classes
from graphveil.data.graph import node_attributes, undirected_pairs
from graphveil.data.origin import class_names
from graphveil.errors import GraphveilError, shortened, unknown
from graphveil.formats import Interval
from graphveil.formats import audit as formats

FALSE_ALARMS = 0.025
"""Upper bound on the probability that noise has any group's interval above its reference."""
MIN_EXAMPLES = 20
"""Groups with fewer test nodes are not judged, nor classes with fewer test nodes outside them, nor groups of pairs with
fewer links, fewer non-links or a smaller effective number of nodes."""
MAX_VALUES = 12
"""Values of a column with a group of their own; the nodes with all other values are one more group."""

Kind = Literal["class", "degree", "column"]
Measure = Literal["accuracy", "tpr_minus_fpr", "auc"]
KINDS: dict[Kind, str] = {"class": "by class", "degree": "by degree", "column": "by a column"}
"""The kind of a group, for a release: it must show neither a value of a node nor the name of a feature."""
MEASURES: dict[Measure, str] = {"accuracy": "accuracy", "tpr_minus_fpr": "TPR - FPR", "auc": "AUC"}


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of the nodes into groups.

    Args:
        kind: what the groups are by.
        by: "degree", or the name of a node attribute.
        names: the names of the groups 0, 1, ...
        group: the group of each node, (num_nodes,); `UNKNOWN` for nodes without a group.
        of_class: the group of each class, (num_classes,), for groups by the secret's own class.
    """

    kind: Kind
    by: str
    names: Sequence[str]
    group: Integers
    of_class: Integers | None = None


@dataclass(frozen=True)
class Group:
    """The result of the strongest attack on one group.

    Args:
        kind: what the group is by.
        by: "degree", or the name of a node attribute.
        name: the name of the group.
        measure: what the value is.
        examples: test nodes or pairs in the group.
        estimate: the value, with an interval corrected for the number of groups; None with too few examples.
        reference: the value without the embeddings.
        compared_with: the origin of the reference: "chance level" or "true classes".
    """

    kind: Kind
    by: str
    name: str
    measure: Measure
    examples: int
    estimate: Interval | None = None
    reference: float | None = None
    compared_with: str = "chance level"

    @property
    def label(self) -> str:
        """The name of the group, with what it is by."""
        return shortened(f"degree {self.name}" if self.kind == "degree" else f"{self.by} = {self.name}", 60)

    @property
    def margin(self) -> float | None:
        """The lower bound of the interval minus the reference; above 0 the group leaks."""
        return None if self.estimate is None or self.reference is None else self.estimate.low - self.reference

    def record(self) -> formats.Group:
        """The entry of this group in audit.json."""
        one = self.estimate
        return formats.Group(
            kind=self.kind,
            by=self.by,
            group=self.name,
            measure=self.measure,
            examples=self.examples,
            value=None if one is None else one.value,
            ci=None if one is None else one.ci,
            reference=self.reference,
            compared_with=self.compared_with,
        )


# ----- partitions -----------------------------------------------------------------------------------------------------


def partitions(graph: Data, secret: Secret, classes: str, by: Sequence[str] = ()) -> list[Partition]:
    """Partition the nodes by class, by degree tercile and by columns; a partition with one group is left out.

    Args:
        graph: the graph with the node attributes.
        secret: the secret that is attacked.
        classes: the name of the secret itself or, for links, of the attribute of class-matched pairs.
        by: names of further node attributes.
    """
    parts = []
    columns = [classes] if isinstance(secret, NodeSecret) or secret.classes is not None else []
    for name in dict.fromkeys([*columns, *by]):
        y = node_classes(graph, name).cpu().numpy()
        names = class_names(graph, name, int(y.max(initial=0)) + 1)
        part = by_value("class" if name == classes else "column", name, y, names)
        parts.append(part if isinstance(secret, NodeSecret) and name == classes else replace(part, of_class=None))
    links = undirected_pairs(graph.edge_index.cpu()).numpy()
    parts.insert(len(columns), by_degree(np.bincount(links.ravel(), minlength=secret.num_nodes)))
    return [part for part in parts if len(part.names) > 1]


def by_value(kind: Kind, by: str, y: Integers, names: Sequence[str]) -> Partition:
    """One group for each value, in their order; of many values, for the most frequent ones and for "others".

    Args:
        kind: what the groups are by.
        by: the name of the node attribute.
        y: the value of each node, (num_nodes,); `UNKNOWN` where unknown.
        names: the names of the values 0, 1, ...
    """
    count = np.bincount(y[y != UNKNOWN], minlength=len(names))
    frequent = np.sort(np.argsort(-count, kind="stable")[:MAX_VALUES])
    frequent = frequent[count[frequent] > 0]
    of_class = np.full(len(count), len(frequent))
    of_class[frequent] = np.arange(len(frequent))
    shown = [names[value] if value < len(names) else f"class {value}" for value in frequent]
    if count.sum() > count[frequent].sum():
        shown.append("others")
    return Partition(kind, by, shown, np.where(y == UNKNOWN, UNKNOWN, of_class[y]), of_class)


def by_degree(degree: Integers) -> Partition:
    """Thirds of the nodes by degree, lowest first; nodes of equal degree stay together.

    The two borders are where the share of nodes below is nearest to one third and to two thirds. With few distinct
    degrees there are fewer than three groups.

    Args:
        degree: the degree of each node, (num_nodes,).
    """
    values, count = np.unique(degree, return_counts=True)
    below = np.cumsum(count)[:-1] / len(degree)
    if len(below) == 0:
        return Partition("degree", "degree", ["any"], np.zeros(len(degree), dtype=np.int64))
    borders = np.unique([np.abs(below - share).argmin() for share in (1 / 3, 2 / 3)])
    first = values[np.concatenate([[0], borders + 1])]
    last = values[np.concatenate([borders, [len(values) - 1]])]
    names = [str(low) if low == high else f"{low} to {high}" for low, high in zip(first, last, strict=True)]
    return Partition("degree", "degree", names, np.searchsorted(last, degree))


def check_columns(graph: Data, by: Sequence[str], readable: Sequence[str] = ()) -> None:
    """Raise an error for a column to group by that the graph does not have.

    Args:
        graph: the graph with the node attributes.
        by: names of the columns.
        readable: further columns of the graph's tables.
    """
    if isinstance(by, str):
        raise GraphveilError(f"by is {by!r}: give a list of names, such as ['gender'].")
    available = [*(["labels"] if "y" in graph else []), *sorted(node_attributes(graph))]
    available += [name for name in readable if name not in available]
    for name in by:
        if not available:
            raise GraphveilError(f"the graph has no node attributes, so it cannot be grouped by {name!r}: omit it.")
        if name not in available:
            raise unknown("column to group by", name, available)
        if name == "labels" or name in graph:
            node_classes(graph, name)  # raises an error for numbers that are not classes


# ----- results --------------------------------------------------------------------------------------------------------

Estimator = Callable[[float], Interval]
"""From the error of the interval on either side to the estimate."""


def node_groups(log_p: Array, secret: NodeSecret, parts: Sequence[Partition]) -> list[Group]:
    """The result of one attack on a node secret, by group.

    Args:
        log_p: its answers, (test nodes, classes).
        secret: the secret that was attacked.
        parts: the partitions.
    """
    predicted = log_p.argmax(axis=1)
    every = secret.known["all"].concat(secret.test)
    groups = list[tuple[Group, Estimator | None]]()
    for part in parts:
        for number, name in enumerate(part.names):
            inside = part.group[secret.test.index] == number
            if part.of_class is not None:
                group = Group(part.kind, part.by, name, "tpr_minus_fpr", int(inside.sum()), reference=0.0)
                groups.append((group, _difference(part.of_class[predicted] == number, inside)))
                continue
            group = Group(part.kind, part.by, name, "accuracy", int(inside.sum()))
            if group.examples >= MIN_EXAMPLES:
                count = np.bincount(every.y[part.group[every.index] == number])
                group = replace(group, reference=float(count.max() / count.sum()))
            groups.append((group, _accuracy((predicted == secret.test.y)[inside])))
    return _estimated(groups)


def link_groups(
    score: Array, test: Queries, parts: Sequence[Partition], class_score: Array | None = None
) -> list[Group]:
    """The result of one attack on links, by group.

    Args:
        score: its answers, (test pairs,).
        test: the test pairs.
        parts: the partitions.
        class_score: the scores of the best rule on the true classes, (test pairs,), if the utility keeps classes; NaN
            where a class is unknown.
    """
    groups = list[tuple[Group, Estimator | None]]()
    for part in parts:
        ends = part.group[test.index]
        for number, name in enumerate(part.names):
            # degree groups are in ascending order: the smaller group has the smaller degree
            inside = ends.min(axis=0) == number if part.kind == "degree" else (ends == number).any(axis=0)
            group = Group(part.kind, part.by, name, "auc", int(inside.sum()), reference=0.5)
            if class_score is not None:
                group = _compare_with_classes(group, class_score, test, inside)
            members = test.index[:, inside][ends[:, inside] == number]
            groups.append((group, _auc(score, test, inside, _effective_number(members))))
    return _estimated(groups)


def worst(groups: Sequence[Group]) -> Group | None:
    """The judged group whose lower bound is highest above its reference."""
    margins = [(group.margin, -place) for place, group in enumerate(groups) if group.margin is not None]
    return groups[-max(margins)[1]] if margins else None


def judged(groups: Sequence[Group]) -> int:
    """The number of groups with enough examples; the intervals are corrected for it."""
    return sum(group.estimate is not None for group in groups)


def _estimated(groups: Sequence[tuple[Group, Estimator | None]]) -> list[Group]:
    """Interval all groups with enough examples; the error is divided by their number (Bonferroni)."""
    error = FALSE_ALARMS / max(1, sum(estimator is not None for _, estimator in groups))
    return [
        replace(group, reference=None) if estimator is None else replace(group, estimate=estimator(error))
        for group, estimator in groups
    ]


def _accuracy(correct: Any) -> Estimator | None:
    if len(correct) < MIN_EXAMPLES:
        return None
    return lambda error: clopper_pearson(int(correct.sum()), len(correct), error)


def _difference(assigned: Any, inside: Any) -> Estimator | None:
    if min(inside.sum(), (~inside).sum()) < MIN_EXAMPLES:
        return None
    hits, count = (int(assigned[inside].sum()), int(assigned[~inside].sum())), (int(inside.sum()), int((~inside).sum()))
    return lambda error: share_difference(hits, count, error)


def _auc(score: Array, test: Queries, inside: Any, nodes: float) -> Estimator | None:
    """With Student's t for the number of nodes: with few nodes, the variance itself is uncertain."""
    y, pairs = test.y[inside], test.index[:, inside]
    if min((y == 1).sum(), (y == 0).sum(), nodes) < MIN_EXAMPLES:
        return None
    return lambda error: auc(score[inside], y, pairs, float(ndtr(stdtrit(nodes - 1, error))))


def _effective_number(nodes: Integers) -> float:
    """The effective number of nodes: one over the sum of squared shares."""
    count = np.bincount(nodes)
    return float(count.sum() ** 2 / max(1, np.square(count).sum()))


def _compare_with_classes(group: Group, class_score: Array, test: Queries, inside: Any) -> Group:
    """The group with the AUC of the true classes as its reference, if that is above 0.5."""
    known = inside & np.isfinite(class_score)
    y = test.y[known]
    if not 0 < y.sum() < len(y):
        return group
    value = auc(class_score[known], y, test.index[:, known]).value
    return replace(group, reference=value, compared_with="true classes") if value > 0.5 else group
