"""What raw scores say, with 95 % intervals: pure functions of an attack's answers.

| metric | interval |
|---|---|
| accuracy | Wilson |
| balanced accuracy, macro-F1, gain over the majority | bootstrap of the confusion table |
| AUC | DeLong's placements on the logit scale, with the covariance of pairs that share a node |
| average precision, TPR at an FPR | bootstrap of the nodes |

Pairs are not independent: a hub is an end of many. An interval that forgets this is too short, and finds a leak in
noise more often than it says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from scipy.stats import rankdata

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

Z95 = float(ndtri(0.975))
RESAMPLES = 400


@dataclass(frozen=True)
class Estimate:
    """A value and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"

    def covers(self, value: float) -> bool:
        """Whether `value` lies in the interval."""
        return self.low <= value <= self.high


def wilson(hits: float, count: int) -> Estimate:
    """A share of `count` independent trials."""
    share, z2 = hits / count, Z95**2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = Z95 / (1 + z2 / count) * np.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return Estimate(share, max(0.0, float(centre - half)), min(1.0, float(centre + half)))


def mean(values: Array, index: Integers | None = None) -> Estimate:
    """The mean of one value an example; `index` (2, n) names the nodes of examples that are pairs."""
    centre = float(values.mean())
    spread = Z95 * np.sqrt(_variance((values - centre) / len(values), index))
    return Estimate(centre, centre - float(spread), centre + float(spread))


# ----- node secrets ---------------------------------------------------------------------------------------------------


def node_metrics(log_p: Array, y: Integers, majority: int) -> dict[str, Estimate]:
    """Accuracy and its kin from class log-probabilities, (n, classes).

    Args:
        majority: the class that guessing without looking would name.
    """
    guess, classes = log_p.argmax(axis=1), log_p.shape[1]
    counts = np.bincount(y * classes + guess, minlength=classes**2)

    def from_counts(statistic: Callable[[Array], Array]) -> Estimate:
        random = np.random.default_rng(0)
        resampled = random.multinomial(len(y), counts / len(y), size=RESAMPLES).reshape(-1, classes, classes)
        low, high = np.quantile(statistic(resampled.astype(float)), [0.025, 0.975])
        return Estimate(float(statistic(counts.reshape(1, classes, classes).astype(float))[0]), float(low), float(high))

    def gain(confusion: Array) -> Array:
        right = np.trace(confusion, axis1=1, axis2=2)
        result: Array = (right - confusion[:, majority].sum(axis=1)) / len(y)
        return result

    return {
        "accuracy": wilson(float((guess == y).sum()), len(y)),
        "balanced_accuracy": from_counts(_balanced_accuracy),
        "macro_f1": from_counts(_macro_f1),
        "gain": from_counts(gain),
    }


def _balanced_accuracy(confusion: Array) -> Array:
    """The mean share of each class that is found, over the classes that there are; (resamples, true, guessed)."""
    size = confusion.sum(axis=2)
    found = np.diagonal(confusion, axis1=1, axis2=2) / np.maximum(size, 1)
    result: Array = found.sum(axis=1) / (size > 0).sum(axis=1)
    return result


def _macro_f1(confusion: Array) -> Array:
    size, guessed = confusion.sum(axis=2), confusion.sum(axis=1)
    f1 = 2 * np.diagonal(confusion, axis1=1, axis2=2) / np.maximum(size + guessed, 1)
    result: Array = np.where(size > 0, f1, 0).sum(axis=1) / (size > 0).sum(axis=1)
    return result


# ----- link secrets ---------------------------------------------------------------------------------------------------


def link_metrics(score: Array, y: Integers, pairs: Integers) -> dict[str, Estimate]:
    """AUC and its kin from one score a pair; what cannot be told from so few non-links is left out.

    Args:
        pairs: (2, n), whose intervals it is that count shared nodes.
    """
    metrics = {"auc": auc(score, y, pairs), "average_precision": _bootstrap(_average_precision, score, y, pairs)}
    for name, rate in (("tpr_at_1_percent_fpr", 0.01), ("tpr_at_0.1_percent_fpr", 0.001)):
        if (y == 0).sum() * rate >= 1:
            metrics[name] = _bootstrap(partial(_tpr, rate=rate), score, y, pairs)
    return metrics


