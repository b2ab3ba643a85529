"""Small random releases for the tests of this folder."""

import numpy as np

from graphveil.codes.tables import Integers


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
