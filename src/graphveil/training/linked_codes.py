"""The table of linked codes: how often the two ends of a link have codes a and b."""

from functools import cached_property

import torch
from torch import Tensor

from graphveil.models.blocks import ends, rows_of
from graphveil.models.codes import CodeShape, soft_codes
from graphveil.models.sparse import Pattern, SparseMatrix
from graphveil.randomness import Noise
from graphveil.training.information import link_table

LINKS_AT_ONCE = 2**15
"""The largest number of links in a round; of more, a sample is used."""


class LinkedCodes:
    """The table L (..., M, M) of soft codes, on all links or on a fresh sample in each round.

    A link is one entry of a sparse matrix A: its row is the hub, the end with more links, and its column is the other
    end. Then L = q_H' (A q) / links, where q_H are the rows of q of the hubs. The cost of this product is in proportion
    to the number of hubs, and few nodes are hubs: 4,419 of Pubmed's 19,717.

    Args:
        links: (2, ..., links); nodes are numbered through all runs.
        num_nodes: The number of nodes of a run.
        shape: The shape of the codes.
        draws: The random numbers of the samples.
    """

    def __init__(self, links: Tensor, num_nodes: int, shape: CodeShape, draws: Noise) -> None:
        self.shape, self._draws = shape, draws
        source, other = links.view(2, -1, links.size(-1))
        degree = torch.bincount(links.flatten(), minlength=len(source) * num_nodes)
        source_is_hub = degree[source] >= degree[other]
        hub, other = source.where(source_is_hub, other), other.where(source_is_hub, source)
        hub, order = hub.sort(dim=-1, stable=True)
        self._hub, self._other = hub, other.gather(-1, order)
        numbered = [of_run.unique(return_inverse=True) for of_run in hub]
        self._most = max(len(hubs) for hubs, _ in numbered)
        self._row = torch.stack([row + run * self._most for run, (_, row) in enumerate(numbered)])
        # A has no entries in the rows that fill up the runs with fewer hubs
        filled = [torch.cat([hubs, hubs[:1].expand(self._most - len(hubs))]) for hubs, _ in numbered]
        self._hubs = torch.stack(filled).view(*links.shape[1:-1], self._most)
        self._nodes = len(source) * num_nodes

    def table(self, logits: Tensor, q: Tensor | None) -> Tensor:
        """Return L, symmetrised.

        Args:
            logits: The output of the encoder, (..., n, groups * size).
            q: The soft codes of all nodes, (..., n, M), if they are known; otherwise those of the ends are computed.
        """
        hub, other, row, drawn = self._hub, self._other, self._row, self._sample()
        if drawn is not None:
            hub, other, row = (x.gather(-1, drawn) for x in (hub, other, row))
        count = row.size(-1)
        if q is None:
            pairs = torch.stack([hub, other]).view(2, *logits.shape[:-2], count)
            return link_table(*(soft_codes(end, self.shape) for end in ends(logits, pairs)))
        pattern = self._all if drawn is None else self._pattern(row, other)
        ones = q.new_ones(pattern.col.numel())
        of_hubs = soft_codes(rows_of(logits, self._hubs), self.shape)
        table = of_hubs.mT @ (SparseMatrix(pattern, ones) @ q) / count
        return (table + table.mT) / 2

    @cached_property
    def _all(self) -> Pattern:
        return self._pattern(self._row, self._other)

    def _sample(self) -> Tensor | None:
        """Links in ascending order, (runs, count); None if all are used."""
        count = self._row.size(-1)
        return None if count <= LINKS_AT_ONCE else self._draws.ascending_integers(count, LINKS_AT_ONCE)

    def _pattern(self, row: Tensor, col: Tensor) -> Pattern:
        return Pattern.from_rows(row.flatten(), col.flatten(), (len(self._row) * self._most, self._nodes))
