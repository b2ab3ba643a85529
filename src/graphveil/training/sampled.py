"""Training on samples of a graph: mini-batches of examples with sampled neighbourhoods, and exact embeddings by layers.

A batch is some examples, their nodes, and the sampled neighbours that the layers need. Batch number r is a function of
the seed and of r alone, so that a resumed run continues with the same batches. While the trainer works on a batch, a
thread makes the next one.

Only the nodes of a batch need their features, so these may be mapped from a file. What does not depend on the batch is
linear in nodes and links: neighbours as integers, and in evaluation one layer's output for all nodes.

Several processes may train together: each makes a batch of the examples in its partition of the graph, and computes its
share of exact embeddings.

GCN's weights of sampled links are scaled by how many of the neighbours they stand for, so that sums over neighbours are
right in expectation; means and attention are over the sampled neighbours. The smoothing of an encoder would need
neighbours of many hops, and is applied in exact embeddings only.
"""

import contextvars
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor, nn

from graphveil.data.partition import partition_of_nodes
from graphveil.data.sampler import NeighborSampler, Neighbours, link_codes
from graphveil.models.codes import CodeEncoder
from graphveil.models.layered import Block, Layered, through_layers
from graphveil.models.layers import Features
from graphveil.models.sparse import Pattern, SparseMatrix
from graphveil.processes import ALONE, Processes
from graphveil.randomness import generator, stream
from graphveil.training.inputs import FeatureRows
from graphveil.training.targets import Examples, LearnedTarget, ListedExamples

ROWS_AT_ONCE, ENTRIES_AT_ONCE = 2**16, 2**22
"""The largest blocks in which exact embeddings are computed: rows of features, and links with self-loops."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples with what an encoder needs for them.

    Args:
        x: The features of all nodes of the batch.
        blocks: The sampled neighbours for each layer.
        degree: The number of links of each node of the examples plus one, as far as they are used, (nodes,).
        examples: The examples of each target; their indices are rows of what `encode` returns.
        shares: How much of the examples of all processes these are, for each target.
    """

    x: Features
    blocks: Sequence[Block]
    degree: Tensor
    examples: Sequence[Examples]
    shares: Sequence[float]

    def encode(self, encoder: nn.Module) -> Tensor:
        """Return the encoder's output for the nodes of the examples."""
        inner, coded = _layers_of(encoder)
        z = through_layers(inner, self.x, self.blocks)
        return z if coded is None else coded.to_logits(z, self.degree)


