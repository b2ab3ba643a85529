"""Metrics of an attack's answers, with 95 % intervals: pure functions.

| metric | interval |
|---|---|
| accuracy, and its gain over the largest class | Wilson |
| accuracy in a group | Clopper and Pearson, exact at any level |
| difference of two shares | that of both shares, combined by method 10 of Newcombe (1998) |
| balanced accuracy, macro-F1 | bootstrap within each class |
| AUC | DeLong's placements on the logit scale, with the covariance of pairs that share a node |
| difference of two AUCs | the same for the differences of the placements, on the scale of the AUC |
| average precision, TPR at an FPR | bootstrap of the pairs, widened by the same factor as the interval of the AUC |

Pairs are not independent, because a hub is an end of many. An interval that ignores this is too short, and reports
leaks in noise more often than stated.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, logit, ndtri
from scipy.stats import rankdata

from graphveil.formats import Interval

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Counts = NDArray[np.uint8]
Statistic = Callable[[Array, Array], Array]
"""From the true and the false positives at each threshold, (resamples, thresholds), to one value for each resample."""

TAIL = 0.025
"""Error of a 95 % interval on either side."""
Z95 = float(ndtri(1 - TAIL))
RESAMPLES = 400
DRAWS = 20_000


def wilson(hits: float, count: int) -> Interval:
    """A share of independent trials, with Wilson's interval.

    Args:
        hits: successful trials.
        count: all trials.
    """
    share, z2 = hits / count, Z95**2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = Z95 / (1 + z2 / count) * np.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return Interval(share, (max(0.0, float(centre - half)), min(1.0, float(centre + half))))


def clopper_pearson(hits: int, count: int, tail: float = TAIL) -> Interval:
    """A share of independent trials, with the exact interval of Clopper and Pearson.

    Args:
        hits: successful trials.
        count: all trials.
        tail: the largest probability that the true share is above the interval, and that it is below.
    """
    low = float(betaincinv(hits, count - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, count - hits, 1 - tail)) if hits < count else 1.0
    return Interval(hits / count, (low, high))


def share_difference(hits: tuple[int, int], count: tuple[int, int], tail: float = TAIL) -> Interval:
    """The share of a first sample minus the share of a second, independent one.

    Args:
        hits: successful trials of both.
        count: all trials of both.
        tail: error of the interval on either side.
    """
    one, other = (clopper_pearson(*sample, tail) for sample in zip(hits, count, strict=True))
    value = one.value - other.value
    below = np.hypot(one.value - one.low, other.high - other.value)
    above = np.hypot(one.high - one.value, other.value - other.low)
    return Interval(value, (value - float(below), value + float(above)))


def mean(values: Array, index: Integers | None = None) -> Interval:
    """The mean over examples, with a normal interval.

    Args:
        values: one for each example, (n,).
        index: the nodes of examples that are pairs, (2, n).
    """
    centre = float(values.mean())
    spread = Z95 * np.sqrt(_variance((values - centre) / len(values), index))
    return Interval(centre, (centre - float(spread), centre + float(spread)))


def upper_bound_over_all(
    estimates: Sequence[Interval], influences: Sequence[Array], index: Integers | None = None
) -> float:
    """A simultaneous upper bound: with 97.5 % confidence, none of the true values is above it.

    The errors of attacks on the same examples are correlated. The largest error is simulated from a normal distribution
    with their covariance.

    Args:
        estimates: the estimates of the values.
        influences: the influence of each example on each value, (n,) each.
        index: the nodes of examples that are pairs, (2, n).
    """
    spread, correlation = _joint_errors(np.stack(influences), index)
    size, axes = np.linalg.eigh(correlation)
    errors = np.random.default_rng(0).standard_normal((DRAWS, len(size))) @ (axes * np.sqrt(np.maximum(size, 0))).T
    largest = float(np.quantile(errors.max(axis=1), 0.975))
    bounds = [one.value + largest * error for one, error in zip(estimates, spread, strict=True)]
    return float(min(1.0, max(*bounds, *(one.high for one in estimates))))


# ----- node secrets ---------------------------------------------------------------------------------------------------


def accuracy(log_p: Array, y: Integers) -> Interval:
    """The share of examples whose most probable class is the true one.

    Args:
        log_p: (n, classes).
        y: true classes, (n,).
    """
    return wilson(float((log_p.argmax(axis=1) == y).sum()), len(y))


def balanced_accuracy(log_p: Array, y: Integers) -> Interval:
    """The mean over the classes of their recall.

    The interval is a bootstrap within the classes. A recall of 0 or 1 is replaced there by Laplace's estimate, because
    otherwise a small class would have no uncertainty.

    Args:
        log_p: (n, classes).
        y: true classes, (n,).
    """
    correct = log_p.argmax(axis=1) == y
    classes, place = np.unique(y, return_inverse=True)
    size, hits = np.bincount(place), np.bincount(place, weights=correct)
    share = hits / size
    smoothed = np.clip(share, 1 / (size + 2), 1 - 1 / (size + 2))
    resampled = np.random.default_rng(0).binomial(size, smoothed, (RESAMPLES, len(classes))) / size
    low, high = np.quantile(resampled.mean(axis=1), [0.025, 0.975])
    value = float(share.mean())
    return Interval(value, (min(float(low), value), max(float(high), value)))


def macro_f1(log_p: Array, y: Integers) -> Interval:
    """The mean over the classes of F1 = 2 hits / (examples + predictions), with a bootstrap within the classes.

    Args:
        log_p: (n, classes).
        y: true classes, (n,).
    """
    predicted, classes = log_p.argmax(axis=1), log_p.shape[1]
    random = np.random.default_rng(0)
    hits, predictions = np.zeros((RESAMPLES + 1, classes)), np.zeros((RESAMPLES + 1, classes))
    size = np.bincount(y, minlength=classes)
    for c in np.flatnonzero(size):
        named, times = np.unique(predicted[y == c], return_counts=True)
        counts = np.concatenate([times[None], random.multinomial(size[c], times / size[c], RESAMPLES)])
        predictions[:, named] += counts
        hits[:, c] = counts[:, named == c].sum(axis=1)
    f1 = (2 * hits / np.maximum(size + predictions, 1))[:, size > 0].mean(axis=1)
    low, high = np.quantile(f1[1:], [0.025, 0.975])
    return Interval(float(f1[0]), (min(float(low), float(f1[0])), max(float(high), float(f1[0]))))


# ----- link secrets ---------------------------------------------------------------------------------------------------


def auc(score: Array, y: Integers, pairs: Integers, tail: float = TAIL) -> Interval:
    """The area under the ROC curve: the share of (link, non-link) pairs in the right order; ties count half.

    Args:
        score: the score of each pair, (n,).
        y: 1 for links and 0 for non-links, (n,).
        pairs: (2, n); the interval takes account of shared nodes.
        tail: error of the interval on either side.
    """
    value, influence = placements(score, y)
    if value in (0.0, 1.0):
        # the rule of three for an event that was not seen in n trials; with a smaller tail, more than three
        unseen = max(3.0, -np.log(2 * tail)) / min((y == 1).sum(), (y == 0).sum())
        return Interval(value, (max(0.0, value - unseen), min(1.0, value + unseen)))
    spread = ndtri(1 - tail) * np.sqrt(_variance(influence, pairs)) / (value * (1 - value))
    low, high = expit(logit(value) + np.array([-spread, spread]))
    return Interval(value, (float(low), float(high)))


def auc_difference(score: Array, other: Array, y: Integers, pairs: Integers) -> Interval:
    """The AUC of one score minus the AUC of another for the same pairs.

    Args:
        score: the score of each pair, (n,).
        other: the other score, (n,).
        y: 1 for links and 0 for non-links, (n,).
        pairs: (2, n); the interval takes account of shared nodes.
    """
    (value, influence), (other_value, other_influence) = placements(score, y), placements(other, y)
    difference = value - other_value
    spread = Z95 * float(np.sqrt(_variance(influence - other_influence, pairs)))
    return Interval(difference, (difference - spread, difference + spread))


def precision_and_rates(score: Array, y: Integers, pairs: Integers) -> dict[str, Interval]:
    """The average precision, and the true-positive rate at 1 % and 0.1 % false positives if there are enough non-links.

    Args:
        score: the score of each pair, (n,).
        y: 1 for links and 0 for non-links, (n,).
        pairs: (2, n).
    """
    influence = placements(score, y)[1]
    alone = _variance(influence, None)
    widen = np.sqrt(_variance(influence, pairs) / alone) if alone else 1.0
    statistics: dict[str, Statistic] = {"average_precision": _average_precision}
    for name, rate in (("tpr_at_1_percent_fpr", 0.01), ("tpr_at_0.1_percent_fpr", 0.001)):
        if (y == 0).sum() * rate >= 1:
            statistics[name] = partial(_tpr, rate=rate)
    return _bootstrap(statistics, score, y, float(widen))


def placements(score: Array, y: Integers) -> tuple[float, Array]:
    """The AUC, and the influence of each pair on it, (n,)."""
    links = y == 1
    m, n = int(links.sum()), int((~links).sum())
    ranks = rankdata(score)
    placement = np.empty(
        len(score)
    )  # of a link: the share of non-links below it; of a non-link: the share of links above it
    placement[links] = (ranks[links] - rankdata(score[links])) / n
    placement[~links] = 1 - (ranks[~links] - rankdata(score[~links])) / m
    value = float(placement[links].mean())
    return value, (placement - value) / np.where(links, m, n)


def _variance(influence: Array, pairs: Integers | None) -> float:
    """The variance of a sum whose terms are correlated if they share a node (Fafchamps and Gubert, 2007).

    The sum over pairs of terms that share a node is a sum of squares over nodes, so its cost is linear.
    """
    alone = float(np.square(influence).sum())
    if pairs is None:
        return alone
    at_node = np.bincount(pairs.ravel(), weights=np.tile(influence, 2))
    return max(alone, float(np.square(at_node).sum()) - alone)


def _joint_errors(influences: Array, pairs: Integers | None) -> tuple[Array, Array]:
    """The standard errors of several sums, (sums,), and their correlation, (sums, sums); computed as in `_variance`."""
    covariance: Array = influences @ influences.T
    variance = np.diag(covariance)
    if pairs is not None:
        at_node = np.stack([np.bincount(pairs.ravel(), weights=np.tile(one, 2)) for one in influences])
        shared = at_node @ at_node.T - covariance
        covariance = shared if (np.diag(shared) > 0).all() else covariance
        variance = np.maximum(variance, np.diag(shared))
    own = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    return np.sqrt(variance), covariance / np.outer(own, own)


def _bootstrap(statistics: Mapping[str, Statistic], score: Array, y: Integers, widen: float) -> dict[str, Interval]:
    """Resample links among links and non-links among non-links; the same resamples for all statistics and attacks.

    Args:
        statistics: the statistics by name.
        score: the score of each pair, (n,).
        y: 1 for links and 0 for non-links, (n,).
        widen: the factor by which shared nodes widen the interval.
    """
    order = np.argsort(-score, kind="stable")
    last_of_ties = np.append(np.diff(score[order]) != 0, True)
    links = y[order] == 1
    kinds = (links, ~links)

    def values(counts: tuple[Counts, Counts]) -> list[Array]:
        """Each statistic for each resample, from how often a resample has each link and each non-link."""
        positives = []
        for kind, times in zip(kinds, counts, strict=True):
            weights = np.zeros((len(times), len(score)))
            weights[:, kind] = times
            positives.append(np.cumsum(weights, axis=1, out=weights)[:, last_of_ties])
        return [statistic(*positives) for statistic in statistics.values()]

    counts = [int(kind.sum()) for kind in kinds]
    resampled = [values(block) for block in _resamples(*counts)]
    itself = values((np.ones((1, counts[0]), dtype=np.uint8), np.ones((1, counts[1]), dtype=np.uint8)))
    intervals = {}
    for name, centre, *parts in zip(statistics, itself, *resampled, strict=True):
        value = float(centre[0])
        low, high = np.quantile(np.concatenate(parts), [0.025, 0.975])
        below, above = max(value - float(low), 0.0), max(float(high) - value, 0.0)
        intervals[name] = Interval(value, (max(0.0, value - widen * below), min(1.0, value + widen * above)))
    return intervals


@lru_cache(maxsize=1)
def _resamples(links: int, nonlinks: int) -> list[tuple[Counts, Counts]]:
    """How often each of `RESAMPLES` resamples has each link and each non-link, in blocks of resamples.

    All attacks on one secret are resampled alike, so the draws, which take longer than the statistics, are kept.
    """
    random, blocks = np.random.default_rng(0), list[tuple[Counts, Counts]]()
    size = max(1, 2_000_000 // (links + nonlinks))  # fits into the processor's cache
    for start in range(0, RESAMPLES, size):
        shape = min(size, RESAMPLES - start)
        of_links, of_nonlinks = (random.multinomial(n, np.full(n, 1 / n), size=shape) for n in (links, nonlinks))
        blocks.append((of_links.astype(np.uint8), of_nonlinks.astype(np.uint8)))
    return blocks


def _average_precision(true: Array, false: Array) -> Array:
    """The precision at each threshold, weighted by the recall that it adds; from true and false positives."""
    precision = true / np.maximum(true + false, 1e-12)
    result: Array = (np.diff(true, axis=1, prepend=0) * precision).sum(axis=1) / np.maximum(true[:, -1], 1e-12)
    return result


def _tpr(true: Array, false: Array, rate: float) -> Array:
    """The largest true-positive rate with a false-positive rate of at most `rate`; from true and false positives."""
    allowed = false <= rate * false[:, -1:] + 1e-9
    result: Array = np.where(allowed, true, 0).max(axis=1) / np.maximum(true[:, -1], 1e-12)
    return result
