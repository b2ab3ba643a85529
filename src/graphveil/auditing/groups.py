"""Attack results by group of nodes: by class, by degree third and by the values of a column.

An average can hide a group about which the embeddings reveal far more. Each group has a value and the value of guessing
in that group, its reference:

| groups | value | reference |
|---|---|---|
| nodes, by degree third or column | accuracy | share of the group's most frequent class among all known nodes |
| nodes, by the secret's own class | TPR - FPR | 0 |
| pairs, by class or column | AUC of the pairs with at least one end in the group | 0.5 |
| pairs, by degree third | AUC of the pairs whose end of smaller degree is in the third | 0.5 |

TPR - FPR is the share of the class that the attack assigns to it, minus the share of all other nodes that it assigns
to it: 0 for guessing, 1 for a perfect attack. The accuracy within a class would not do, because naming that class
always has an accuracy of 1 there. With two classes both have the same value. Where the utility keeps classes, the
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

from graphveil.auditing.metrics import Array, Integers, auc, exact_share, share_difference
from graphveil.auditing.secret import NodeSecret, Queries, Secret
from graphveil.data import UNKNOWN, node_classes
from graphveil.data.graph import node_attributes, undirected_pairs
from graphveil.data.origin import class_names
from graphveil.errors import GraphveilError, shortened, unknown
from graphveil.formats import Interval
from graphveil.formats import audit as formats

FALSE_ALARMS = 0.025
"""Probability that noise has any group's interval above its reference, at most."""
LEAST = 20
"""Groups with fewer test nodes are not judged, nor classes with fewer test nodes outside them, nor groups of pairs with
fewer links, fewer non-links or, counting a node that is the end of many pairs as less than one, fewer nodes."""
MOST_VALUES = 12
"""Values of a column with a group each; the nodes of all other values are one more group."""

Kind = Literal["class", "degree", "column"]
Measure = Literal["accuracy", "tpr_minus_fpr", "auc"]
KINDS: dict[Kind, str] = {"class": "by class", "degree": "by degree", "column": "by a column"}
"""For a release, which must show neither a value of a node nor the name of a feature."""
MEASURES: dict[Measure, str] = {"accuracy": "accuracy", "tpr_minus_fpr": "TPR - FPR", "auc": "AUC"}


@dataclass(frozen=True, eq=False)
class Partition:
    """Nodes by group.

    Args:
        by: "degree", or the name of a node attribute.
        names: of the groups 0, 1, ...
        group: (num_nodes,), the group of each node, `UNKNOWN` for nodes without one.
        of_class: (num_classes,), the group of each class, for groups by the secret's own class.
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
        examples: test nodes or pairs in the group.
        estimate: None for a group with too few examples.
        reference: the value without the embeddings.
        compared_with: what has that value: "guessing" or "true classes".
    """

    kind: Kind
    by: str
    name: str
    measure: Measure
    examples: int
    estimate: Interval | None = None
    reference: float | None = None
    compared_with: str = "guessing"

    @property
    def label(self) -> str:
        """The group in a few words."""
        return shortened(f"degree {self.name}" if self.kind == "degree" else f"{self.by} = {self.name}", 60)

    @property
    def margin(self) -> float | None:
        """The lower end of the interval minus the reference; above 0 the group leaks."""
        return None if self.estimate is None or self.reference is None else self.estimate.low - self.reference

    def record(self) -> formats.Group:
        """As it stands in audit.json."""
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
    """Partition the nodes by class, by degree third and by columns; a partition of one group is left out.

    Args:
        classes: the secret itself, or the attribute that links are matched by.
        by: names of further node attributes.
    """
    found = []
    columns = [classes] if isinstance(secret, NodeSecret) or secret.classes is not None else []
    for name in dict.fromkeys([*columns, *by]):
        y = node_classes(graph, name).cpu().numpy()
        names = class_names(graph, name, int(y.max(initial=0)) + 1)
        one = by_value("class" if name == classes else "column", name, y, names)
        found.append(one if isinstance(secret, NodeSecret) and name == classes else replace(one, of_class=None))
    links = undirected_pairs(graph.edge_index.cpu()).numpy()
    found.insert(len(columns), by_degree(np.bincount(links.ravel(), minlength=secret.num_nodes)))
    return [one for one in found if len(one.names) > 1]


def by_value(kind: Kind, by: str, y: Integers, names: Sequence[str]) -> Partition:
    """One group a value, in the order of the values; of many values the most frequent, and "others".

    Args:
        y: (num_nodes,), `UNKNOWN` where unknown. names: of the values 0, 1, ...
    """
    count = np.bincount(y[y != UNKNOWN], minlength=len(names))
    frequent = np.sort(np.argsort(-count, kind="stable")[:MOST_VALUES])
    frequent = frequent[count[frequent] > 0]
    of_class = np.full(len(count), len(frequent))
    of_class[frequent] = np.arange(len(frequent))
    shown = [names[value] if value < len(names) else f"class {value}" for value in frequent]
    if count.sum() > count[frequent].sum():
        shown.append("others")
    return Partition(kind, by, shown, np.where(y == UNKNOWN, UNKNOWN, of_class[y]), of_class)