class SampledGraph:
    """A graph that encoders are trained on by mini-batches.

    Args:
        neighbours: Who sends messages to whom.
        features: The features.
        batch_size: The number of examples of a target in a batch.
        fanout: How many neighbours of a node are sampled for each layer.
        device: The device of the encoder.
        processes: The processes that train on this graph together.
    """

    def __init__(
        self,
        neighbours: Neighbours,
        features: FeatureRows,
        batch_size: int,
        fanout: int,
        device: torch.device,
        processes: Processes = ALONE,
    ) -> None:
        self.neighbours, self.features, self.device, self.processes = neighbours, features, device, processes
        self.batch_size, self.fanout = batch_size, fanout
        self.degree = neighbours.degree.float() + 1
        self._scale = self.degree.rsqrt()

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.neighbours.num_nodes

    def embed(self, encoder: nn.Module) -> Tensor:
        """Return the encoder's output for every node from all neighbours, without gradients and without dropout.

        One layer is computed for all nodes before the next, in blocks, so that no node is computed twice.
        """
        inner, coded = _layers_of(encoder)
        encoder.eval()
        with torch.no_grad():
            z = self._smoothed(self._through_layers(inner), inner)
            if coded is not None:
                z = coded.to_logits(z, self.degree.to(self.device))
        encoder.train()
        return z

    def _through_layers(self, encoder: Layered) -> Tensor:
        h: Tensor | None = None
        for layer in range(encoder.depth):
            projected = self._joined(partial(self._projected, encoder, layer, h), self._rows())
            h = self._joined(partial(self._aggregated, encoder, layer, projected), self._ranges())
        assert h is not None
        return h

    def _smoothed(self, start: Tensor, encoder: Layered) -> Tensor:
        def smoothed(z: Tensor, rows: slice) -> Tensor:
            return torch.lerp(self.block(rows).normalized @ z, start[rows], encoder.restart)

        z = start
        for _ in range(encoder.smoothing):
            z = self._joined(partial(smoothed, z), self._ranges())
        return z

    @cached_property
    def partition(self) -> Tensor | None:
        """The process that each node belongs to, (num_nodes,); None if any process may work on any node."""
        return None if self.processes.size == 1 else partition_of_nodes(self.neighbours, self.processes)

    def batches(
        self,
        encoder: nn.Module,
        draw: Callable[[int], Sequence[Examples]],
        seed: int,
        rounds: int,
        edge_dropout: float = 0.0,
    ) -> "Batches":
        """Return the mini-batches of a training; see `Batches`."""
        return Batches(self, draw, _layers_of(encoder)[0].depth, seed, rounds, edge_dropout)

    def _projected(self, encoder: Layered, layer: int, h: Tensor | None, rows: slice) -> Tensor:
        return encoder.project(layer, self.features[rows].to(self.device) if h is None else h[rows])

    def _aggregated(self, encoder: Layered, layer: int, projected: Tensor, rows: slice) -> Tensor:
        return encoder.aggregate(layer, projected, self.block(rows))

    def _joined(self, compute: Callable[[slice], Tensor], ranges: Iterator[slice]) -> Tensor:
        """Rows of all nodes as one tensor, without holding all parts beside it. Each process computes some ranges."""
        every = list(ranges)
        alone = len(every) < self.processes.size
        own = every if alone else every[self.processes.rank :: self.processes.size]
        joined: Tensor | None = None
        for rows in own:
            part = compute(rows)
            if joined is None:
                joined = part.new_zeros(self.num_nodes, *part.shape[1:])
            joined[rows] = part
        assert joined is not None
        if not alone:
            self.processes.add([joined])  # of each row, all summands but one are 0
        return joined

    def _rows(self) -> Iterator[slice]:
        """Ranges of at most `ROWS_AT_ONCE` nodes."""
        starts = range(0, self.num_nodes, ROWS_AT_ONCE)
        return (slice(start, min(start + ROWS_AT_ONCE, self.num_nodes)) for start in starts)

    def _ranges(self) -> Iterator[slice]:
        """Ranges of nodes with at most `ENTRIES_AT_ONCE` entries, or a single node."""
        entries = self.neighbours.start + torch.arange(self.num_nodes + 1)
        first = 0
        while first < self.num_nodes:
            last = int(torch.searchsorted(entries, entries[first] + ENTRIES_AT_ONCE, right=True)) - 1
            last = max(last, first + 1)
            yield slice(first, last)
            first = last

    def block(self, rows: slice) -> Block:
        """Return a range of nodes with all their neighbours, among all nodes."""
        graph, count = self.neighbours, rows.stop - rows.start
        start = graph.start[rows.start : rows.stop + 1]
        own = torch.arange(rows.start, rows.stop)
        receiver = torch.repeat_interleave(torch.arange(count), start.diff())
        sender = graph.node[int(start[0]) : int(start[-1])].long()
        values = self._scale[receiver + rows.start] * self._scale[sender]
        shape = (count, self.num_nodes)
        return _block(receiver, sender, values, own, self._scale[own].square(), shape, self.device, rows.start)


