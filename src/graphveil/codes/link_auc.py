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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphveil.codes.counting import LinkCells, cell_keys, count_cells, sum_by_key
from graphveil.codes.measures import best_auc
from graphveil.codes.tables import Floats, Integers, cell_pairs, code_sizes, joint, weighted_counts

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


def chance_draws(codes: Integers, num_links: int, seed: int) -> list[Integers]:
    """The codes, permuted among the nodes, a few times; with more links, fewer permutations are needed.

    Args:
        codes: (n,).
        num_links: the number of links.
        seed: the seed of the permutations.
    """
    random = np.random.default_rng(seed)
    return [random.permutation(codes) for _ in range(int(np.clip(4_000_000 // num_links, 1, 20)))]


def chance_auc(sizes: Integers, shuffled: Sequence[LinkCells]) -> float:
    """The mean AUC of codes that are permuted among the nodes.

    Args:
        sizes: the number of nodes with each code, (codes,).
        shuffled: the links by permuted codes, for each permutation.
    """
    total = int(sizes.sum()) * (int(sizes.sum()) - 1) // 2
    return float(np.mean([release_auc(one.links, cell_pairs(one.codes, sizes), total) for one in shuffled]))


# ----- class-matched non-links ---------------------------------------------------------------------


def matched_aucs(codes: Integers, pairs: Integers, y: Integers) -> tuple[float, float] | None:
    """The class-matched AUC and the within-class AUC; None if no link is left, or if the tables would be too large.

    Links between classes without a non-link, or with an unknown class, are left out.

    Args:
        codes: (n,).
        pairs: (2, links).
        y: classes, (n,), -1 where unknown.
    """
    both = CodesAndClasses.of(codes, y)
    return None if both is None else both.aucs(count_cells(both.codes, pairs))


@dataclass(frozen=True, eq=False)
class CodesAndClasses:
    """The code and the class of each node as one code.

    Args:
        codes: (n,), from 0, in the order of the nodes' own codes.
        code_of: the node's own code, (codes,).
        class_of: the class, (codes,), -1 where unknown.
        sizes: number of nodes with each, (codes,).
    """

    codes: Integers
    code_of: Integers
    class_of: Integers
    sizes: Integers

    @classmethod
    def of(cls, codes: Integers, y: Integers) -> "CodesAndClasses | None":
        """Join codes (n,) and classes (n,); None if the tables would be too large."""
        num_classes = int(y.max(initial=0)) + 1
        if max(num_classes, int(codes.max()) + 1) * num_classes > MAX_MATCHED_CELLS:
            return None
        both = joint(codes, np.where(y >= 0, y, num_classes))
        code_of, class_of = np.empty((2, both.max() + 1), dtype=np.int64)
        code_of[both], class_of[both] = codes, y
        return cls(both, code_of, class_of, code_sizes(both, len(class_of)))

    def aucs(self, counted: LinkCells) -> tuple[float, float] | None:
        """The class-matched AUC and the within-class AUC, from links by these codes; None if no link is left."""
        num_classes = int(self.class_of.max(initial=0)) + 1
        cells, links = counted.codes, counted.links
        known = (self.class_of[cells] >= 0).all(axis=0)
        cells, links = cells[:, known], links[known]
        of_links = np.zeros((num_classes, num_classes), dtype=np.int64)
        np.add.at(of_links, tuple(self.class_of[cells]), links)
        of_links += of_links.T  # counted in both directions, as in `pair_table`
        has_class = self.class_of >= 0
        size = np.zeros(num_classes, dtype=np.int64)
        np.add.at(size, self.class_of[has_class], self.sizes[has_class])
        nonlinks = np.outer(size, size) - np.diag(size) - of_links
        left = nonlinks[tuple(self.class_of[cells])] > 0
        cells, links = cells[:, left], links[left]
        if len(links) == 0:
            return None
        weight = np.where(nonlinks > 0, of_links / np.maximum(nonlinks, 1), 0.0)
        return self._class_matched_auc(cells, links, weight), self._within_class_auc(cells, links, weight)

    def _class_matched_auc(self, cells: Integers, links: Integers, weight: Floats) -> float:
        """The best AUC over cells of two codes.

        Args:
            cells: two joint codes of known class each, (2, cells).
            links: number of links in each, (cells,).
            weight: the weight of a non-link by its classes, (classes, classes); they sum to the number of links.
        """
        width = int(self.code_of.max()) + 1
        of_cell = cell_keys(self.code_of[cells], width)
        keys, linked = sum_by_key(of_cell, links)
        _, weighted_links = sum_by_key(of_cell, links * weight[tuple(self.class_of[cells])])
        one, other = keys // width, keys % width
        has_class = self.class_of >= 0
        table = np.zeros((width, len(weight)))
        table[self.code_of[has_class], self.class_of[has_class]] = self.sizes[has_class]
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
        return _weighted_auc(linked, inside - weighted_links)

    def _within_class_auc(self, cells: Integers, links: Integers, weight: Floats) -> float:
        """The best AUC over cells of two nodes' codes and classes; arguments as above."""
        nonlinks = cell_pairs(cells, self.sizes) - links
        return _weighted_auc(links, nonlinks * weight[tuple(self.class_of[cells])])


def _weighted_auc(links: Integers, nonlinks: Floats) -> float:
    """The best AUC from cells with links; all non-links weigh as much as the links. Rounding below 0 is removed."""
    nonlinks = np.maximum(nonlinks, 0.0)
    return best_auc(links.astype(float), nonlinks, max(0.0, float(links.sum() - nonlinks.sum())))


# ----- other nodes ------------------------------------------------------------------------------------------------


def resampled_columns(num_links: int, random: np.random.Generator) -> Integers:
    """The columns of the links that are resampled: all, or a random sample of `MAX_RESAMPLED_LINKS`."""
    if num_links <= MAX_RESAMPLED_LINKS:
        return np.arange(num_links)
    return random.choice(num_links, MAX_RESAMPLED_LINKS, replace=False)


def calibrated_auc(
    codes: Integers,
    counted: LinkCells,
    calibration: LinkCells,
    sample: tuple[Integers, NDArray[np.bool_]],
    confidence: float,
    random: np.random.Generator,
) -> tuple[float, float, int]:
    """The best AUC of the calibration links against all non-links, its upper limit, and the links in a resample.

    Args:
        codes: (n,).
        counted: all links.
        calibration: the calibration links among them.
        sample: the links that are resampled, (2, sample), and which of them are calibration links, (sample,).
        confidence: the probability that the limit holds.
        random: the source of the resamples.
    """
    num_links = int(counted.links.sum())
    links = np.zeros(len(counted.keys))
    links[counted.place(calibration.keys)] = calibration.links
    cells = counted.codes
    inside = cell_pairs(cells, code_sizes(codes, counted.width))
    nonlinks = (inside - counted.links).astype(float)
    total = len(codes) * (len(codes) - 1) // 2 - num_links
    auc = best_auc(links, nonlinks, total - nonlinks.sum())

    ranked = links > 0
    rank = np.zeros(len(links), dtype=np.int64)  # 0 is every cell without a calibration link
    rank[ranked] = 1 + np.unique(links[ranked] / (links + nonlinks)[ranked], return_inverse=True)[1]
    drawn, is_chosen = sample
    scale = num_links / drawn.shape[1]
    its_rank = rank[counted.place(cell_keys(codes[drawn], counted.width))]
    aucs = []
    for _ in range(RESAMPLES):
        times = np.bincount(random.integers(len(codes), size=len(codes)), minlength=len(codes)).astype(float)
        every = _resampled_pairs(codes, cells[:, ranked], rank[ranked], times)
        product = scale * times[drawn[0]] * times[drawn[1]]
        links_at = weighted_counts(its_rank, product * is_chosen, len(every))
        nonlinks_at = np.maximum(every - weighted_counts(its_rank, product, len(every)), 0.0)
        aucs.append(_ranked_auc(links_at, nonlinks_at))
    return auc, max(auc, float(np.quantile(aucs, confidence, method="higher"))), drawn.shape[1]


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