def by_degree(degree: Integers) -> Partition:
    """Thirds of the nodes by degree, lowest first; nodes of equal degree stay together.

    Each of the two borders lies where the share of nodes below it is nearest to one third and two thirds, so few
    distinct degrees give fewer than three groups.
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
    """Refuse a column to group by that the graph does not have.

    Args:
        readable: further columns of the graph's tables.
    """
    if isinstance(by, str):
        raise GraphveilError(f"by is {by!r}: give a list of names, such as ['gender'].")
    there = [*(["labels"] if "y" in graph else []), *sorted(node_attributes(graph))]
    there += [name for name in readable if name not in there]
    for name in by:
        if not there:
            raise GraphveilError(f"the graph has no {name!r} to group by: it has no node attribute, so leave it out.")
        if name not in there:
            raise unknown("column to group by", name, there)
        if name == "labels" or name in graph:
            node_classes(graph, name)  # refuses numbers that are not classes


# ----- results --------------------------------------------------------------------------------------------------------

Judge = Callable[[float], Interval]
"""Gives the estimate whose interval has this error on either side."""


def node_groups(log_p: Array, secret: NodeSecret, parts: Sequence[Partition]) -> list[Group]:
    """The result of one attack on a node secret, by group.

    Args:
        log_p: (test nodes, classes), its answers.
    """
    guess = log_p.argmax(axis=1)
    every = secret.known["all"].concat(secret.test)
    found = list[tuple[Group, Judge | None]]()
    for part in parts:
        for number, name in enumerate(part.names):
            inside = part.group[secret.test.index] == number
            if part.of_class is not None:
                group = Group(part.kind, part.by, name, "tpr_minus_fpr", int(inside.sum()), reference=0.0)
                found.append((group, _difference(part.of_class[guess] == number, inside)))
                continue
            group = Group(part.kind, part.by, name, "accuracy", int(inside.sum()))
            if group.examples >= LEAST:
                count = np.bincount(every.y[part.group[every.index] == number])
                group = replace(group, reference=float(count.max() / count.sum()))
            found.append((group, _accuracy((guess == secret.test.y)[inside])))
    return _estimated(found)


def link_groups(
    score: Array, test: Queries, parts: Sequence[Partition], class_score: Array | None = None
) -> list[Group]:
    """The result of one attack on links, by group.

    Args:
        score: (test pairs,), its answers.
        class_score: (test pairs,), those of the best rule on true classes, if the utility keeps classes; NaN where
            unknown.
    """
    found = list[tuple[Group, Judge | None]]()
    for part in parts:
        ends = part.group[test.index]
        for number, name in enumerate(part.names):
            # degree groups are in ascending order, so the smaller number is that of the smaller degree
            inside = ends.min(axis=0) == number if part.kind == "degree" else (ends == number).any(axis=0)
            group = Group(part.kind, part.by, name, "auc", int(inside.sum()), reference=0.5)
            if class_score is not None:
                group = _beside_classes(group, class_score, test, inside)
            members = test.index[:, inside][ends[:, inside] == number]
            found.append((group, _auc(score, test, inside, _effective(members))))
    return _estimated(found)


def worst(groups: Sequence[Group]) -> Group | None:
    """The judged group with the largest lower end above its reference."""
    judged = [(group.margin, -place) for place, group in enumerate(groups) if group.margin is not None]
    return groups[-max(judged)[1]] if judged else None


def judged(groups: Sequence[Group]) -> int:
    """The number of groups with enough examples, which the intervals are corrected for."""
    return sum(group.estimate is not None for group in groups)


def _estimated(found: Sequence[tuple[Group, Judge | None]]) -> list[Group]:
    """Interval all groups with enough examples, at an error that is divided by their number."""
    error = FALSE_ALARMS / max(1, sum(judge is not None for _, judge in found))
    return [
        replace(group, reference=None) if judge is None else replace(group, estimate=judge(error))
        for group, judge in found
    ]


def _accuracy(right: Any) -> Judge | None:
    if len(right) < LEAST:
        return None
    return lambda error: exact_share(int(right.sum()), len(right), error)


def _difference(named: Any, inside: Any) -> Judge | None:
    if min(inside.sum(), (~inside).sum()) < LEAST:
        return None
    hits, count = (int(named[inside].sum()), int(named[~inside].sum())), (int(inside.sum()), int((~inside).sum()))
    return lambda error: share_difference(hits, count, error)


def _auc(score: Array, test: Queries, inside: Any, nodes: float) -> Judge | None:
    """With Student's t for the number of nodes: the variance of pairs that share few of them is itself uncertain."""
    y, pairs = test.y[inside], test.index[:, inside]
    if min((y == 1).sum(), (y == 0).sum(), nodes) < LEAST:
        return None
    return lambda error: auc(score[inside], y, pairs, float(ndtr(stdtrit(nodes - 1, error))))


def _effective(nodes: Integers) -> float:
    """How many equally frequent nodes are as concentrated as these ends: one over the sum of squared shares."""
    count = np.bincount(nodes)
    return float(count.sum() ** 2 / max(1, np.square(count).sum()))


def _beside_classes(group: Group, class_score: Array, test: Queries, inside: Any) -> Group:
    """The same group, compared with the true classes where these have the higher AUC."""
    known = inside & np.isfinite(class_score)
    y = test.y[known]
    if not 0 < y.sum() < len(y):
        return group
    value = auc(class_score[known], y, test.index[:, known]).value
    return replace(group, reference=value, compared_with="true classes") if value > 0.5 else group
