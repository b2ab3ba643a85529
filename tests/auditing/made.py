"""What the tests of the audit share."""

import numpy as np
from torch_geometric.data import Data

from graphveil.auditing import Answers, Audit, Context, Finding, LinkSecret, NodeSecret, Queries, Utility
from graphveil.auditing.attacks import Attack
from graphveil.auditing.groups import Partition
from graphveil.auditing.tasks import Task
from graphveil.data.splits.split import Knowledge


def noise(seed: int, columns: int = 8, nodes: int = 1500) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(nodes, columns)).astype(np.float32)


def communities(graph: Data) -> np.ndarray:
    """Each node is moved to the mean of its neighbours twice, so linked nodes are close."""
    z = noise(8, columns=16, nodes=graph.x.size(0)).astype(np.float64)
    source, target = graph.edge_index.numpy()
    degree = np.bincount(target, minlength=len(z))[:, None]
    for _ in range(2):
        total = np.zeros_like(z)
        np.add.at(total, target, z[source])
        z = 0.5 * z + 0.5 * total / np.maximum(degree, 1) * 3
    return z


USEFUL = Context(utility=Utility("links", 0.9, 0.5, 1000))


def finding(secret: NodeSecret, name: str, val: float, test: float) -> Finding:
    """A finding that is right on the first `val` and `test` shares of both parts."""

    def answers(y: np.ndarray, right: float) -> np.ndarray:
        predicted = np.where(np.arange(len(y)) < right * len(y), y, 1 - y)
        return np.log(0.01 + 0.98 * np.eye(2)[predicted])

    raw = Answers(answers(secret.val.y, val), answers(secret.test.y, test))
    return Finding("embeddings", name, ("z", "secrets"), secret, raw, 0.1)


def find(name: str, panel: list[Attack]) -> Attack:
    return next(attack for attack in panel if attack.name == name)


def attack_with(attack: Attack, z: np.ndarray, secret: NodeSecret | LinkSecret) -> Finding:
    return Task("embeddings", attack, z.astype(np.float32))(secret, seed=0)


def secret_of(y: np.ndarray, test: np.ndarray) -> NodeSecret:
    """A secret whose nodes outside `test` are known."""
    rest = np.setdiff1d(np.arange(len(y)), test)
    known = Queries(rest, y[rest])
    count = int(y.max()) + 1
    names = [f"class {number}" for number in range(count)]
    known_by: dict[Knowledge, Queries] = {"few": known, "all": known}
    fold, queries = np.arange(len(rest)) % 4, Queries(test, y[test])
    return NodeSecret("s", len(y), count, known_by, fold, 1, queries, np.zeros((2, 0), np.int64), names)


def answers(predicted: np.ndarray, classes: int) -> np.ndarray:
    log_p: np.ndarray = np.log(0.01 + 0.98 * np.eye(classes)[predicted])
    return log_p


def leak_in_one_group(others: int) -> Audit:
    """750 test nodes with a coin each: the attack is right about all 40 of one group, and half of the others.

    Args:
        others: further groups, of another column.
    """
    coin = np.random.default_rng(0).permutation(np.arange(1500) % 2)
    test = np.arange(750)
    group = np.full(1500, 1)
    group[:40] = 0
    group[800:840] = 0
    predicted = np.where((test < 40) | (test % 2 == 0), coin[test], 1 - coin[test])
    secret = secret_of(coin, test)
    raw = Answers(answers(secret.val.y, 2), answers(predicted, 2))
    finding = Finding("embeddings", "a", ("z", "secrets"), secret, raw, 0.1)
    parts = [Partition("column", "school", ["xyz", "rest"], group)]
    if others:
        parts.append(Partition("column", "other", [str(value) for value in range(others)], np.arange(1500) % others))
    return Audit(secret, [finding], {}, context=USEFUL, partitions=parts)


def sentences(audit: Audit) -> list[str]:
    """The reasons of the verdict."""
    return [reason.sentence for reason in audit.reasons]
