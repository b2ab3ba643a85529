"""Measures of a count table: accuracy, AUC and information of the best rule; pure functions.

The best rule for the table, from code to class or from two codes to a score, is at least as good on the counted nodes
as every other rule. None of these values rises when two codes are merged.
"""

import numpy as np
from scipy.stats import beta

from graphveil.codes.tables import Floats, Integers


def best_accuracy(table: Integers) -> float:
    """The share of nodes that the best rule from code to class gets right: sum over codes of the largest count / n.

    Args:
        table: (codes, classes) counts.
    """
    return int(table.max(axis=1).sum()) / int(table.sum())


def majority_share(table: Integers) -> float:
    """The share of the largest class of a (codes, classes) table."""
    return int(table.sum(axis=0).max()) / int(table.sum())


def best_balanced_accuracy(table: Integers) -> float:
    """The mean recall over classes of the best rule: sum over codes of max P(code | class) / classes.

    Args:
        table: (codes, classes) counts; every class has nodes.
    """
    return float((table / table.sum(axis=0)).max(axis=1).sum() / table.shape[1])


def class_information(table: Integers) -> float:
    """The mutual information I(code; class) in nats, of (codes, classes) counts."""
    codes, classes = table.sum(axis=1), table.sum(axis=0)
    return max(
        0.0,
        float((_xlogx(table).sum() - _xlogx(codes).sum() - _xlogx(classes).sum()) / codes.sum() + np.log(codes.sum())),
    )


def entropy(counts: Integers) -> float:
    """The entropy of a class in nats, of (classes,) counts."""
    return max(0.0, float(np.log(counts.sum()) - _xlogx(counts).sum() / counts.sum()))


def link_information(links: Integers, pairs: Integers, total_pairs: int) -> float:
    """The evidence J for a link in nats: the mean over links of log( share of links / share of pairs ) of their cell.

    Args:
        links: number of links in each cell with links, (cells,).
        pairs: number of node pairs in the same cells, (cells,).
        total_pairs: number of node pairs in all cells.
    """
    ratio = (np.maximum(links, 1) / links.sum()) / (np.maximum(pairs, 1) / total_pairs)
    return max(0.0, float((links * np.log(ratio)).sum() / links.sum()))


def best_auc(links: Floats, nonlinks: Floats, elsewhere: float = 0.0) -> float:
    """The area under the ROC curve of the best score of a cell, which is links / non-links; ties count half.

    Args:
        links: number, or weight, of links in each cell, (cells,).
        nonlinks: the same for non-links, (cells,).
        elsewhere: number, or weight, of non-links in cells without links.
    """
    order = np.argsort(links / np.maximum(links + nonlinks, np.finfo(float).tiny), kind="stable")
    links, nonlinks = links[order], nonlinks[order]
    below = elsewhere + np.cumsum(nonlinks) - nonlinks / 2
    return float((links * below).sum() / (links.sum() * (elsewhere + nonlinks.sum())))


def accuracy_limit(table: Integers, confidence: float = 0.95) -> float:
    """An upper limit on the accuracy of every rule from code to class, for nodes drawn like those of the table.

    The best rule for all such nodes is one fixed rule. Its number of hits in the table is binomial and is at most the
    number of hits of the table's own best rule. So one one-sided Clopper-Pearson limit bounds every rule.

    Args:
        table: (codes, classes) counts of nodes drawn at random.
        confidence: probability that the limit holds.
    """
    hits, count = int(table.max(axis=1).sum()), int(table.sum())
    return 1.0 if hits == count else float(beta.ppf(confidence, hits + 1, count - hits))


def balanced_limit(table: Integers, confidence: float = 0.95) -> float:
    """An upper limit on the balanced accuracy of every rule, by the same argument and Hoeffding's inequality.

    It is the table's best balanced accuracy + sqrt( ln(1 / (1 - confidence)) / 2 * sum over classes 1 / n_y ) / C. A
    class without nodes in the table counts with a recall of 1.

    Args:
        table: (codes, classes) counts; a class may have no nodes here.
        confidence: probability that the limit holds.
    """
    num_classes = table.shape[1]
    counted = table[:, table.sum(axis=0) > 0]
    recalls = (counted / counted.sum(axis=0)).max(axis=1).sum() + num_classes - counted.shape[1]
    margin = np.sqrt(np.log(1 / (1 - confidence)) / 2 * (1 / counted.sum(axis=0)).sum())
    return min(1.0, float((recalls + margin) / num_classes))


def _xlogx(counts: Integers) -> Floats:
    return np.asarray(counts * np.log(np.maximum(counts, 1)), dtype=np.float64)