class Batches:
    """The mini-batches of a training.

    Args:
        graph: The graph.
        draw: Returns the examples of a round; their indices are nodes of the graph.
        depth: The number of layers of the encoder.
        seed: The seed of the run.
        rounds: The number of rounds; one batch each.
        edge_dropout: The share of links that are dropped, in both directions, in a round.
    """

    def __init__(
        self,
        graph: SampledGraph,
        draw: Callable[[int], Sequence[Examples]],
        depth: int,
        seed: int,
        rounds: int,
        edge_dropout: float = 0.0,
    ) -> None:
        self.graph, self._draw, self._seed, self._rounds = graph, draw, seed, rounds
        self._partition = graph.partition  # all processes agree on it here, and not in their threads
        self._edge_dropout = edge_dropout
        own_seed = seed if graph.processes.is_first else stream(seed, "process", graph.processes.rank)
        self._sampler = NeighborSampler(graph.neighbours, [graph.fanout] * depth, own_seed)
        self._thread: ThreadPoolExecutor | None = None
        self._next: tuple[int, Future[Batch]] | None = None

    def at(self, number: int) -> Batch:
        """Return the batch of a round, and begin with that of the next round."""
        if self._next is None or self._next[0] != number:
            self._begin(number)
        assert self._next is not None
        batch = self._next[1].result()
        self._next = None
        if number + 1 < self._rounds:
            self._begin(number + 1)
        return batch

    def close(self) -> None:
        """End the thread, and forget the batch that it has made; `at` starts another one."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
        self._thread = self._next = None

    def _begin(self, number: int) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches")
        in_this_context = contextvars.copy_context().run  # a thread does not inherit which loops are used
        self._next = (number, self._thread.submit(in_this_context, self._make, number))

    def _make(self, number: int) -> Batch:
        graph, device = self.graph, self.graph.device
        examples, shares = zip(*map(self._own, self._draw(number)), strict=True)
        seeds, local = torch.cat([part.index.flatten() for part in examples]).unique(return_inverse=True)
        self._sampler.calls = number
        sampled = self._sampler.sample(seeds)
        counts = sampled.num_sampled_nodes
        kept = self._kept(sampled.node, sampled.row, sampled.col, number)
        degree, share = self._degrees(sampled.node, sampled.col, kept, sum(counts[:-1]))
        scale = degree.rsqrt()
        blocks = []
        for hop in range(len(counts) - 1, 0, -1):
            receivers, senders = sum(counts[:hop]), sum(counts[: hop + 1])
            used = kept[: sum(sampled.num_sampled_edges[:hop])].nonzero().flatten()
            row, col = sampled.row[used], sampled.col[used]
            values = share[col] * scale[col] * scale[row]
            own = torch.arange(receivers)
            shape = (receivers, senders)
            blocks.append(_block(col, row, values, own, scale[:receivers].square(), shape, device))
        parts = local.split([part.index.numel() for part in examples])
        return Batch(
            x=graph.features[sampled.node].to(device),
            blocks=blocks,
            degree=degree[: len(seeds)].to(device),
            examples=[
                ListedExamples(index.view(part.index.shape), part.y).to(device)
                for index, part in zip(parts, examples, strict=True)
            ],
            shares=shares,
        )

    def _own(self, examples: Examples) -> tuple[Examples, float]:
        """The examples that this process works on, and how much of all examples these are.

        Nodes and links belong to the process of their partition, a link between two partitions to that of one end.
        """
        processes, count = self.graph.processes, examples.y.size(-1)
        if processes.size == 1:
            return examples, 1.0
        if self._partition is None:
            places, share = processes.share(count)
        else:
            of_ends, place = self._partition[examples.index].view(-1, count), torch.arange(count)
            places, share = processes.weighted(
                (of_ends[place % len(of_ends), place] == processes.rank).nonzero().flatten(), count
            )
        return ListedExamples(examples.index[..., places], examples.y[places]), share

    def _kept(self, node: Tensor, row: Tensor, col: Tensor, number: int) -> Tensor:
        """Which of the sampled links are used, (links,)."""
        if self._edge_dropout == 0:
            return torch.ones_like(row, dtype=torch.bool)
        return link_coins(link_codes(node[row], node[col]), 1 - self._edge_dropout, self._seed, number)

    def _degrees(self, node: Tensor, col: Tensor, kept: Tensor, receivers: int) -> tuple[Tensor, Tensor]:
        """How many used links each node has, plus one, and how many neighbours a sampled one stands for.

        The links of the last hop's nodes are not sampled: of these, the expected share is used.
        """
        links = self.graph.degree[node] - 1
        sampled = torch.bincount(col, minlength=receivers).clamp(min=1)
        share = links[:receivers] / sampled
        used = torch.bincount(col, weights=kept.float(), minlength=receivers).float() * share
        return torch.cat([used, links[receivers:] * (1 - self._edge_dropout)]) + 1, share


class Shuffled:
    """Places of examples in a random order, batch after batch; each epoch has another order.

    An epoch ends when fewer than a batch are left; those are in the next one. If there is no more than one batch, every
    batch has all examples.

    Args:
        count: The number of examples.
        size: The size of a batch.
        seed: The seed of the run.
        name: The name of the stream.
    """

    def __init__(self, count: int, size: int, seed: int, name: str) -> None:
        self._count, self._size, self._seed, self._name = count, min(size, count), seed, name
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int32)

    def at(self, number: int) -> Tensor:
        """Return the places of a batch, ascending."""
        if self._size == self._count:
            return torch.arange(self._count)
        epoch, place = divmod(number, self._count // self._size)
        if epoch != self._epoch:
            self._epoch = epoch
            random = generator(self._seed, "batches", self._name, epoch)
            kind = torch.int32 if self._count < 2**31 else torch.int64
            self._order = torch.randperm(self._count, generator=random, dtype=kind)
        return self._order[place * self._size : (place + 1) * self._size].sort().values.long()


def draws_of(targets: Sequence[LearnedTarget], graph: SampledGraph, seed: int) -> Callable[[int], list[Examples]]:
    """Return a function that draws a batch of examples of every target for a round."""
    shuffled = [
        Shuffled(target.num_examples, graph.batch_size, seed, f"target-{number}")
        for number, target in enumerate(targets)
    ]

    def draw(number: int) -> list[Examples]:
        return [
            target.batch(places.at(number), generator(seed, "examples", place, number))
            for place, (target, places) in enumerate(zip(targets, shuffled, strict=True))
        ]

    return draw


def link_coins(codes: Tensor, probability: float, seed: int, number: int) -> Tensor:
    """Return True with a probability for each link of a round, (links,): a hash, the same wherever a link occurs.

    Args:
        codes: The numbers of the links, (links,) int64.
        probability: The probability.
        seed: The seed of the run.
        number: The round.
    """
    x = codes ^ stream(seed, "links", number)
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):  # SplitMix64 as signed numbers
        x = (x ^ (x >> shift) & (1 << 64 - shift) - 1) * factor
    return (x & (1 << 32) - 1).double() * 2.0**-32 < probability


def _layers_of(encoder: nn.Module) -> tuple[Layered, CodeEncoder | None]:
    """The layers of an encoder, and its map to codes if it has one."""
    coded = encoder if isinstance(encoder, CodeEncoder) else None
    inner = encoder if coded is None else coded.encoder
    assert isinstance(inner, Layered)
    return inner, coded


def _block(
    receiver: Tensor,
    sender: Tensor,
    values: Tensor,
    own: Tensor,
    own_values: Tensor,
    shape: tuple[int, int],
    device: torch.device,
    first: int = 0,
) -> Block:
    """A block from links, ascending by receiver, and the self-loops of the receivers."""
    row = torch.cat([receiver, torch.arange(shape[0])])
    row, order = row.sort(stable=True)
    pattern = Pattern.from_rows(row, torch.cat([sender, own])[order], shape)
    matrix = SparseMatrix(pattern, torch.cat([values, own_values])[order]).to(device)
    return Block(matrix, first)
