"""Small releases for the tests of this folder, and brute force over all pairs of nodes."""

import numpy as np
from sklearn.metrics import roc_auc_score

from graphveil.codes.tables import Floats, Integers

CODES = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
Y = np.array([0, 0, 0, 1, 1, 1, 0, 1, 0, 1])


def random_links(random: np.random.Generator, num_nodes: int, share: float) -> Integers:
    """(2, links): each pair of nodes is a link with probability `share`; at least one is, and at least one is not."""
    pairs = np.stack(np.triu_indices(num_nodes, 1))
    linked = np.asarray(random.random(pairs.shape[1]) < share)
    linked[0], linked[1] = True, False
    return pairs[:, linked].astype(np.int64)


def random_release(
    seed: int, num_nodes: int = 40, num_codes: int = 6, num_classes: int = 3
) -> tuple[Integers, Integers, Integers]:
    """Codes (n,), classes (n,) that depend on them, and links (2, links)."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, num_codes, num_nodes)
    y = np.where(random.random(num_nodes) < 0.5, codes % num_classes, random.integers(0, num_classes, num_nodes))
    return codes, y, random_links(random, num_nodes, 0.2)


def all_pairs(num_nodes: int, links: Integers) -> tuple[Integers, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
    """Every pair of nodes, (2, pairs), and whether it is a link."""
    pairs = np.stack(np.triu_indices(num_nodes, 1))
    linked = np.isin(pairs[0] * num_nodes + pairs[1], links[0] * num_nodes + links[1])
    return pairs, linked


def pair_ids(one: Integers, other: Integers, pairs: Integers) -> Integers:
    """One number for the two unordered values of each pair."""
    low, high = np.minimum(one[pairs[0]], other[pairs[1]]), np.maximum(one[pairs[0]], other[pairs[1]])
    return np.unique(low * 1000 + high, return_inverse=True)[1]


def brute_auc(cell: Integers, linked: "np.ndarray[tuple[int], np.dtype[np.bool_]]", weights: Floats) -> float:
    """scikit-learn's AUC of the share of links in each cell."""
    links = np.bincount(cell, weights=weights * linked)
    score = links / np.maximum(np.bincount(cell, weights=weights), 1e-300)
    return float(roc_auc_score(linked, score.round(12)[cell], sample_weight=weights))
