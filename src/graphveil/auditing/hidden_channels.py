"""Attacks on hidden channels: low-order bits and digits, ties, duplicate rows and faint directions.

A column of float32 can carry a secret that no model of its values finds: in the last bit of each value, in the fourth
decimal, or in whether a value occurs twice. Each of these is a *channel*: one small integer for each node. There are
thousands of channels, so they are tested one by one. The channels with the most information about the known secrets are
combined by naive Bayes. Two channels that reveal a secret only together are not found.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from graphveil.auditing.attacks import FAINT, Answers, Need, directions
from graphveil.auditing.embeddings import whole_steps
from graphveil.auditing.learners import Rows, area
from graphveil.auditing.metrics import Array, Integers
from graphveil.auditing.secret import LinkSecret, NodeSecret, Queries
from graphveil.codes import distinct_codes

Channels = NDArray[np.uint8]
"""The value of each channel for each node or pair, (n, channels), below `VALUES`."""
VALUES = 10
"""Values of a channel: a digit, a bit, a tenth of the nodes, or a number of occurrences (9 for 9 and more)."""
MAX_CHANNELS = 64
"""Channels that are combined at most."""
COUNTS = (1, 4, 16, MAX_CHANNELS)
"""Numbers of channels to combine; the best number is chosen on the validation part."""
SIGNIFICANCE = 1e-4
"""p-value below which a channel is kept: of thousands without information, less than one is."""
MAX_PAIRS = 20_000
"""Pairs that channels are chosen on at most."""
NAME = "low-order bits and digits, ties, duplicates"


def channels(z: Rows) -> Iterator[Channels]:
    """The channels of all nodes, (n, channels), without those that are constant: first of rows, then of each column.

    Args:
        z: (n, columns) as in the file, in float64.
    """
    yield _varying(_row_channels(z))
    for column in z.T:
        yield _varying(_column_channels(np.ascontiguousarray(column)))


def _varying(block: Channels) -> Channels:
    return block[:, (block != block[0]).any(axis=0)]


def _row_channels(z: Rows) -> Channels:
    """How many nodes have the same row, the norms of the row, and its position in each faint direction."""
    even, spread = directions(z)
    z = np.ldexp(z, -np.frexp(np.abs(z).max())[1])
    values = [np.linalg.norm(z, order, axis=1) for order in (1, 2, np.inf)] + list(even[:, spread < FAINT].T)
    positions = [cut(value) for value in values for cut in (_tenths, _side_of_gap)]
    return np.column_stack([_occurrences(distinct_codes(z)[0]), *positions])


def _column_channels(column: Array) -> Channels:
    """The bits and the decimals of each value, and how many nodes have the same value."""
    digits = [_digit(column, place, cut) for place in range(9) for cut in (np.floor, np.rint)]
    steps = whole_steps(column)
    step_bits = [] if steps is None else [_bits(np.abs(steps))]
    return np.column_stack([_bits(column.view(np.int64)), *step_bits, *digits, _occurrences(column)])


def _bits(numbers: Integers) -> Channels:
    """The 64 bits of an integer, or of a float viewed as one: mantissa, exponent and sign."""
    return np.unpackbits(np.ascontiguousarray(numbers).view(np.uint8).reshape(len(numbers), 8), axis=1)


def _digit(column: Array, place: int, cut: Callable[[Array], Array]) -> Channels:
    """The digit at a decimal place, of values truncated (`np.floor`) or rounded (`np.rint`) there."""
    shifted = np.abs(column)
    shifted = np.where(shifted < 2.0**53 / 10.0**place, shifted, 0.0) * 10.0**place  # larger values lack these digits
    return (cut(shifted) % 10).astype(np.uint8)


def _occurrences(values: NDArray[Any]) -> Channels:
    """How often each value occurs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.minimum(count, VALUES - 1)[place].astype(np.uint8)


def _tenths(values: Array) -> Channels:
    """The decile of each value; equal values are in the same decile."""
    bounds = np.quantile(values, np.arange(1, VALUES) / VALUES)
    return np.searchsorted(bounds, values, side="right").astype(np.uint8)


def _side_of_gap(values: Array) -> Channels:
    """Whether a value is above the widest gap in the middle nine tenths: two planted values are on its two sides."""
    ascending = np.sort(values)
    margin = len(values) // 20
    gaps = np.diff(ascending)[margin : len(values) - 1 - margin]
    if not gaps.size:
        return np.zeros(len(values), dtype=np.uint8)
    above: Channels = (values > ascending[margin + int(gaps.argmax())]).astype(np.uint8)
    return above


@dataclass(frozen=True)
class NodeChannelAttack:
    """Predict the class of a node from its most informative channels, by naive Bayes.

    Args:
        name: the name of the attack.
        cost: relative run time.
        needs: what the attacker knows.
    """

    name: str = NAME
    cost: float = 0.3
    needs: tuple[Need, ...] = ("z", "secrets")

    def __call__(self, z: Rows, secret: NodeSecret, seed: int) -> Answers:  # noqa: ARG002 - nothing is drawn
        """Attack the secret; see `Attack`."""
        classes, known = secret.num_classes, secret.known["all"]
        models = [_node_models(z, train, classes) for train, _ in secret.held_out]
        answers = [
            np.concatenate(
                [fold[i](held_out.index) for fold, (_, held_out) in zip(models, secret.held_out, strict=True)]
            )
            for i in range(len(COUNTS))
        ]
        best = max(range(len(COUNTS)), key=lambda i: float((answers[i].argmax(axis=1) == secret.val.y).mean()))
        return Answers(answers[best], _node_models(z, known, classes)[best](secret.test.index))


