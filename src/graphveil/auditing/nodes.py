"""The panel for node secrets: six ways to read a class from an embedding, each knowing few secrets and all."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from graphveil.auditing import learners
from graphveil.auditing.attacks import WITH_FEATURES, Answers, Attack, Need, by_row, scaled, standardised, whitened
from graphveil.auditing.learners import Learner, Rows, Taught
from graphveil.auditing.metrics import Array, Integers
from graphveil.auditing.secret import NodeSecret, Queries
from graphveil.codes import distinct_codes
from graphveil.data.splits.split import Knowledge

TUNED_ON = 400
"""Nodes that are held out while an attack is tuned, or as many as there are."""
KNOWLEDGE: tuple[Knowledge, ...] = ("few", "all")
CROSSED = 16
"""Main directions of z that are multiplied with the features."""
MAX_PRODUCTS = 100_000_000
"""Products of z and features, of all nodes together; with more nodes fewer directions of z are multiplied."""


View = Callable[[Rows, NodeSecret, Queries], Rows]
"""The rows of all nodes, from z, the secret and what of it is known."""
Scaling = Callable[[Rows], Rows]


def z_itself(z: Rows, secret: NodeSecret, known: Queries) -> Rows:  # noqa: ARG001 - a view like the others
    """An embedding as it is."""
    return z


@dataclass(frozen=True)
class Classify:
    """Teach a learner the known nodes' rows, and let it answer for the others.

    Args:
        learner: made for the number of columns. scalings: tuned over too.
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
        """What it holds, and secrets."""
        return *self.holds, _secrets(self.knowledge)

    def __call__(self, z: Rows, secret: NodeSecret, seed: int) -> Answers:
        answers = self._answers(z, secret, seed)
        return answers if "graph" in self.needs else by_row(answers, z, secret)

    def _answers(self, z: Rows, secret: NodeSecret, seed: int) -> Answers:
        if self.knowledge == "few":
            return self._from_few(z, secret, seed)
        rows = _Described(self, z, secret)
        folds, everything = secret.held_out, secret.known["all"]
        some = folds[: math.ceil(TUNED_ON / max(1, len(folds[0][1].y)))]
        views = [
            [(rows(scale, taught, taught), rows(scale, taught, held)) for taught, held in some]
            for scale in self.scalings
        ]
        learner, classes = self.learner(views[0][0][0].x.shape[1]), secret.num_classes
        tuned = learners.tune(learner, views, classes, seed)
        scale, rounds, on_val = self.scalings[tuned.view], tuned.rounds, []
        for taught, held in folds:
            watched = rows(scale, taught, held)
            model = learners.fit(learner, rows(scale, taught, taught), classes, tuned.setting, seed, rounds or watched)
            on_val.append(model.log_probabilities(watched.x))
            rounds = rounds or model.rounds
        final = learners.fit(learner, rows(scale, everything, everything), classes, tuned.setting, seed, rounds or None)
        return Answers(np.concatenate(on_val), final.log_probabilities(rows(scale, everything, secret.test).x))

    def _from_few(self, z: Rows, secret: NodeSecret, seed: int) -> Answers:
        known, rows = secret.known["few"], _Described(self, z, secret)
        views = [learners.folds_of(rows(scale, known, known), seed) for scale in self.scalings]
        learner, classes = self.learner(views[0][0][0].x.shape[1]), secret.num_classes
        tuned = learners.tune(learner, views, classes, seed)
        scale = self.scalings[tuned.view]
        model = learners.fit(learner, rows(scale, known, known), classes, tuned.setting, seed, tuned.rounds or None)
        on_val, on_test = (model.log_probabilities(rows(scale, known, part).x) for part in (secret.val, secret.test))
        return Answers(on_val, on_test)


class _Described:
    """Rows of nodes as an attack sees them, each kind made once: of z alone they do not depend on what is known."""

    def __init__(self, attack: Classify, z: Rows, secret: NodeSecret) -> None:
        self._attack, self._z, self._secret = attack, z, secret
        self._made: dict[tuple[Scaling, int], Rows] = {}

    def __call__(self, scale: Scaling, known: Queries, asked: Queries) -> Taught:
        key = scale, id(known) if "graph" in self._attack.holds else 0
        if key not in self._made:
            self._made[key] = scale(self._attack.view(self._z, self._secret, known))
        return Taught(self._made[key][asked.index], asked.y)


