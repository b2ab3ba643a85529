"""Merge codes until a release meets its limits, at a small loss of utility.

Merging two codes adds their counts. This cannot raise the best accuracy, the best AUC or the information of any secret,
and a release with one code reveals nothing. So every limit at or above the chance level can be met. The merges are
chosen greedily, as in the privacy funnel (Makhdoumi et al., 2014): each merge has the smallest loss of utility
information relative to what it removes from the secrets that are above their limits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from graphveil.codes.measures import best_accuracy, best_auc, class_information, link_information, majority_share
from graphveil.codes.tables import Floats, Integers, unordered
from graphveil.errors import GraphveilError

TOLERANCE = 1e-9
"""Rounding: a limit is met, and a gain is zero, up to this."""


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Counts of a node secret; its statistic is the best accuracy.

    Args:
        table: the table of `class_table`, (codes, classes).
    """

    table: Integers


@dataclass(frozen=True, eq=False)
class LinkCounts:
    """Counts of a link secret; its statistic is the best AUC.

    Args:
        links: the table of `link_table`, (codes, codes).
        pairs: the table of `pair_table`, (codes, codes).
    """

    links: Integers
    pairs: Integers


Counts = ClassCounts | LinkCounts


@dataclass(frozen=True, eq=False)
class Merging:
    """Which codes are merged, and the loss of utility.

    Args:
        mapping: the new code of each old code, (codes,); new codes count from 0. Codes without nodes get the new code
            with the most nodes.
        num_codes: the number of new codes.
        statistics_before: best accuracy or best AUC of each secret before merging.
        statistics_after: the same after merging.
        utility_before: information about the utility before merging, in nats.
        utility_after: the same after merging.
    """

    mapping: Integers
    num_codes: int
    statistics_before: tuple[float, ...]
    statistics_after: tuple[float, ...]
    utility_before: float
    utility_after: float

    @property
    def price(self) -> float:
        """The loss of information about the utility, in nats."""
        return self.utility_before - self.utility_after


def merge(
    sizes: Integers,
    utility: Counts,
    secrets: Sequence[tuple[Counts, float]],
    min_size: int = 1,
) -> Merging:
    """Merge codes until every secret meets its limit and every code has enough nodes.

    Args:
        sizes: number of released nodes with each code, (codes,).
        utility: counts of what the release keeps.
        secrets: (counts, limit) of each secret; the limit is on the best accuracy of a node secret, or on the best AUC
            of links. With an empty list, only small codes are merged.
        min_size: codes with fewer nodes are merged first, each into the code with the smallest loss.
    """
    used = np.flatnonzero(sizes > 0)
    if len(used) == 0:
        raise GraphveilError("no code has a node: expected the number of nodes with each code.")
    kept = _state(utility, len(sizes), used)
    hidden = [_state(counts, len(sizes), used) for counts, _ in secrets]
    limits = [limit for _, limit in secrets]
    for state, limit in zip(hidden, limits, strict=True):
        if state.chance > limit + TOLERANCE:
            raise GraphveilError(
                f"the limit {limit:.4f} is below the chance level, {state.chance:.4f}, so no release can meet it:"
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
    """The pair with the smallest loss of utility relative to what it removes from the secrets above their limits.

    If no single merge lowers a statistic, the removed information about the secrets is used instead.
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
    """Nodes by code and class, and the information and hits that each merge of two codes would remove."""

    def __init__(self, table: Integers) -> None:
        self.table = table.copy()
        self.total = max(1, int(table.sum()))
        self.chance = majority_share(table) if table.any() else 0.0
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
        merged, merged_rows = self.table + self.table[code], rows + rows[code]
        split = _evidence(self.table, rows).sum(axis=1)
        lost = (split + split[code] - _evidence(merged, merged_rows).sum(axis=1)) / self.total
        most = self.table.max(axis=1)
        self._information[code] = self._information[:, code] = np.maximum(lost, 0.0)
        self._hits[code] = self._hits[:, code] = most + most[code] - merged.max(axis=1)


class _LinkState:
    """Links and node pairs by two codes, and the information that each merge of two codes would remove."""

    chance = 0.5

    def __init__(self, links: Integers, pairs: Integers) -> None:
        self.links, self.pairs = links.copy(), pairs.copy()
        self.total = max(1, int(links.sum()))
        self._rows = np.zeros(links.shape)  # the information that adding two rows removes, without adding their columns
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
        merged = _evidence(self.links + self.links[one], self.pairs + self.pairs[one]).sum(axis=1)
        self._rows[one] = self._rows[:, one] = cells + cells[one] - merged

    def _column_gap(self, column: int) -> Floats:
        """The information that adding two cells of a column removes, (codes, codes)."""
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
    """counts * log(counts / of), 0 for a count of 0."""
    return np.asarray(counts * np.log(np.maximum(counts, 1) / np.maximum(of, 1)), dtype=np.float64)


def _added(table: Integers, one: int, other: int) -> Integers:
    """A symmetric table with row and column `other` added to `one`."""
    table = table.copy()
    table[one] += table[other]
    table[:, one] += table[:, other]
    return _without(table, other)


def _without(table: Table, code: int) -> Table:
    """The table without one row and one column."""
    return np.delete(np.delete(table, code, axis=0), code, axis=1)
