"""Attack what a file of numbers can carry beside them: low-order bits and digits, ties, twins and faint directions.

A column of float32 has room for a secret that no model of its values would find: the last bit of each value, the
fourth decimal, whether a value occurs twice. Each of these is a *mark*, a small whole number of every node. There are
thousands of marks, so they are looked at one by one: those that tell most of the known secrets are combined as if they
were independent (naive Bayes). Two marks that tell something only together are not found.
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

Marks = NDArray[np.uint8]
VALUES = 10
"""A mark is one of so many: a digit, a bit, a tenth of the nodes, or how often something occurs, 9 for more."""
KEPT = 64
"""Marks that are combined at most."""
NUMBERS = (1, 4, 16, KEPT)
"""How many marks are tried together, or as many as there are."""
BY_CHANCE = 1e-4
"""How likely chance may make a mark tell what it tells: of thousands that tell nothing, less than one is then kept."""
PAIRS = 20_000
"""Pairs that marks are chosen on at most."""
NAME = "low-order bits and digits, ties, twins"


def marks(z: Rows) -> Iterator[Marks]:
    """Marks of all nodes, (n, marks) for whole rows and for each column of z, those left out that all nodes share.

    Args:
        z: (n, columns) as in the file, in float64.
    """
    yield _varying(_of_rows(z))
    for column in z.T:
        yield _varying(_of_column(np.ascontiguousarray(column)))


def _varying(block: Marks) -> Marks:
    return block[:, (block != block[0]).any(axis=0)]


def _of_rows(z: Rows) -> Marks:
    """How many nodes have the same row, how long the row is, and where it lies in each faint direction."""
    even, spread = directions(z)
    z = np.ldexp(z, -np.frexp(np.abs(z).max())[1])
    tenths = [_tenths(np.linalg.norm(z, order, axis=1)) for order in (1, 2, np.inf)]
    tenths += [_tenths(column) for column in even[:, spread < FAINT].T]
    return np.column_stack([_times(distinct_codes(z)[0]), *tenths])


def _of_column(column: Array) -> Marks:
    """Its bits, its decimals, and how many nodes have the same value."""
    digits = [_digit(column, place, cut) for place in range(9) for cut in (np.floor, np.rint)]
    steps = whole_steps(column)
    of_steps = [] if steps is None else [_bits(np.abs(steps))]
    return np.column_stack([_bits(column.view(np.int64)), *of_steps, *digits, _times(column)])


def _bits(numbers: Integers) -> Marks:
    """All 64 of a whole number, or of a float seen as one: its mantissa, exponent and sign."""
    return np.unpackbits(np.ascontiguousarray(numbers).view(np.uint8).reshape(len(numbers), 8), axis=1)


def _digit(column: Array, place: int, cut: Callable[[Array], Array]) -> Marks:
    """The digit at a decimal place: of a number that goes on behind it, or of one that was rounded to it."""
    shifted = np.abs(column)
    shifted = np.where(shifted < 2.0**53 / 10.0**place, shifted, 0.0) * 10.0**place  # the digits of others are lost
    return (cut(shifted) % 10).astype(np.uint8)


def _times(values: NDArray[Any]) -> Marks:
    """How often each value occurs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.minimum(count, VALUES - 1)[place].astype(np.uint8)


def _tenths(values: Array) -> Marks:
    """Which tenth of all nodes a value lies in; equal values in the same."""
    bounds = np.quantile(values, np.arange(1, VALUES) / VALUES)
    return np.searchsorted(bounds, values, side="right").astype(np.uint8)


@dataclass(frozen=True)
class ReadMarks:
    """Read a node's secret from the marks that tell most, as many as the validation part says."""

    name: str = NAME
    cost: float = 0.3
    needs: tuple[Need, ...] = ("z", "secrets")

    def __call__(self, z: Rows, secret: NodeSecret, seed: int) -> Answers:  # noqa: ARG002 - nothing is drawn
        classes, everything = secret.num_classes, secret.known["all"]
        readers = [_class_readers(z, taught, classes) for taught, _ in secret.held_out]
        answers = [
            np.concatenate([one[count](held.index) for one, (_, held) in zip(readers, secret.held_out, strict=True)])
            for count in range(len(NUMBERS))
        ]
        best = max(range(len(NUMBERS)), key=lambda count: float((answers[count].argmax(axis=1) == secret.val.y).mean()))
        return Answers(answers[best], _class_readers(z, everything, classes)[best](secret.test.index))


def _class_readers(z: Rows, known: Queries, classes: int) -> list[Callable[[Integers], Array]]:
    """Class log-probabilities of nodes by the marks that tell most about known classes, for each of `NUMBERS`."""
    best = _best(z, lambda block: _told_of_classes(_class_counts(block[known.index], known.y, classes)))
    return [_naive_bayes(best, known, min(count, best.shape[1]), classes) for count in NUMBERS]


