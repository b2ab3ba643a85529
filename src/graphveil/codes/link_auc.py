"""The AUC of the best attack on links from the codes of two nodes, in three variants.

The best score of a pair of nodes is the ratio of links to non-links among all pairs with the same two codes. Its AUC is
computed over all links and all non-links of the release, from the cells (unordered pairs of codes) that have links.
Two more values exclude what classes alone reveal. Both weigh the non-links so that their class pairs are distributed as
those of the links:

- `class_matched_auc`: the attacker sees the codes of both nodes.
- `within_class_auc`: the attacker sees the code and the class of each of both nodes. It is never smaller.

The statement about other nodes resamples nodes, because pairs that share a node are not independent. The best attack
on the population is one fixed rule, and its AUC on the sample is at most that of the sample's own best rule. So the
rule stays fixed while the nodes are resampled.
"""

import numpy as np

from graphveil.codes.measures import best_auc
from graphveil.codes.tables import (
    Floats,
    Integers,
    cell_pairs,
    class_table,
    code_sizes,
    joint,
    link_cells,
    link_table,
    pair_table,
    weighted_counts,
)

RESAMPLES = 200
"""Number of resamples of the nodes."""
MAX_RESAMPLED_LINKS = 200_000
"""Links in a resample at most; of more links a random sample is taken, which widens the limit."""
MAX_MATCHED_CELLS = 20_000_000
"""With more codes x classes, or more pairs of classes, there is no class-matched AUC."""


def release_auc(links: Integers, inside: Integers, total: int) -> float:
    """The AUC over all links and non-links of a release.

    Args:
        links: number of links in each cell with links, (cells,).
        inside: number of node pairs in the same cells, (cells,).
        total: number of node pairs in all cells.
    """
    return best_auc(links.astype(float), (inside - links).astype(float), float(total - int(inside.sum())))


