"""Sample the neighbourhood of some nodes, without a compiled extension.

`NeighborSampler` is a PyG `BaseSampler`: it works in PyG's `NodeLoader` and `LinkLoader`, whose own sampler needs
pyg-lib or torch-sparse. Time and memory are linear in the sample, besides one number for each node.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import get_worker_info
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    NegativeSampling,
    NodeSamplerInput,
    SamplerOutput,
)

from graphveil.data.graph import encode_pairs
from graphveil.randomness import generator


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The neighbours of every node in CSR format, without self-loops.

    Args:
        start: (num_nodes + 1,) int64, where the neighbours of each node begin.
        node: (2 * links,) int32, the neighbours, ascending for each node.
    """

    start: Tensor
    node: Tensor

    @classmethod
    def of(cls, pairs: Tensor, num_nodes: int) -> "Neighbours":
        """Build from undirected links, (2, links), each once."""
        kind = torch.int32 if num_nodes < 2**31 else torch.int64
        u, v = pairs.to(kind)
        ends, others = torch.cat([v, u]), torch.cat([u, v])
        # two stable sorts of one narrow key each: half the memory of one sort by both
        order = others.sort(stable=True).indices
        ends, order_of_ends = ends[order].sort(stable=True)
        start = torch.searchsorted(ends, torch.arange(num_nodes + 1, dtype=kind))
        return cls(start, others[order][order_of_ends])

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return len(self.start) - 1

    @property
    def degree(self) -> Tensor:
        """The number of neighbours of each node, (num_nodes,)."""
        return self.start.diff()


class NeighborSampler(BaseSampler):  # type: ignore[misc] # PyG has no types
    """Samples neighbours of nodes, neighbours of these and so on, each without replacement and at most once.

    Call number n draws from stream n of the seed, whatever was drawn before. In a worker of a loader, which starts as a
    copy in every epoch, the stream also depends on the worker's seed, which torch draws for each epoch.

    Args:
        neighbours: The graph.
        num_neighbors: How many neighbours are sampled of each node in each hop; of fewer, all.
        seed: The seed.
        calls: The number of the next call.
    """

    def __init__(self, neighbours: Neighbours, num_neighbors: Sequence[int], seed: int = 0, calls: int = 0) -> None:
        self.neighbours, self.num_neighbors, self.seed, self.calls = neighbours, num_neighbors, seed, calls
        self._place = torch.full((neighbours.num_nodes,), -1, dtype=torch.int32)

    def sample_from_nodes(self, inputs: NodeSamplerInput, **_: object) -> SamplerOutput:
        """Return the nodes, the given ones first, and the sampled links (row to col, by receiver), hop by hop."""
        sampled = self.sample(inputs.node)
        sampled.metadata = (inputs.input_id, inputs.time)
        return sampled

    def sample_from_edges(
        self, inputs: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None
    ) -> SamplerOutput:
        """Return the neighbourhood of both ends of links; the links themselves are in `metadata`, as PyG expects."""
        if neg_sampling is not None:
            raise ValueError("NeighborSampler draws no negative links: give them with edge_label instead")
        nodes, local = torch.stack([inputs.row, inputs.col]).unique(return_inverse=True)
        sampled = self.sample(nodes)
        sampled.metadata = (inputs.input_id, local, inputs.label, inputs.time)
        return sampled

    def sample(self, seeds: Tensor) -> SamplerOutput:
        """Return the sampled neighbourhood of different nodes."""
        worker = get_worker_info()
        of_worker = () if worker is None else ("worker", worker.seed)
        random = generator(self.seed, "neighbours", self.calls, *of_worker)
        self.calls += 1
        place = self._place
        place[seeds] = torch.arange(len(seeds), dtype=torch.int32)
        known, rows, cols, frontier, count = [seeds], [], [], seeds, len(seeds)
        for width in self.num_neighbors:
            receiver, sender = self._hop(frontier, width, random)
            new = sender[place[sender] < 0].unique()
            place[new] = torch.arange(count, count + len(new), dtype=torch.int32)
            rows.append(place[sender].long())
            cols.append(receiver + count - len(frontier))
            known.append(new)
            frontier, count = new, count + len(new)
        nodes = torch.cat(known)
        place[nodes] = -1
        return SamplerOutput(
            node=nodes,
            row=torch.cat(rows),
            col=torch.cat(cols),
            edge=None,
            num_sampled_nodes=[len(part) for part in known],
            num_sampled_edges=[len(part) for part in rows],
        )

    def _hop(self, nodes: Tensor, width: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
        """Sample neighbours of nodes: which of the nodes receives, ascending, and which node sends, (sampled,) each."""
        graph = self.neighbours
        start = graph.start[nodes]
        degree = graph.start[nodes + 1] - start
        count = degree.clamp(max=width)
        receiver = torch.repeat_interleave(torch.arange(len(nodes)), count)
        number = torch.arange(len(receiver)) - (count.cumsum(0) - count)[receiver]
        many = degree > width
        drawn = draw_distinct(degree[many], width, random)
        number[many[receiver]] = drawn.flatten()
        return receiver, graph.node[start[receiver] + number].long()


def draw_distinct(populations: Tensor, count: int, random: torch.Generator) -> Tensor:
    """Return for each population of size n a uniform sample of 0, ..., n - 1 without replacement, (rows, count).

    Floyd's method: for j = n - count, ..., n - 1 draw t from 0 to j; take t or, if it is taken already, j.

    Args:
        populations: (rows,), each of at least `count`.
        count: The size of a sample.
        random: The random numbers.
    """
    drawn = populations.new_empty(len(populations), count)
    for step in range(count):
        last = populations - count + step
        uniform = torch.rand(len(populations), generator=random, dtype=torch.float64)
        candidate = (uniform * (last + 1)).long()
        taken = (drawn[:, :step] == candidate[:, None]).any(dim=1)
        drawn[:, step] = last.where(taken, candidate)
    return drawn


def link_codes(u: Tensor, v: Tensor) -> Tensor:
    """Return one number for each link, the same in both directions, (...) int64."""
    return encode_pairs(torch.stack([torch.minimum(u, v), torch.maximum(u, v)]))