@dataclass(frozen=True)
class CompareMarks:
    """Read links from the marks that linked nodes share most, as many as the validation part says."""

    name: str = NAME
    cost: float = 0.5
    needs: tuple[Need, ...] = ("z", "secrets")

    def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:
        known = _beside_shuffled(secret.known.index[:, secret.known.y == 1], seed)
        best = _best(z, lambda block: _told_of_classes(_class_counts(_shared(block, known.index), known.y, 2)))
        answers = self._compared(best, known, secret.val, secret.test)
        if secret.matched is None:
            return Answers(*answers)
        return Answers(*answers, *self._compared(best, known, secret.matched.val, secret.matched.test))

    def _compared(self, best: Marks, known: Queries, val: Queries, test: Queries) -> tuple[Array, Array]:
        if best.shape[1] == 0:
            return np.zeros(len(val.y)), np.zeros(len(test.y))

        def scores(count: int) -> tuple[Array, Array]:
            counts = _class_counts(_shared(best[:, :count], known.index), known.y, 2)
            odds = np.diff(_log_shares(counts), axis=2)[:, :, 0]
            val_score, test_score = (
                odds[np.arange(count), _shared(best[:, :count], part.index)].sum(axis=1) for part in (val, test)
            )
            return val_score, test_score

        numbers = {min(count, best.shape[1]) for count in NUMBERS}
        return max((scores(count) for count in sorted(numbers)), key=lambda found: area(found[0], val.y))


def _beside_shuffled(links: Integers, seed: int) -> Queries:
    """Known links, and the same ends in other pairs: whoever has many links has as many there.

    Beside pairs of any nodes, marks would be chosen that the nodes with many links have by chance.
    """
    random = np.random.default_rng(seed)
    links = links[:, random.permutation(links.shape[1])[: PAIRS // 2]]
    others = np.stack([links[0], random.permutation(links[1])])
    return Queries(np.concatenate([links, others], axis=1), np.repeat([1, 0], links.shape[1]))


def _best(z: Rows, told: Callable[[Marks], Array]) -> Marks:
    """The marks of all nodes that tell most, (n, at most `KEPT`), the best first."""
    kept: list[tuple[float, int, Marks]] = []
    number = 0
    for block in marks(z):
        values = told(block) if block.shape[1] else np.zeros(0)
        for place in np.argsort(-values)[:KEPT]:
            if values[place] > 0:
                number += 1
                heapq.heappush(kept, (float(values[place]), number, block[:, place].copy()))
                if len(kept) > KEPT:
                    heapq.heappop(kept)
    columns = [mark for _, _, mark in sorted(kept, key=lambda one: one[:2], reverse=True)]
    return np.column_stack(columns) if columns else np.zeros((len(z), 0), dtype=np.uint8)


def _shared(block: Marks, pairs: Integers) -> Marks:
    """Whether the two ends of each pair have the same mark, (pairs, marks)."""
    shared: Marks = (block[pairs[0]] == block[pairs[1]]).astype(np.uint8)
    return shared


def _class_counts(block: Marks, y: Integers, classes: int) -> Array:
    """How often each value of each mark goes with each class, (marks, values, classes)."""
    count = block.shape[1]
    cell = (np.arange(count) * VALUES + block) * classes + y[:, None]
    counts: Array = np.bincount(cell.ravel(), minlength=count * VALUES * classes).astype(np.float64)
    return counts.reshape(count, VALUES, classes)


def _told_of_classes(counts: Array) -> Array:
    """The information of each mark on the class in nats, (marks,); 0 where chance might give as much (G-test)."""
    total = counts.sum(axis=(1, 2), keepdims=True)
    p = counts / total
    values, shares = p.sum(axis=2, keepdims=True), p.sum(axis=1, keepdims=True)
    ratio = np.divide(p, values * shares, out=np.ones_like(p), where=p > 0)
    told = (p * np.log(ratio)).sum(axis=(1, 2))
    freedom = ((values > 0).sum(axis=(1, 2)) - 1) * ((shares > 0).sum(axis=(1, 2)) - 1)
    by_chance = chi2.sf(2 * total[:, 0, 0] * told, np.maximum(freedom, 1))
    significant: Array = np.where(by_chance < BY_CHANCE, told, 0.0)
    return significant


def _log_shares(counts: Array) -> Array:
    """log p(value | class) of each mark, (marks, values, classes), each mark's shares counted as one more node."""
    shares = counts.sum(axis=2, keepdims=True) / counts.sum(axis=(1, 2), keepdims=True)
    log_p: Array = np.log((counts + shares + 1e-9) / (counts.sum(axis=1, keepdims=True) + 1))
    return log_p


def _naive_bayes(best: Marks, known: Queries, count: int, classes: int) -> Callable[[Integers], Array]:
    """Class log-probabilities of nodes by the first `count` marks."""
    log_p = _log_shares(_class_counts(best[known.index, :count], known.y, classes))
    prior = np.log(np.maximum(np.bincount(known.y, minlength=classes) / len(known.y), 1e-12))

    def answer(nodes: Integers) -> Array:
        logits = prior + log_p[np.arange(count), best[nodes, :count]].sum(axis=1)
        result: Array = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        return result

    return answer