@dataclass(frozen=True)
class Propagate:
    """Spread the known classes over links predicted from z: each node and its nearest (Zhou et al., 2004)."""

    knowledge: Knowledge
    cost: float

    @property
    def needs(self) -> tuple[Need, ...]:
        """z, and secrets."""
        return "z", _secrets(self.knowledge)

    @property
    def name(self) -> str:
        """As it stands in the table."""
        return f"label propagation over predicted links, {self.knowledge}"

    def __call__(self, z: Rows, secret: NodeSecret, seed: int) -> Answers:
        known, val, test = secret.known[self.knowledge], secret.val, secret.test
        nodes = np.unique(np.concatenate([known.index, val.index, test.index]))
        place = np.full(secret.num_nodes, -1)
        place[nodes] = np.arange(len(nodes))

        def spread(links: sp.csr_matrix, reach: float, taught: Queries, asked: Queries) -> Array:
            answers: Array = _spread(links, place[taught.index], taught.y, secret.num_classes, reach)[
                place[asked.index]
            ]
            return answers

        folds = secret.held_out if self.knowledge == "all" else [_halves(known, seed)]
        tried = [(links, reach) for links in _predicted_links(z, nodes) for reach in (0.5, 0.95)]
        y = np.concatenate([held.y for _, held in folds])
        answers = [np.concatenate([spread(*one, *fold) for fold in folds]) for one in tried]
        right = [float((found.argmax(axis=1) == y).mean()) for found in answers]
        best = int(np.argmax(right))
        on_val = answers[best] if self.knowledge == "all" else spread(*tried[best], known, val)
        return by_row(Answers(on_val, spread(*tried[best], known, test)), z, secret)


def panel() -> list[Attack]:
    """All attacks on a node secret, the cheapest first."""
    found: list[Attack] = [
        Classify("forest, all", lambda _: learners.forest(), "all", 7.0, scalings=_FOR_TREES),
        Classify("boosted trees, all", lambda _: learners.trees(), "all", 4.0, scalings=_FOR_TREES),
    ]
    for knows in KNOWLEDGE:
        dear = 1.0 if knows == "few" else 8.0  # all is more to learn from than few
        found += [
            Classify(f"logistic regression, {knows}", lambda _: learners.logistic_regression(), knows, 0.3 * dear),
            Classify(f"k nearest neighbours, {knows}", lambda _: learners.neighbours(), knows, 0.2 * dear),
            Propagate(knows, 0.2 * dear),
            Classify(f"kernel machine, {knows}", lambda _: learners.Kernel(), knows, 0.3 * dear),
            Classify(f"MLP, {knows}", lambda _: learners.mlp(), knows, 0.8 * dear),
            Classify(
                f"GNN with the public graph, {knows}", _over_hops(knows), knows, 0.9 * dear, gnn_rows, _WITH_GRAPH
            ),
        ]
    return sorted(found, key=lambda attack: attack.cost)


def on_encoders() -> list[Attack]:
    """For encoders beside which the embeddings are seen, whose strongest attack is all that matters."""
    kinds = ("logistic regression", "kernel machine", "boosted trees", "MLP")
    return [attack for attack in panel() if attack.name in [f"{kind}, all" for kind in kinds]]


def quick() -> list[Attack]:
    """For sweeps: linear readers that know few and all, neighbours and a network."""
    return [
        Classify("logistic regression, few", lambda _: learners.logistic_regression(), "few", 0.3),
        Classify("k nearest neighbours, all", lambda _: learners.neighbours(), "all", 1.6),
        Classify("logistic regression, all", lambda _: learners.logistic_regression(), "all", 2.4),
        Classify("MLP, all", lambda _: learners.one_mlp(), "all", 3.0, scalings=(standardised, whitened)),
    ]


