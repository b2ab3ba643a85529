"""The panel for node secrets: attacks that predict a class from a row, with few known secrets and with all."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.auditing import classifiers, learners, networks
from graphveil.auditing.attacks import WITH_FEATURES, Answers, Attack, Need, by_row, scaled, standardised, whitened
from graphveil.auditing.learners import Examples, Learner, Rows
from graphveil.auditing.propagation import Propagate, gnn_rows, graph_rows, secrets_needed
from graphveil.auditing.secret import NodeSecret, Queries
from graphveil.codes import distinct_codes
from graphveil.data.splits.split import Knowledge

TUNING_NODES = 400
"""Held-out nodes that an attack is tuned on, or as many as there are."""
KNOWLEDGE: tuple[Knowledge, ...] = ("few", "all")
CROSSED_DIRECTIONS = 16
"""Directions of z that are multiplied with the features."""
MAX_PRODUCTS = 100_000_000
"""Products of z and features over all nodes; with more, fewer directions of z are multiplied."""


View = Callable[[Rows, NodeSecret, Queries], Rows]
"""From z, the secret and the known part of it to one row for each node."""
Scaling = Callable[[Rows], Rows]


def z_itself(z: Rows, secret: NodeSecret, known: Queries) -> Rows:  # noqa: ARG001 - a view like the others
    """The embeddings."""
    return z


@dataclass(frozen=True)
class Classify:
    """Fit a learner to the rows of the known nodes, and predict the classes of the others.

    Args:
        name: the name of the attack.
        learner: a function from the number of columns to the learner.
        knowledge: how many secrets the attacker knows.
        cost: relative run time.
        view: the rows that the learner sees.
        holds: what the attacker holds besides the known secrets.
        scalings: the scalings of the rows; the best is chosen on held-out nodes.
    """

    name: str
    learner: Callable[[int], Learner]
    knowledge: Knowledge
    cost: float
    view: View = z_itself
    holds: tuple[Need, ...] = ("z",)
    scalings: tuple[Scaling, ...] = (scaled, standardised, whitened)

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the attacker holds, and the known secrets."""
        return *self.holds, secrets_needed(self.knowledge)

    def __call__(self, z: Rows, secret: NodeSecret, seed: int) -> Answers:
        """Attack the secret; see `Attack`."""
        answers = self._from_few(z, secret, seed) if self.knowledge == "few" else self._from_all(z, secret, seed)
        return answers if "graph" in self.needs else by_row(answers, z, secret)

    def _from_all(self, z: Rows, secret: NodeSecret, seed: int) -> Answers:
        rows = _NodeRows(self, z, secret)
        folds, known = secret.held_out, secret.known["all"]
        tuning_folds = folds[: math.ceil(TUNING_NODES / max(1, len(folds[0][1].y)))]
        views = [
            [(rows(scale, train, train), rows(scale, train, held_out)) for train, held_out in tuning_folds]
            for scale in self.scalings
        ]
        learner, classes = self.learner(views[0][0][0].x.shape[1]), secret.num_classes
        tuned = learners.tune(learner, views, classes, seed)
        scale, rounds, on_val = self.scalings[tuned.view], tuned.rounds, []
        for train, held_out in folds:
            queries = rows(scale, train, held_out)
            model = learners.fit(learner, rows(scale, train, train), classes, tuned.setting, seed, rounds or queries)
            on_val.append(model.log_probabilities(queries.x))
            rounds = rounds or model.rounds
        final = learners.fit(learner, rows(scale, known, known), classes, tuned.setting, seed, rounds or None)
        return Answers(np.concatenate(on_val), final.log_probabilities(rows(scale, known, secret.test).x))

    def _from_few(self, z: Rows, secret: NodeSecret, seed: int) -> Answers:
        known, rows = secret.known["few"], _NodeRows(self, z, secret)
        views = [learners.folds_of(rows(scale, known, known), seed) for scale in self.scalings]
        learner, classes = self.learner(views[0][0][0].x.shape[1]), secret.num_classes
        tuned = learners.tune(learner, views, classes, seed)
        scale = self.scalings[tuned.view]
        model = learners.fit(learner, rows(scale, known, known), classes, tuned.setting, seed, tuned.rounds or None)
        on_val, on_test = (model.log_probabilities(rows(scale, known, part).x) for part in (secret.val, secret.test))
        return Answers(on_val, on_test)


class _NodeRows:
    """The rows of nodes as an attack sees them, computed once for each scaling.

    Rows of an attack that holds the graph depend on the known secrets, and are computed once for each known part too.
    """

    def __init__(self, attack: Classify, z: Rows, secret: NodeSecret) -> None:
        self._attack, self._z, self._secret = attack, z, secret
        self._cache: dict[tuple[Scaling, int], Rows] = {}

    def __call__(self, scale: Scaling, known: Queries, queries: Queries) -> Examples:
        key = scale, id(known) if "graph" in self._attack.holds else 0
        if key not in self._cache:
            self._cache[key] = scale(self._attack.view(self._z, self._secret, known))
        return Examples(self._cache[key][queries.index], queries.y)


