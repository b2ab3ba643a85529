"""Merge codes until a release holds its limits, at the smallest loss of utility.

Merging two codes adds their counts. This cannot raise the best accuracy, the best AUC or the information of any secret,
and a release with one code reveals nothing. So every limit at or above guessing can be held. The merges are chosen
greedily, as in the privacy funnel (Makhdoumi et al., 2014): each merge has the smallest loss of utility information for
what it removes from the secrets that are above their limits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from graphveil.codes.measures import best_accuracy, best_auc, class_information, link_information, majority_share
from graphveil.codes.tables import Floats, Integers, unordered
from graphveil.errors import GraphveilError

TOLERANCE = 1e-9
"""Rounding: a limit counts as held, and a gain as none, up to this."""


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Nodes by code and class, (codes, classes), as of `class_table`; its statistic is the best accuracy."""

    table: Integers


@dataclass(frozen=True, eq=False)
class LinkCounts:
    """Links and node pairs by two codes, (codes, codes), as of `link_table` and `pair_table`; the best AUC."""

    links: Integers
    pairs: Integers


Counts = ClassCounts | LinkCounts


@dataclass(frozen=True, eq=False)
class Merging:
    """Which codes become one, and the price.

    Args:
        mapping: (codes,) the new code of each old code; new codes count from 0. Codes without nodes get the new code
            with the most nodes.
        statistics_before: best accuracy or best AUC of each secret. statistics_after: the same after merging.
        utility_before: information about the utility in nats. utility_after: the same after merging.
    """

    mapping: Integers
    num_codes: int
    statistics_before: tuple[float, ...]
    statistics_after: tuple[float, ...]
    utility_before: float
    utility_after: float

    @property
    def price(self) -> float:
        """The utility information that was lost, in nats."""
        return self.utility_before - self.utility_after


def merge(
    sizes: Integers,
    utility: Counts,
    secrets: Sequence[tuple[Counts, float]],
    min_size: int = 1,
) -> Merging:
    """Merge codes until every secret holds its limit and every code has enough nodes.

    Args:
        sizes: (codes,) released nodes with each code. utility: counts of what the release keeps.
        secrets: (counts, limit) of each secret; the limit is on the best accuracy of a class secret and on the best AUC
            of links. A list without secrets merges small codes only.
        min_size: codes with fewer nodes are merged first, each into the code where it costs least.
    """
    used = np.flatnonzero(sizes > 0)
    if len(used) == 0:
        raise GraphveilError("no code has a node: expected the number of nodes with each code.")
    kept = _state(utility, len(sizes), used)
    hidden = [_state(counts, len(sizes), used) for counts, _ in secrets]
    limits = [limit for _, limit in secrets]
    for state, limit in zip(hidden, limits, strict=True):
        if state.guessing > limit + TOLERANCE:
            raise GraphveilError(
                f"the limit {limit:.4f} is below guessing, {state.guessing:.4f}, which no release can hold:"
                " raise the limit."
            )
    before, utility_before = tuple(state.statistic() for state in hidden), kept.information()
    group, count = np.arange(len(used)), sizes[used]
    while len(count) > 1:
        above = [(s, limit) for s, limit in zip(hidden, limits, strict=True) if s.statistic() > limit + TOLERANCE]
        if count.min() < min_size:
            one, other = _cheapest_partner(int(count.argmin()), kept.losses())
        elif above:
            one, other = _best_merge(kept.losses(), above)
        else:
            break
        for state in (kept, *hidden):
            state.merge(one, other)
        count[one] += count[other]
        count = np.delete(count, other)
        group = np.where(group == other, one, group - (group > other))
    mapping = np.full(len(sizes), int(count.argmax()))
    mapping[used] = group
    return Merging(
        mapping=mapping,
        num_codes=len(count),
        statistics_before=before,
        statistics_after=tuple(state.statistic() for state in hidden),
        utility_before=utility_before,
        utility_after=kept.information(),
    )


def _cheapest_partner(code: int, losses: Floats) -> tuple[int, int]:
    row = losses[code].copy()
    row[code] = np.inf
    one, other = sorted((code, int(row.argmin())))
    return one, other


def _best_merge(losses: Floats, above: Sequence[tuple["_State", float]]) -> tuple[int, int]:
    """The pair with the smallest loss of utility for what it removes from the secrets above their limits.

    Where no single merge lowers a statistic, what counts is the secret information that it removes.
    """
    upper = np.triu(np.ones(losses.shape, dtype=bool), 1)
    gain = np.sum([state.progress(limit) for state, limit in above], axis=0)
    if not (gain[upper] > TOLERANCE).any():
        gain = np.sum([state.losses() for state, _ in above], axis=0)
    useful = upper & (gain > TOLERANCE) if (gain[upper] > TOLERANCE).any() else upper
    ratio = np.where(useful, (losses + TOLERANCE) / np.maximum(gain, TOLERANCE), np.inf)
    one, other = np.unravel_index(int(ratio.argmin()), ratio.shape)
    return int(one), int(other)


# ----- tables while codes are merged ----------------------------------------------------------------------------------