def auc(score: Array, y: Integers, pairs: Integers) -> Estimate:
    """The share of (link, non-link) pairs in the right order, ties counted half."""
    links = y == 1
    m, n = int(links.sum()), int((~links).sum())
    ranks = rankdata(score)
    placement = np.empty(len(score))  # of a link: non-links below it; of a non-link: links above it; both as shares
    placement[links] = (ranks[links] - rankdata(score[links])) / n
    placement[~links] = 1 - (ranks[~links] - rankdata(score[~links])) / m
    value = float(placement[links].mean())
    if value in (0.0, 1.0):
        unseen = 3 / min(m, n)  # the rule of three: what has not been seen once in n trials
        return Estimate(value, max(0.0, value - unseen), min(1.0, value + unseen))
    influence = (placement - value) / np.where(links, m, n)
    spread = Z95 * np.sqrt(_variance(influence, pairs)) / (value * (1 - value))
    low, high = expit(logit(value) + np.array([-spread, spread]))
    return Estimate(value, float(low), float(high))


def _variance(influence: Array, pairs: Integers | None) -> float:
    """The variance of a sum, where those that share a node may go together (Fafchamps and Gubert, 2007).

    The sum over pairs of pairs that share a node is a sum of squares over nodes, so it costs no more than the pairs.
    """
    alone = float(np.square(influence).sum())
    if pairs is None:
        return alone
    at_node = np.bincount(pairs.ravel(), weights=np.tile(influence, 2))
    return max(alone, float(np.square(at_node).sum()) - alone)


def _bootstrap(statistic: Callable[[Array, Array], Array], score: Array, y: Integers, pairs: Integers) -> Estimate:
    """Resample the nodes: a pair counts as often as its two ends were drawn, multiplied (Owen, 2007).

    Args:
        statistic: from the links found and the non-links taken for one down to each threshold, (resamples, thresholds),
            to a value a resample.
    """
    order = np.argsort(-score, kind="stable")
    last_of_ties = np.append(np.diff(score[order]) != 0, True)
    sorted_y, ends = y[order].astype(bool), pairs[:, order]
    nodes, ends = np.unique(ends, return_inverse=True)
    ends = ends.reshape(2, -1)
    random = np.random.default_rng(0)

    def value(weights: Array) -> Array:
        found = np.cumsum(np.where(sorted_y, weights, 0.0), axis=1)[:, last_of_ties]
        wrong = np.cumsum(np.where(sorted_y, 0.0, weights), axis=1)[:, last_of_ties]
        return statistic(found, wrong)

    resampled = []
    at_once = max(1, 2_000_000 // len(score))  # keeps a block in the cache, and memory small
    for start in range(0, RESAMPLES, at_once):
        block = min(at_once, RESAMPLES - start)
        drawn = random.multinomial(len(nodes), np.full(len(nodes), 1 / len(nodes)), size=block).astype(float)
        resampled.append(value(drawn[:, ends[0]] * drawn[:, ends[1]]))
    low, high = np.nanquantile(np.concatenate(resampled), [0.025, 0.975])
    return Estimate(float(value(np.ones((1, len(score))))[0]), float(low), float(high))


def _average_precision(found: Array, wrong: Array) -> Array:
    """Precision at every threshold, weighted by the recall it adds."""
    precision = found / np.maximum(found + wrong, 1e-12)
    result: Array = (np.diff(found, axis=1, prepend=0) * precision).sum(axis=1) / np.maximum(found[:, -1], 1e-12)
    return result


def _tpr(found: Array, wrong: Array, rate: float) -> Array:
    """The largest share of links found while no more than `rate` of the non-links is taken for one."""
    allowed = wrong <= rate * wrong[:, -1:] + 1e-9
    result: Array = np.where(allowed, found, 0).max(axis=1) / np.maximum(found[:, -1], 1e-12)
    return result