def counting() -> list[Attack]:
    """For an embedding with few distinct rows: read the classes off a table of known nodes by row."""
    table = Classify(
        "table of distinct rows", lambda _: learners.CountTable(), "all", 0.05, row_numbers, scalings=(_as_it_is,)
    )
    return [table]


def with_features(z_columns: int) -> list[Attack]:
    """Attackers who hold z and the features, for rows that are z and then the features.

    Together they may tell what neither tells alone, so products of the two are looked at too.

    Args:
        z_columns: the number of columns of z.
    """
    holds: tuple[Need, ...] = ("z", "features")

    def one(name: str, learner: Callable[[int], Learner], cost: float, scalings: tuple[Scaling, ...]) -> Attack:
        return Classify(f"{name}, all{WITH_FEATURES}", learner, "all", cost, holds=holds, scalings=scalings)

    return [
        one("logistic regression", lambda _: learners.logistic_regression(), 3.0, (standardised, whitened)),
        one("boosted trees", lambda _: learners.trees(), 6.0, _FOR_TREES),
        one("MLP", lambda _: learners.mlp(), 7.0, (standardised, whitened)),
        one("logistic regression on products", lambda _: _shrunk(), 8.0, (Products(z_columns),)),
    ]


def as_node_attacks(name: str, estimators: Sequence[Any]) -> list[Attack]:
    """Any scikit-learn classifiers, tuned over, as attackers that know few and all."""
    return [Classify(f"{name}, {knows}", lambda _: learners.Sklearn(estimators), knows, 5.0) for knows in KNOWLEDGE]


def graph_alone() -> list[Attack]:
    """What the public graph tells without any embedding: the control beside the GNN."""
    return [
        Classify(f"public graph alone, {knows}", lambda _: learners.mlp(), knows, 4.0, graph_rows, ("graph",), _EVEN)
        for knows in KNOWLEDGE
    ]