def chance_auc(codes: Integers, pairs: Integers, seed: int) -> float:
    """The mean AUC of codes that are permuted among the nodes; with more links, fewer permutations are needed.

    Args:
        codes: (n,).
        pairs: (2, links).
        seed: the seed of the permutations.
    """
    random, sizes = np.random.default_rng(seed), code_sizes(codes, int(codes.max()) + 1)
    total = len(codes) * (len(codes) - 1) // 2
    aucs = []
    for _ in range(int(np.clip(4_000_000 // pairs.shape[1], 1, 20))):
        cells, cell_of = link_cells(random.permutation(codes), pairs)
        aucs.append(release_auc(np.bincount(cell_of), cell_pairs(cells, sizes), total))
    return float(np.mean(aucs))


# ----- class-matched non-links ---------------------------------------------------------------------


def matched_aucs(codes: Integers, pairs: Integers, y: Integers) -> tuple[float, float] | None:
    """The class-matched AUC and the within-class AUC.

    Links between classes without a non-link, or with an unknown class, are left out.

    Args:
        codes: (n,).
        pairs: (2, links).
        y: classes, (n,), -1 where unknown.

    Returns:
        Both; None if no link is left, or if the tables would be too large.
    """
    num_classes = int(y.max(initial=0)) + 1
    if max(num_classes, int(codes.max()) + 1) * num_classes > MAX_MATCHED_CELLS:
        return None
    known = y >= 0
    pairs = pairs[:, known[pairs].all(axis=0)]
    links = link_table(np.where(known, y, 0), pairs, num_classes)
    nonlinks = pair_table(y[known], num_classes) - links
    pairs = pairs[:, nonlinks[y[pairs[0]], y[pairs[1]]] > 0]
    if pairs.shape[1] == 0:
        return None
    weight = np.where(nonlinks > 0, links / np.maximum(nonlinks, 1), 0.0)
    return _class_matched_auc(codes, pairs, y, weight), _within_class_auc(codes, pairs, y, weight)


def _class_matched_auc(codes: Integers, pairs: Integers, y: Integers, weight: Floats) -> float:
    """The best AUC over cells of two codes.

    Args:
        codes: (n,).
        pairs: (2, links).
        y: classes, (n,).
        weight: the weight of a non-link by its classes, (classes, classes); all weights sum to the number of links.
    """
    (one, other), cell_of = link_cells(codes, pairs)
    table = class_table(codes, y, int(codes.max()) + 1, len(weight)).astype(float)
    weighted = table @ weight
    block = max(1, MAX_MATCHED_CELLS // len(weight))
    inside = np.concatenate(
        [
            np.einsum("cy,cy->c", weighted[one[at : at + block]], table[other[at : at + block]])
            for at in range(0, len(one), block)
        ]
    )
    same = one == other
    inside[same] = (inside[same] - table[one[same]] @ np.diag(weight)) / 2  # no node is paired with itself
    linked = weighted_counts(cell_of, weight[y[pairs[0]], y[pairs[1]]])
    return _weighted_auc(np.bincount(cell_of), inside - linked)


def _within_class_auc(codes: Integers, pairs: Integers, y: Integers, weight: Floats) -> float:
    """The best AUC over cells of two nodes' codes and classes; `weight` as above."""
    both = joint(codes, np.where(y >= 0, y, len(weight)))
    class_of = np.empty(both.max() + 1, dtype=np.int64)
    class_of[both] = y
    cells, cell_of = link_cells(both, pairs)
    links = np.bincount(cell_of)
    nonlinks = cell_pairs(cells, code_sizes(both, len(class_of))) - links
    return _weighted_auc(links, nonlinks * weight[class_of[cells[0]], class_of[cells[1]]])


def _weighted_auc(links: Integers, nonlinks: Floats) -> float:
    """The best AUC from cells with links; all non-links weigh as much as the links. Rounding below 0 is removed."""
    nonlinks = np.maximum(nonlinks, 0.0)
    return best_auc(links.astype(float), nonlinks, max(0.0, float(links.sum() - nonlinks.sum())))


# ----- other nodes ------------------------------------------------------------------------------------------------


def calibrated_auc(
    codes: Integers, pairs: Integers, calibration: Integers, confidence: float, seed: int
) -> tuple[float, float, int]:
    """The best AUC of the calibration links against all non-links, its upper limit, and the links in a resample.

    Args:
        codes: (n,).
        pairs: (2, links).
        calibration: columns of `pairs`.
        confidence: the probability that the limit holds.
        seed: the seed of the resamples.
    """
    chosen = np.zeros(pairs.shape[1], dtype=bool)
    chosen[calibration] = True
    cells, cell_of = link_cells(codes, pairs)
    links = weighted_counts(cell_of, chosen)
    inside = cell_pairs(cells, code_sizes(codes, int(codes.max()) + 1))
    nonlinks = (inside - np.bincount(cell_of)).astype(float)
    total = len(codes) * (len(codes) - 1) // 2 - pairs.shape[1]
    auc = best_auc(links, nonlinks, total - nonlinks.sum())

    ranked = links > 0
    rank = np.zeros(len(links), dtype=np.int64)  # 0 is every cell without a calibration link
    rank[ranked] = 1 + np.unique(links[ranked] / (links + nonlinks)[ranked], return_inverse=True)[1]
    random, sample = np.random.default_rng(seed), np.arange(pairs.shape[1])
    if len(sample) > MAX_RESAMPLED_LINKS:
        sample = random.choice(len(sample), MAX_RESAMPLED_LINKS, replace=False)
    scale = pairs.shape[1] / len(sample)
    drawn, its_rank, is_chosen = pairs[:, sample], rank[cell_of[sample]], chosen[sample]
    aucs = []
    for _ in range(RESAMPLES):
        times = np.bincount(random.integers(len(codes), size=len(codes)), minlength=len(codes)).astype(float)
        every = _resampled_pairs(codes, cells[:, ranked], rank[ranked], times)
        product = scale * times[drawn[0]] * times[drawn[1]]
        links_at = weighted_counts(its_rank, product * is_chosen, len(every))
        nonlinks_at = np.maximum(every - weighted_counts(its_rank, product, len(every)), 0.0)
        aucs.append(_ranked_auc(links_at, nonlinks_at))
    return auc, max(auc, float(np.quantile(aucs, confidence, method="higher"))), len(sample)


def _resampled_pairs(codes: Integers, cells: Integers, rank: Integers, times: Floats) -> Floats:
    """The number of node pairs at each rank in a resample; no node is paired with itself.

    Args:
        codes: (n,).
        cells: the codes of each cell with a rank above 0, (2, cells); all other pairs have rank 0.
        rank: the rank of these cells, (cells,).
        times: how often each node occurs in the resample, (n,).
    """
    size, squares = weighted_counts(codes, times), weighted_counts(codes, times**2)
    one, other = cells
    inside = np.where(one == other, (size[one] ** 2 - squares[one]) / 2, size[one] * size[other])
    at_rank = weighted_counts(rank, inside, 2)
    at_rank[0] = (times.sum() ** 2 - np.square(times).sum()) / 2 - at_rank.sum()
    return at_rank


def _ranked_auc(links: Floats, nonlinks: Floats) -> float:
    """The AUC of a fixed ranking, (ranks,) from low to high; 1 for a resample without links or without non-links."""
    if links.sum() == 0 or nonlinks.sum() == 0:
        return 1.0
    below = np.cumsum(nonlinks) - nonlinks / 2
    return float((links * below).sum() / (links.sum() * nonlinks.sum()))