def panel() -> list[Attack]:
    """All attacks on a node secret, the cheapest first."""
    attacks: list[Attack] = [
        Classify("forest, all", lambda _: classifiers.forest(), "all", 7.0, scalings=_FOR_TREES),
        Classify("boosted trees, all", lambda _: classifiers.trees(), "all", 4.0, scalings=_FOR_TREES),
    ]
    for knows in KNOWLEDGE:
        factor = 1.0 if knows == "few" else 8.0
        attacks += [
            Classify(f"logistic regression, {knows}", lambda _: classifiers.logistic_regression(), knows, 0.3 * factor),
            Classify(f"k nearest neighbours, {knows}", lambda _: classifiers.neighbours(), knows, 0.2 * factor),
            Propagate(knows, 0.2 * factor),
            Classify(f"kernel machine, {knows}", lambda _: classifiers.Kernel(), knows, 0.3 * factor),
            Classify(f"MLP, {knows}", lambda _: networks.mlp(), knows, 0.8 * factor),
            Classify(
                f"GNN with the public graph, {knows}", _gnn_learner(knows), knows, 0.9 * factor, gnn_rows, _WITH_GRAPH
            ),
        ]
    return sorted(attacks, key=lambda attack: attack.cost)


def on_encoders() -> list[Attack]:
    """The attacks on controls that are encoders, of which only the strongest is reported."""
    kinds = ("logistic regression", "kernel machine", "boosted trees", "MLP")
    return [attack for attack in panel() if attack.name in [f"{kind}, all" for kind in kinds]]


def quick() -> list[Attack]:
    """The quick panel, for sweeps: linear models with few and all known secrets, neighbours and a network."""
    return [
        Classify("logistic regression, few", lambda _: classifiers.logistic_regression(), "few", 0.3),
        Classify("k nearest neighbours, all", lambda _: classifiers.neighbours(), "all", 1.6),
        Classify("logistic regression, all", lambda _: classifiers.logistic_regression(), "all", 2.4),
        Classify("MLP, all", lambda _: networks.untuned_mlp(), "all", 3.0, scalings=(standardised, whitened)),
    ]


def counting() -> list[Attack]:
    """The attack on an embedding with few distinct rows: class counts of the known nodes by row."""
    table = Classify(
        "table of distinct rows", lambda _: classifiers.CountTable(), "all", 0.05, row_numbers, scalings=(_unscaled,)
    )
    return [table]


def with_features(z_columns: int) -> list[Attack]:
    """The attacks on z and the features side by side.

    z and a feature can reveal together what neither reveals alone, so one attack sees their products too.

    Args:
        z_columns: the number of columns of z, which come first.
    """
    holds: tuple[Need, ...] = ("z", "features")

    def classify(name: str, learner: Callable[[int], Learner], cost: float, scalings: tuple[Scaling, ...]) -> Attack:
        return Classify(f"{name}, all{WITH_FEATURES}", learner, "all", cost, holds=holds, scalings=scalings)

    return [
        classify("logistic regression", lambda _: classifiers.logistic_regression(), 3.0, (standardised, whitened)),
        classify("boosted trees", lambda _: classifiers.trees(), 6.0, _FOR_TREES),
        classify("MLP", lambda _: networks.mlp(), 7.0, (standardised, whitened)),
        classify("logistic regression on products", lambda _: _strong_penalty(), 8.0, (Products(z_columns),)),
    ]


def as_node_attacks(name: str, estimators: Sequence[Any]) -> list[Attack]:
    """scikit-learn classifiers as attacks, with few and with all known secrets.

    Args:
        name: the name of the attacks.
        estimators: classifiers with `predict_proba`; the best is chosen on held-out nodes.
    """
    return [Classify(f"{name}, {knows}", lambda _: classifiers.Sklearn(estimators), knows, 5.0) for knows in KNOWLEDGE]


def graph_alone() -> list[Attack]:
    """The attacks on the public graph without an embedding: the control of the GNN."""
    return [
        Classify(
            f"public graph alone, {knows}", lambda _: networks.mlp(), knows, 4.0, graph_rows, ("graph",), _FOR_SHARES
        )
        for knows in KNOWLEDGE
    ]


@dataclass(frozen=True)
class Products:
    """A scaling of rows that are z and then the features: both scaled, and all products of a direction and a feature.

    Args:
        z_columns: the number of columns of z, of which at most `CROSSED_DIRECTIONS` directions are multiplied.
    """

    z_columns: int

    def __call__(self, x: Rows) -> Rows:
        """From (n, z columns + features) to (n, directions + features + products)."""
        z, features = whitened(x[:, : self.z_columns]), standardised(x[:, self.z_columns :])
        most = min(CROSSED_DIRECTIONS, MAX_PRODUCTS // max(1, features.size))
        main = z[:, max(0, z.shape[1] - most) :]  # the last directions have the largest spread
        products = (main[:, :, None] * features[:, None, :]).reshape(len(x), -1)
        return np.concatenate([z, features, products], axis=1)


def row_numbers(z: Rows, secret: NodeSecret, known: Queries) -> Rows:  # noqa: ARG001 - a view like the others
    """The number of each node's distinct row, (n, 1)."""
    return distinct_codes(z)[0][:, None].astype(np.float32)


def _unscaled(x: Rows) -> Rows:
    return x


def _strong_penalty() -> Learner:
    """Most columns of products are irrelevant."""
    return classifiers.logistic_regression((0.01, 0.001, 0.1))


_FOR_SHARES = (scaled, standardised)
"""Whitening does not help with class shares of neighbours."""
_FOR_TREES = (scaled, whitened)
"""Trees do not depend on the scale of a column, so standardising changes nothing."""
_WITH_GRAPH: tuple[Need, ...] = ("z", "graph")


def _gnn_learner(knowledge: Knowledge) -> Callable[[int], Learner]:
    """The rows have many columns: with few known secrets, a linear model is best (Wu et al., 2019)."""
    return lambda _: classifiers.logistic_regression() if knowledge == "few" else networks.mlp()