def _node_models(z: Rows, known: Queries, classes: int) -> list[Callable[[Integers], Array]]:
    """For each of `COUNTS`, the naive Bayes model of that many channels: from nodes to class log-probabilities."""
    best = _most_informative(z, lambda block: _information(_class_counts(block[known.index], known.y, classes)))
    return [_naive_bayes(best, known, min(count, best.shape[1]), classes) for count in COUNTS]


@dataclass(frozen=True)
class LinkChannelAttack:
    """Predict links from the channels in which linked nodes agree most, by naive Bayes.

    Args:
        name: the name of the attack.
        cost: relative run time.
        needs: what the attacker knows.
    """

    name: str = NAME
    cost: float = 0.5
    needs: tuple[Need, ...] = ("z", "secrets")

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:
        """Attack the secret; see `Attack`."""
        known = _links_and_shuffled(secret.known.index[:, secret.known.y == 1], seed)
        best = _most_informative(z, lambda block: _information(_class_counts(_equal(block, known.index), known.y, 2)))
        answers = self._scores(best, known, secret.val, secret.test)
        if secret.matched is None:
            return Answers(*answers)
        return Answers(*answers, *self._scores(best, known, secret.matched.val, secret.matched.test))

    def _scores(self, best: Channels, known: Queries, val: Queries, test: Queries) -> tuple[Array, Array]:
        if best.shape[1] == 0:
            return np.zeros(len(val.y)), np.zeros(len(test.y))

        def log_odds(count: int) -> tuple[Array, Array]:
            counts = _class_counts(_equal(best[:, :count], known.index), known.y, 2)
            odds = np.diff(_log_shares(counts), axis=2)[:, :, 0]
            on_val, on_test = (
                odds[np.arange(count), _equal(best[:, :count], part.index)].sum(axis=1) for part in (val, test)
            )
            return on_val, on_test

        counts = {min(count, best.shape[1]) for count in COUNTS}
        return max((log_odds(count) for count in sorted(counts)), key=lambda scores: area(scores[0], val.y))


def _links_and_shuffled(links: Integers, seed: int) -> Queries:
    """Known links, and as many pairs of the same ends, shuffled: every node occurs equally often in both.

    Compared with random pairs, channels would be chosen that nodes of high degree have by chance.
    """
    random = np.random.default_rng(seed)
    links = links[:, random.permutation(links.shape[1])[: MAX_PAIRS // 2]]
    others = np.stack([links[0], random.permutation(links[1])])
    return Queries(np.concatenate([links, others], axis=1), np.repeat([1, 0], links.shape[1]))


def _most_informative(z: Rows, information: Callable[[Channels], Array]) -> Channels:
    """The channels of all nodes with the most information, (n, at most `MAX_CHANNELS`), the best first."""
    kept: list[tuple[float, int, Channels]] = []
    number = 0
    for block in channels(z):
        values = information(block) if block.shape[1] else np.zeros(0)
        for place in np.argsort(-values)[:MAX_CHANNELS]:
            if values[place] > 0:
                number += 1
                heapq.heappush(kept, (float(values[place]), number, block[:, place].copy()))
                if len(kept) > MAX_CHANNELS:
                    heapq.heappop(kept)
    columns = [channel for _, _, channel in sorted(kept, key=lambda one: one[:2], reverse=True)]
    return np.column_stack(columns) if columns else np.zeros((len(z), 0), dtype=np.uint8)


def _equal(block: Channels, pairs: Integers) -> Channels:
    """Whether both ends of each pair have the same value in each channel, (pairs, channels)."""
    equal: Channels = (block[pairs[0]] == block[pairs[1]]).astype(np.uint8)
    return equal


def _class_counts(block: Channels, y: Integers, classes: int) -> Array:
    """The number of examples with each value and class, for each channel, (channels, values, classes)."""
    count = block.shape[1]
    cell = (np.arange(count) * VALUES + block) * classes + y[:, None]
    counts: Array = np.bincount(cell.ravel(), minlength=count * VALUES * classes).astype(np.float64)
    return counts.reshape(count, VALUES, classes)


def _information(counts: Array) -> Array:
    """The mutual information of each channel and the class in nats, (channels,); 0 if not significant (G-test)."""
    total = counts.sum(axis=(1, 2), keepdims=True)
    p = counts / total
    values, shares = p.sum(axis=2, keepdims=True), p.sum(axis=1, keepdims=True)
    ratio = np.divide(p, values * shares, out=np.ones_like(p), where=p > 0)
    nats = (p * np.log(ratio)).sum(axis=(1, 2))
    freedom = ((values > 0).sum(axis=(1, 2)) - 1) * ((shares > 0).sum(axis=(1, 2)) - 1)
    p_value = chi2.sf(2 * total[:, 0, 0] * nats, np.maximum(freedom, 1))
    significant: Array = np.where(p_value < SIGNIFICANCE, nats, 0.0)
    return significant


def _log_shares(counts: Array) -> Array:
    """log p(value | class) of each channel, (channels, values, classes), smoothed by one example of average class."""
    shares = counts.sum(axis=2, keepdims=True) / counts.sum(axis=(1, 2), keepdims=True)
    log_p: Array = np.log((counts + shares + 1e-9) / (counts.sum(axis=1, keepdims=True) + 1))
    return log_p


def _naive_bayes(best: Channels, known: Queries, count: int, classes: int) -> Callable[[Integers], Array]:
    """The naive Bayes model of the first `count` channels."""
    log_p = _log_shares(_class_counts(best[known.index, :count], known.y, classes))
    prior = np.log(np.maximum(np.bincount(known.y, minlength=classes) / len(known.y), 1e-12))

    def answer(nodes: Integers) -> Array:
        logits = prior + log_p[np.arange(count), best[nodes, :count]].sum(axis=1)
        result: Array = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        return result

    return answer