class _ClassState:
    """Nodes by code and class, and what each merge of two codes would remove."""

    def __init__(self, table: Integers) -> None:
        self.table = table.copy()
        self.total = max(1, int(table.sum()))
        self.guessing = majority_share(table) if table.any() else 0.0
        size = len(table)
        self._information, self._hits = np.zeros((size, size)), np.zeros((size, size))
        for code in range(size):
            self._update(code)

    def statistic(self) -> float:
        return best_accuracy(self.table) if self.table.any() else 0.0

    def information(self) -> float:
        return class_information(self.table) if self.table.any() else 0.0

    def losses(self) -> Floats:
        """The information that merging two codes removes, (codes, codes)."""
        return self._information

    def progress(self, limit: float) -> Floats:
        """The share of the excess over the limit that merging two codes removes, (codes, codes)."""
        excess = self.statistic() - limit
        return np.minimum(self._hits / self.total / excess, 1.0)

    def merge(self, one: int, other: int) -> None:
        """Add code `other` to code `one`, which is smaller."""
        self.table[one] += self.table[other]
        self.table = np.delete(self.table, other, axis=0)
        self._information, self._hits = _without(self._information, other), _without(self._hits, other)
        self._update(one)

    def _update(self, code: int) -> None:
        """Compare a code with all others, from its counts."""
        rows = self.table.sum(axis=1, keepdims=True)
        together, all_together = self.table + self.table[code], rows + rows[code]
        split = _evidence(self.table, rows).sum(axis=1)
        lost = (split + split[code] - _evidence(together, all_together).sum(axis=1)) / self.total
        most = self.table.max(axis=1)
        self._information[code] = self._information[:, code] = np.maximum(lost, 0.0)
        self._hits[code] = self._hits[:, code] = most + most[code] - together.max(axis=1)


class _LinkState:
    """Links and node pairs by two codes, and the information that each merge of two codes would remove."""

    guessing = 0.5

    def __init__(self, links: Integers, pairs: Integers) -> None:
        self.links, self.pairs = links.copy(), pairs.copy()
        self.total = max(1, int(links.sum()))
        self._rows = np.zeros(links.shape)  # what adding two rows removes, with no regard to adding their columns
        for column in range(len(links)):
            self._rows += self._column_gap(column)

    def statistic(self) -> float:
        links, pairs = unordered(self.links), unordered(self.pairs)
        if not links.any() or (links == pairs).all():
            return 0.5
        return best_auc(links.astype(float), (pairs - links).astype(float))

    def information(self) -> float:
        links, pairs = unordered(self.links), unordered(self.pairs)
        return link_information(links, pairs, int(pairs.sum())) if links.any() else 0.0

    def losses(self) -> Floats:
        """The information that merging two codes removes, (codes, codes).

        The cells (a, x) and (b, x) become one for every other code x, in both directions; the cells (a, a), (a, b),
        (b, a) and (b, b) become one.
        """
        cells, own = _evidence(self.links, self.pairs), np.diag(self.links)[:, None]
        own_pairs = np.diag(self.pairs)[:, None]
        inside = np.diag(cells)[:, None]
        at_first = inside + cells - _evidence(own + self.links, own_pairs + self.pairs)
        corner = _evidence(own + own.T + 2 * self.links, own_pairs + own_pairs.T + 2 * self.pairs)
        lost = 2 * (self._rows - at_first - at_first.T) + inside + inside.T + 2 * cells - corner
        return np.maximum(lost / self.total, 0.0)

    def progress(self, limit: float) -> Floats:  # noqa: ARG002 - the AUC of every merge would cost too much
        """The share of the information about links that merging two codes removes, (codes, codes)."""
        return self.losses() / max(self.information(), TOLERANCE)

    def merge(self, one: int, other: int) -> None:
        """Add code `other` to code `one`, which is smaller."""
        rows = self._rows - self._column_gap(one) - self._column_gap(other)
        self.links, self.pairs = _added(self.links, one, other), _added(self.pairs, one, other)
        self._rows = _without(rows, other) + self._column_gap(one)
        cells = _evidence(self.links, self.pairs).sum(axis=1)
        together = _evidence(self.links + self.links[one], self.pairs + self.pairs[one]).sum(axis=1)
        self._rows[one] = self._rows[:, one] = cells + cells[one] - together

    def _column_gap(self, column: int) -> Floats:
        """What adding two cells of a column removes, (codes, codes)."""
        links, pairs = self.links[:, column], self.pairs[:, column]
        cells = _evidence(links, pairs)
        return cells[:, None] + cells - _evidence(links[:, None] + links, pairs[:, None] + pairs)


_State = _ClassState | _LinkState
Table = TypeVar("Table", Integers, Floats)


def _state(counts: Counts, num_codes: int, used: Integers) -> _State:
    tables = (counts.table,) if isinstance(counts, ClassCounts) else (counts.links, counts.pairs)
    for table in tables:
        if table.ndim != 2 or len(table) != num_codes or (len(tables) == 2 and table.shape[1] != num_codes):
            raise GraphveilError(f"a table has shape {table.shape}: expected one row for each of {num_codes} codes.")
    if isinstance(counts, ClassCounts):
        return _ClassState(counts.table[used])
    return _LinkState(counts.links[np.ix_(used, used)], counts.pairs[np.ix_(used, used)])


def _evidence(counts: Integers, of: Integers) -> Floats:
    """counts * log(counts / of), 0 where there are none."""
    return np.asarray(counts * np.log(np.maximum(counts, 1) / np.maximum(of, 1)), dtype=np.float64)


def _added(table: Integers, one: int, other: int) -> Integers:
    """A symmetric table with row and column `other` added to `one`."""
    table = table.copy()
    table[one] += table[other]
    table[:, one] += table[:, other]
    return _without(table, other)


def _without(table: Table, code: int) -> Table:
    """Without a row and a column."""
    return np.delete(np.delete(table, code, axis=0), code, axis=1)