@dataclass(frozen=True)
class Products:
    """A scaling of rows that are z and then the features: both standardised, and all products of the two.

    Args:
        z_columns: the number of columns of z, of which the main directions are taken if there are many.
    """

    z_columns: int

    def __call__(self, x: Rows) -> Rows:
        z, features = whitened(x[:, : self.z_columns]), standardised(x[:, self.z_columns :])
        most = min(CROSSED, MAX_PRODUCTS // max(1, features.size))
        main = z[:, max(0, z.shape[1] - most) :]  # the last ones vary most
        products = (main[:, :, None] * features[:, None, :]).reshape(len(x), -1)
        return np.concatenate([z, features, products], axis=1)


def row_numbers(z: Rows, secret: NodeSecret, known: Queries) -> Rows:  # noqa: ARG001 - a view like the others
    """The number of each node's distinct row, (n, 1)."""
    return distinct_codes(z)[0][:, None].astype(np.float32)


def _as_it_is(x: Rows) -> Rows:
    return x


def _shrunk() -> Learner:
    """Products are many columns, most of which tell nothing."""
    return learners.logistic_regression((0.01, 0.001, 0.1))


_EVEN = (scaled, standardised)
"""Shares of classes along links have nothing that whitening would bring to light."""
_FOR_TREES = (scaled, whitened)
"""They do not mind how far a column varies, but look at one at a time."""
_WITH_GRAPH: tuple[Need, ...] = ("z", "graph")


def _over_hops(knowledge: Knowledge) -> Callable[[int], Learner]:
    """Hops have many columns: whoever knows few examples of them does best to stay linear (Wu et al., 2019)."""
    return lambda _: learners.logistic_regression() if knowledge == "few" else learners.mlp()


def gnn_rows(z: Rows, secret: NodeSecret, known: Queries) -> Rows:
    """A graph network's view: z at the node, one, two and three links away, and what the neighbours' secrets say."""
    mean = _mean_of_neighbours(secret)
    hops = [standardised(z)]
    for _ in range(3):
        hops.append(mean @ hops[-1])
    return np.concatenate([*hops, graph_rows(z, secret, known)], axis=1)


def graph_rows(z: Rows, secret: NodeSecret, known: Queries) -> Rows:  # noqa: ARG001 - the graph alone
    """What the known secrets say along the links, near and far.

    A known node must not find its own answer in its row: the known are halved, and the rows of each half are made from
    the secrets of the other.
    """
    links = _normalised(secret.links, secret.num_nodes)
    rows = _spread_both(links, known, secret.num_classes)
    for half, other in _both_halves(known):
        rows[half.index] = _spread_both(links, other, secret.num_classes)[half.index]
    return rows.astype(np.float32)


def _secrets(knowledge: Knowledge) -> Need:
    return "secrets" if knowledge == "all" else "few secrets"


def _spread_both(links: sp.csr_matrix, known: Queries, classes: int) -> Array:
    return np.concatenate([_spread(links, known.index, known.y, classes, reach) for reach in (0.5, 0.9)], axis=1)


def _both_halves(known: Queries) -> list[tuple[Queries, Queries]]:
    one, other = _halves(known, 0)
    return [(one, other), (other, one)]


def _halves(known: Queries, seed: int) -> tuple[Queries, Queries]:
    """Every other node of each class."""
    order = np.random.default_rng(seed).permutation(len(known.y))
    order = order[np.argsort(known.y[order], kind="stable")]
    return tuple(Queries(known.index[part], known.y[part]) for part in (order[::2], order[1::2]))  # type: ignore[return-value]


def _predicted_links(z: Rows, nodes: Integers) -> Iterator[sp.csr_matrix]:
    """Each node and its five or twenty nearest by the angle, whichever way the columns are scaled."""
    for scale in (standardised, whitened):
        x = scale(z)[nodes]
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
        distance, nearest = NearestNeighbors(n_neighbors=min(21, len(nodes))).fit(x).kneighbors(x)
        for count in (6, 21):
            yield _similarity(distance[:, 1:count], nearest[:, 1:count])


def _similarity(distance: Rows, nearest: Integers) -> sp.csr_matrix:
    """Symmetric, normalised weights 1 - d^2 / 2, the cosine, of each row's nearest."""
    count, width = nearest.shape
    weights = np.clip(1 - distance.astype(np.float64) ** 2 / 2, 1e-3, None)
    one_way = sp.csr_matrix((weights.ravel(), nearest.ravel(), np.arange(count + 1) * width), shape=(count, count))
    return _normalise(one_way.maximum(one_way.T))


def _normalised(links: Integers, num_nodes: int) -> sp.csr_matrix:
    ends = np.concatenate([links, links[::-1]], axis=1)
    return _normalise(sp.csr_matrix((np.ones(ends.shape[1]), ends), shape=(num_nodes, num_nodes)))


def _normalise(weights: Any) -> sp.csr_matrix:
    root = 1 / np.sqrt(np.maximum(np.asarray(weights.sum(axis=1)).ravel(), 1e-12))
    return (sp.diags(root) @ weights @ sp.diags(root)).tocsr()


def _mean_of_neighbours(secret: NodeSecret) -> sp.csr_matrix:
    """With the node itself, in float32."""
    ends = np.concatenate([secret.links, secret.links[::-1], np.tile(np.arange(secret.num_nodes), (2, 1))], axis=1)
    matrix = sp.csr_matrix((np.ones(ends.shape[1], np.float32), ends), shape=(secret.num_nodes, secret.num_nodes))
    return (sp.diags(1 / np.asarray(matrix.sum(axis=1)).ravel()) @ matrix).tocsr().astype(np.float32)


def _spread(links: sp.csr_matrix, nodes: Integers, y: Integers, classes: int, reach: float) -> Array:
    """F <- reach * links F + (1 - reach) known, twenty times; as log-probabilities, (nodes, classes)."""
    start = np.zeros((links.shape[0], classes))
    share = np.bincount(y, minlength=classes) / len(y)
    start[nodes, y] = 1 / np.maximum(share[y], 1e-12)  # a frequent class does not drown a rare one
    spread = start
    for _ in range(20):
        spread = reach * (links @ spread) + (1 - reach) * start
    spread = spread * share + 1e-6 * share
    result: Array = np.log(np.clip(spread / spread.sum(axis=1, keepdims=True), learners.SMALLEST, None))
    return result
