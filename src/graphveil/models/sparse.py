"""Products with a sparse matrix, forward and backward, in time linear in its entries.

torch's backward of a CSR product transposes the matrix in every step. Here the order of the transpose is cached, or not
needed if the matrix is symmetric, so that backward is one more product. Edge-weighted products, which attention needs,
are differentiable in the weights too, without an array of (edges, channels), except in deterministic mode on a GPU.

On a CPU in float32, and on a GPU in deterministic mode, the product is torch's `embedding_bag`, a sum of weighted rows,
which was two to four times as fast as MKL's CSR product. Otherwise it is the CSR product.

A batch of runs is one block-diagonal matrix: dense arguments and results may be (runs, n, channels).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphveil import kernels
from graphveil.randomness import Noise, ones_of


@dataclass(frozen=True, eq=False)
class Pattern:
    """The positions of the entries of a matrix in CSR format, as int32 if they fit, else int64.

    Args:
        crow: (rows + 1,), where each row begins.
        col: (entries,), the column of each entry.
        shape: (rows, columns).
        symmetric: Whether the matrix is symmetric.
    """

    crow: Tensor
    col: Tensor
    shape: tuple[int, int]
    symmetric: bool = False

    @classmethod
    def from_rows(cls, row: Tensor, col: Tensor, shape: tuple[int, int], symmetric: bool = False) -> "Pattern":
        """Build from the rows and columns of all entries, (entries,) each, with ascending rows."""
        kind = torch.int32 if row.numel() < 2**31 else torch.int64
        return cls(_starts(row.to(kind), shape[0]), col.to(kind), shape, symmetric)

    @cached_property
    def row(self) -> Tensor:
        """The row of each entry, (entries,)."""
        rows = torch.arange(self.shape[0], dtype=self.col.dtype, device=self.col.device)
        return torch.repeat_interleave(rows, self.crow.diff(), output_size=self.col.numel())

    @cached_property
    def off_diagonal(self) -> Tensor:
        """The columns and the rows of the entries that are not on the diagonal, (2, entries) int64."""
        col, row = self.col.long(), self.row.long()
        return torch.stack([col, row])[:, col != row]

    @cached_property
    def longest_row(self) -> int:
        """The number of entries of the longest row, on a CPU."""
        return int(np.diff(self.crow.numpy()).max(initial=0))

    @cached_property
    def t_order(self) -> Tensor:
        """The positions of the transpose's entries in this pattern, (entries,)."""
        if kernels.usable(self.col):
            return self._of_transpose(self._column_starts, writes_order=True)
        # entries are sorted by row, so a stable sort by column gives the order of the transpose
        return torch.argsort(self.col, stable=True).to(self.col.dtype)

    @cached_property
    def transposed(self) -> "Pattern":
        """The pattern of the transpose."""
        if self.symmetric:
            return self
        if kernels.usable(self.col):
            crow = self._column_starts
            return Pattern(crow, self._of_transpose(crow, writes_order=False), self.shape[::-1])
        row, col = self.col.index_select(0, self.t_order), self.row.index_select(0, self.t_order)
        return Pattern.from_rows(row, col, self.shape[::-1])

    @cached_property
    def _column_starts(self) -> Tensor:
        """Where each column begins in the transpose, (columns + 1,), by counting the entries of each column."""
        counts = self.crow.new_zeros(self.shape[1] + 1)
        arrays = self.col.contiguous().numpy(), counts.numpy()
        kernels.compiling.over(self.shape[1], self.col.numel(), kernels.sparse.count_entries, *arrays)
        return counts.cumsum(0, dtype=counts.dtype)

    def _of_transpose(self, starts: Tensor, writes_order: bool) -> Tensor:
        out = torch.empty_like(self.col)
        given = (x.contiguous().numpy() for x in (self.crow, self.col, starts))
        kernels.compiling.over_rows(starts.numpy(), kernels.sparse.transpose, *given, writes_order, out.numpy())
        return out

    @cached_property
    def blocked_transpose(self) -> "tuple[Tensor, Pattern]":
        """The order and the pattern of [A_1' ; A_2' ; ...], the stacked transposes of blocks of rows.

        The product with the transpose is the sum of the products with the blocks, each of which uses so few rows that
        they stay in the cache of a core: two to three times as fast on Pubmed. If rows have few entries, there is one
        block.
        """
        rows, columns = self.shape
        blocks = -(-rows // _BLOCK_ROWS)
        if self.col.is_cuda or blocks == 1 or self.col.numel() < 16 * blocks * columns:
            return self.t_order, self.transposed
        place = self.row.long() // _BLOCK_ROWS * columns + self.col
        order = torch.argsort(place, stable=True)
        return order.to(self.col.dtype), Pattern.from_rows(place[order], self.row[order], (blocks * columns, rows))


_BLOCK_ROWS = 2048  # times 64 channels of 4 bytes: half a MiB


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A sparse matrix.

    Args:
        pattern: The positions of its entries.
        values: (entries,); those of a symmetric pattern are symmetric.
    """

    pattern: Pattern
    values: Tensor

    @classmethod
    def from_csr(cls, matrix: Tensor) -> "SparseMatrix":
        """Build from a torch CSR tensor."""
        crow, col = matrix.crow_indices(), matrix.col_indices()
        if col.numel() < 2**31:
            crow, col = crow.int(), col.int()
        rows, columns = matrix.shape
        return cls(Pattern(crow, col, (rows, columns)), matrix.values())

    def __matmul__(self, dense: Tensor) -> Tensor:
        """Return the product with a matrix (..., columns, n), differentiable in it."""
        flat = dense.reshape(self.pattern.shape[1], -1) if dense.dim() > 2 else dense
        product: Tensor = _Multiply.apply(self, flat)  # type: ignore[no-untyped-call]
        return product.view(*dense.shape[:-2], -1, dense.size(-1))

    def with_values(self, values: Tensor) -> "SparseMatrix":
        """Return a matrix of the same pattern with other values."""
        return SparseMatrix(self.pattern, values)

    @cached_property
    def blocked_values(self) -> Tensor:
        """The values in the order of `Pattern.blocked_transpose`, (entries,)."""
        return self.values.index_select(0, self.pattern.blocked_transpose[0])

    def dropped(self, noise: Noise, probability: float) -> "SparseMatrix":
        """Return the matrix with each entry dropped with a probability, and the others scaled up."""
        coins, scale = noise.coins(1 - probability, self.values.numel() // noise.runs), 1 / (1 - probability)
        values = (self.values * coins.view(-1)).mul_(scale)
        if noise.runs > 1 or not kernels.usable(values):
            return self.with_values(values)
        first, second = noise.keys()[0]
        return _Dropped(self.pattern, values, self, (first, second, np.uint32(ones_of(1 - probability))), scale)

    def row_normalized(self, p: int = 1) -> "SparseMatrix":
        """Return the matrix with each row divided by its p-norm; empty rows stay empty."""
        norm = _segment_sum(self.values.double().abs() ** p, self.pattern.crow) ** (1 / p)
        smallest = torch.finfo(self.values.dtype).tiny
        scaled = self.values / norm.clamp(min=smallest).index_select(0, self.pattern.row)
        return self.with_values(scaled.to(self.values.dtype))

    def repeated(self, times: int) -> "SparseMatrix":
        """Return the block-diagonal matrix of `times` copies."""
        if times == 1:
            return self
        rows, columns = self.pattern.shape
        copy = torch.arange(times, device=self.values.device)[:, None]
        row, col = (self.pattern.row + copy * rows).flatten(), (self.pattern.col + copy * columns).flatten()
        return SparseMatrix(Pattern.from_rows(row, col, (times * rows, times * columns)), self.values.repeat(times))

    def to_dense(self) -> Tensor:
        """Return the dense matrix, for encoders that need one."""
        return _csr(self.pattern, self.values).to_dense()

    def to(self, device: torch.device) -> "SparseMatrix":
        """Return the matrix on another device."""
        pattern = replace(self.pattern, crow=self.pattern.crow.to(device), col=self.pattern.col.to(device))
        return SparseMatrix(pattern, self.values.to(device))


@dataclass(frozen=True, eq=False)
class _Dropped(SparseMatrix):
    """A matrix with dropped entries, which knows them in the order of its transpose without a gather.

    Args:
        whole: The matrix with all entries.
        coin: The arguments of `graphveil.kernels.noise.coin` after the position.
        scale: The factor of the entries that are kept.
    """

    whole: SparseMatrix
    coin: tuple[np.uint32, np.uint32, np.uint32]
    scale: float

    @cached_property
    def blocked_values(self) -> Tensor:
        order, _ = self.pattern.blocked_transpose
        values = self.whole.blocked_values
        out = torch.empty_like(values)
        arrays = values.numpy(), order.numpy(), *self.coin, np.float32(self.scale), out.numpy()
        kernels.compiling.over(values.numel(), values.numel(), kernels.elements.kept_values, *arrays)
        return out


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The links that messages pass along, with self-loops, sorted by receiving node.

    Args:
        normalized: D^-1/2 (A + I) D^-1/2 (Kipf and Welling, 2017).
        present: (entries,), which entries of the pattern are used; None means all.
    """

    normalized: SparseMatrix
    present: Tensor | None = None

    @classmethod
    def from_edge_index(cls, edge_index: Tensor, num_nodes: int) -> "Adjacency":
        """Build from PyG's `edge_index`, (2, edges) in both directions without duplicates."""
        loops = torch.arange(num_nodes, device=edge_index.device).expand(2, -1)
        row, col = torch.cat([edge_index, loops], dim=1)
        codes = (row * num_nodes + col).sort(stable=True).values
        row, col = codes // num_nodes, codes % num_nodes
        pattern = Pattern.from_rows(row, col, (num_nodes, num_nodes), symmetric=True)
        scale = pattern.crow.diff().float().rsqrt()
        values = scale.index_select(0, row).mul_(scale.index_select(0, col))
        return cls(SparseMatrix(pattern, values))

    @property
    def edge_index(self) -> Tensor:
        """All links without self-loops, (2, edges), for encoders with PyG's layers."""
        return self.normalized.pattern.off_diagonal

    @cached_property
    def link(self) -> Tensor:
        """The link of each entry, (entries,): its number from 1 by (smaller, larger end), or 0 for a self-loop."""
        pattern = self.normalized.pattern
        row, col = pattern.row.long(), pattern.col.long()
        pairs = torch.minimum(row, col) * pattern.shape[1] + torch.maximum(row, col)
        link: Tensor = torch.unique(pairs.where(row != col, -1), return_inverse=True)[1]
        return link

    @property
    def degree(self) -> Tensor:
        """The number of links of each node plus one for its self-loop, (nodes,) float32."""
        crow = self.normalized.pattern.crow
        return crow.diff().float() if self.present is None else _segment_sum(self.present.float(), crow)

    def thinned(self, kept: Tensor) -> "Adjacency":
        """Return the adjacency with some of the links, normalised again; self-loops are kept.

        Args:
            kept: (links,), 1 or 0, in the order of `link`.
        """
        pattern = self.normalized.pattern
        present = torch.cat([kept.new_ones(1), kept]).index_select(0, self.link).float()
        scale = _segment_sum(present, pattern.crow).rsqrt()
        values = present * scale.index_select(0, pattern.row) * scale.index_select(0, pattern.col)
        return Adjacency(self.normalized.with_values(values), present > 0)


def attention_shares(
    sender: Tensor, receiver: Tensor, pattern: Pattern, slope: float = 0.2, present: Tensor | None = None
) -> Tensor:
    """Return softmax over j of leaky_relu(receiver_i + sender_j), (entries, heads).

    Args:
        sender: (nodes, heads).
        receiver: (nodes, heads).
        pattern: The positions of the entries (i, j).
        slope: The slope of leaky_relu below 0.
        present: (entries,), which entries are used, at least one in each row; None means all.
    """
    usable = kernels.usable(sender, receiver)
    function = _AttentionSharesByRow if usable else _AttentionShares
    shares: Tensor = function.apply(sender, receiver, pattern, slope, present)  # type: ignore[no-untyped-call]
    return shares


def weighted_product(weights: Tensor, pattern: Pattern, dense: Tensor) -> Tensor:
    """Return out[i, h] = sum over entries (i, j) of weights[ij, h] * dense[j, h], differentiable in both.

    Args:
        weights: (entries, heads).
        pattern: The positions of the entries (i, j).
        dense: (..., columns, heads, channels).

    Returns:
        (..., rows, heads, channels).
    """
    heads, channels = dense.shape[-2:]
    flat = dense.reshape(-1, heads, channels)
    product: Tensor = _WeightedProduct.apply(weights, pattern, flat)  # type: ignore[no-untyped-call]
    return product.view(*dense.shape[:-3], -1, heads, channels)


def sampled_product(left: Tensor, pattern: Pattern, right: Tensor) -> Tensor:
    """Return <left_i, right_j> at each entry (i, j), (entries,), differentiable in both.

    Args:
        left: (rows, channels).
        pattern: The positions of the entries (i, j).
        right: (columns, channels).
    """
    products: Tensor = _SampledProduct.apply(left, pattern, right)  # type: ignore[no-untyped-call]
    return products


def _starts(ascending: Tensor, count: int) -> Tensor:
    """Where each of 0, 1, ..., `count` begins in an ascending vector."""
    if kernels.usable(ascending):
        starts = ascending.new_empty(count + 1)
        kernels.sparse.starts(ascending.contiguous().numpy(), starts.numpy())
        return starts
    numbers = torch.arange(count + 1, dtype=ascending.dtype, device=ascending.device)
    return torch.searchsorted(ascending, numbers, out_int32=ascending.dtype == torch.int32)


def _csr(pattern: Pattern, values: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(pattern.crow, pattern.col, values, pattern.shape, check_invariants=False)


def csr_product(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    """(rows, columns) @ (columns, n)."""
    if dense.is_cuda:
        in_bags = torch.are_deterministic_algorithms_enabled()  # cuSPARSE is not deterministic, here and below
    else:
        in_bags = dense.dtype == torch.float32 and pattern.col.numel() > 0
    if not in_bags:
        return _csr(pattern, values) @ dense
    mode_sum = 0
    bags: Tensor = torch.embedding_bag(
        dense.contiguous(), pattern.col, pattern.crow, False, mode_sum, False, values, include_last_offset=True
    )[0]
    return bags


def csr_sampled(left: Tensor, pattern: Pattern, right: Tensor) -> Tensor:
    if left.is_cuda and torch.are_deterministic_algorithms_enabled():
        return (left.index_select(0, pattern.row) * right.index_select(0, pattern.col)).sum(dim=-1)
    zeros = _csr(pattern, left.new_zeros(pattern.col.numel()))
    products: Tensor = torch.sparse.sampled_addmm(zeros, left.contiguous(), right.contiguous().t(), beta=0.0).values()
    return products


def _transposed_values(pattern: Pattern, values: Tensor) -> Tensor:
    return values.index_select(0, pattern.t_order)


def _segment_sum(values: Tensor, crow: Tensor) -> Tensor:
    return torch.segment_reduce(values, "sum", offsets=crow, unsafe=True)


class _Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, dense: Tensor) -> Tensor:
        ctx.matrix = matrix
        return csr_product(matrix.pattern, matrix.values, dense)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        matrix: SparseMatrix = ctx.matrix
        pattern = matrix.pattern
        if pattern.symmetric:
            return None, csr_product(pattern, matrix.values, gradient)
        product = csr_product(pattern.blocked_transpose[1], matrix.blocked_values, gradient)
        if len(product) > pattern.shape[1]:
            product = product.view(-1, pattern.shape[1], product.size(1)).sum(dim=0)
        return None, product


class _AttentionShares(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, sender: Tensor, receiver: Tensor, pattern: Pattern, slope: float, present: Tensor | None
    ) -> Tensor:
        raw = receiver.index_select(0, pattern.row).add_(sender.index_select(0, pattern.col))
        negative = raw < 0
        scores = torch.where(negative, raw * slope, raw)
        if present is not None:
            scores = scores.where(present[:, None], -torch.inf)
        highest = torch.segment_reduce(scores, "max", offsets=pattern.crow, unsafe=True)
        share = scores.sub_(highest.index_select(0, pattern.row)).exp_()
        share /= _segment_sum(share, pattern.crow).index_select(0, pattern.row)
        ctx.pattern, ctx.slope = pattern, slope
        ctx.save_for_backward(share, negative)
        return share

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        share, negative = ctx.saved_tensors
        pattern = ctx.pattern
        weighted = share * gradient
        total = _segment_sum(weighted, pattern.crow)
        d_scores = weighted - share * total.index_select(0, pattern.row)
        d_scores = torch.where(negative, d_scores * ctx.slope, d_scores)
        d_sender = _segment_sum(_transposed_values(pattern, d_scores), pattern.transposed.crow)
        return d_sender, _segment_sum(d_scores, pattern.crow), None, None, None


class _AttentionSharesByRow(torch.autograd.Function):
    """The same as `_AttentionShares`, in one pass over rows."""

    @staticmethod
    def forward(
        ctx: Any, sender: Tensor, receiver: Tensor, pattern: Pattern, slope: float, present: Tensor | None
    ) -> Tensor:
        sender, receiver = sender.contiguous(), receiver.contiguous()
        share = sender.new_empty(pattern.col.numel(), sender.size(1))
        crow, col = pattern.crow.numpy(), pattern.col.numpy()
        is_present = np.ones(1, np.bool_) if present is None else present.contiguous().numpy()
        given = crow, col, pattern.longest_row, is_present, sender.numpy(), receiver.numpy(), np.float32(slope)
        kernels.compiling.over_rows(crow, kernels.attention.shares, *given, share.numpy())
        ctx.pattern, ctx.slope = pattern, slope
        ctx.save_for_backward(sender, receiver, share)
        return share

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        sender, receiver, share = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        d_scores, d_sender, d_receiver = torch.empty_like(share), torch.empty_like(sender), torch.empty_like(receiver)
        crow, col = pattern.crow.numpy(), pattern.col.numpy()
        given = crow, col, sender.numpy(), receiver.numpy(), np.float32(ctx.slope), share.numpy()
        made = gradient.contiguous().numpy(), d_scores.numpy(), d_receiver.numpy()
        kernels.compiling.over_rows(crow, kernels.attention.slopes, *given, *made)
        t_crow, order = pattern.transposed.crow.numpy(), pattern.t_order.numpy()
        kernels.compiling.over_rows(
            t_crow, kernels.attention.column_sums, t_crow, order, d_scores.numpy(), d_sender.numpy()
        )
        return d_sender, d_receiver, None, None, None


class _WeightedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, pattern: Pattern, dense: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(weights, dense)
        return _by_head(lambda h: csr_product(pattern, weights[:, h].contiguous(), dense[:, h]), weights.size(1))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor]:
        weights, dense = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        if weights.size(1) == 1 and kernels.usable(weights, dense, gradient):
            return _product_backward(pattern, weights, dense, gradient)
        transposed = _transposed_values(pattern, weights)
        d_dense = _by_head(
            lambda h: csr_product(pattern.transposed, transposed[:, h].contiguous(), gradient[:, h]), weights.size(1)
        )
        d_weights = _by_head(lambda h: csr_sampled(gradient[:, h], pattern, dense[:, h]), weights.size(1))
        return d_weights, None, d_dense


class _SampledProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, pattern: Pattern, right: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(left, right)
        return csr_sampled(left, pattern, right)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor]:
        left, right = ctx.saved_tensors
        pattern = ctx.pattern
        d_right = csr_product(pattern.transposed, _transposed_values(pattern, gradient), left)
        return csr_product(pattern, gradient.contiguous(), right), None, d_right


def _product_backward(
    pattern: Pattern, weights: Tensor, dense: Tensor, gradient: Tensor
) -> tuple[Tensor, None, Tensor]:
    """The gradients of `weighted_product` with one head, in one pass."""
    order, crow, col = pattern.t_order, pattern.transposed.crow.numpy(), pattern.transposed.col.numpy()
    transposed = weights.view(-1).index_select(0, order)
    d_transposed, d_dense = torch.empty_like(transposed), dense.new_empty(dense.shape)
    arrays = transposed, dense.squeeze(1), gradient.squeeze(1), d_transposed, d_dense.squeeze(1)
    given = (x.contiguous().numpy() for x in arrays)
    kernels.compiling.over_rows(crow, kernels.attention.product_backward, crow, col, *given)
    d_weights = torch.empty_like(d_transposed).put_(order.long(), d_transposed)
    return d_weights.view_as(weights), None, d_dense


def _by_head(function: Callable[[int], Tensor], heads: int) -> Tensor:
    parts = [function(head) for head in range(heads)]
    return parts[0].unsqueeze(1) if heads == 1 else torch.stack(parts, dim=1)
