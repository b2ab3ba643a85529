"""Products with a sparse matrix, forward and backward, at the cost of its entries.

torch's own backward of a CSR product transposes the matrix anew in every step. Here the transpose's order is kept, or
is the matrix's own where it is symmetric, so that backward is one more product. Edge-weighted products, which attention
needs, are derived with respect to the weights too, without writing out anything edges x channels, except on a GPU
that must repeat itself bit for bit.

On a CPU in float32 the product is torch's `embedding_bag`, a sum of weighted rows, which was two to four times as fast
as MKL's CSR product, and on a GPU that must repeat itself bit for bit; everywhere else it is the CSR product.

A batch of runs is one block-diagonal matrix: dense arguments may come as (runs, n, channels), and then leave so.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where the entries of a matrix lie, in CSR order: (rows + 1,) and (entries,), with 32 bits where they fit."""

    crow: Tensor
    col: Tensor
    shape: tuple[int, int]
    symmetric: bool = False

    @classmethod
    def from_rows(cls, row: Tensor, col: Tensor, shape: tuple[int, int], symmetric: bool = False) -> "Pattern":
        """Build from the rows and columns of all entries, the rows ascending."""
        kind = torch.int32 if row.numel() < 2**31 else torch.int64
        return cls(_starts(row.to(kind), shape[0]), col.to(kind), shape, symmetric)

    @cached_property
    def row(self) -> Tensor:
        """The row of each entry, (entries,)."""
        rows = torch.arange(self.shape[0], dtype=self.col.dtype, device=self.col.device)
        return torch.repeat_interleave(rows, self.crow.diff(), output_size=self.col.numel())

    @cached_property
    def t_order(self) -> Tensor:
        """Where the transpose's entries lie in this order, (entries,)."""
        # entries come row by row, so a stable order of the columns is the transpose's
        return torch.argsort(self.col, stable=True).to(self.col.dtype)

    @cached_property
    def transposed(self) -> "Pattern":
        """The pattern of the transpose."""
        if self.symmetric:
            return self
        row, col = self.col.index_select(0, self.t_order), self.row.index_select(0, self.t_order)
        return Pattern.from_rows(row, col, self.shape[::-1])

    @cached_property
    def blocked_transpose(self) -> "tuple[Tensor, Pattern]":
        """The order and the pattern of [A_1' ; A_2' ; ...], the transposes of blocks of rows one below the other.

        The transpose's product is then the sum of the blocks' products, each of which reads so few rows that they
        stay in a core's cache: two to three times as fast on Pubmed. Where rows have few entries it is one block.
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
    """A pattern and its values, (entries,); a symmetric pattern has symmetric values here."""

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
        """The product with (..., columns, n), differentiable in `dense`."""
        flat = dense.reshape(self.pattern.shape[1], -1) if dense.dim() > 2 else dense
        product: Tensor = _Multiply.apply(self, flat)  # type: ignore[no-untyped-call]
        return product.view(*dense.shape[:-2], -1, dense.size(-1))

    def with_values(self, values: Tensor) -> "SparseMatrix":
        """The same pattern with other entries."""
        return replace(self, values=values)

    def row_normalized(self, p: int = 1) -> "SparseMatrix":
        """Each row divided by its p-norm; empty rows stay empty."""
        norm = _segment_sum(self.values.double().abs() ** p, self.pattern.crow) ** (1 / p)
        smallest = torch.finfo(self.values.dtype).tiny
        scaled = self.values / norm.clamp(min=smallest).index_select(0, self.pattern.row)
        return self.with_values(scaled.to(self.values.dtype))

    def repeated(self, times: int) -> "SparseMatrix":
        """The block-diagonal matrix of `times` copies."""
        if times == 1:
            return self
        rows, columns = self.pattern.shape
        copy = torch.arange(times, device=self.values.device)[:, None]
        row, col = (self.pattern.row + copy * rows).flatten(), (self.pattern.col + copy * columns).flatten()
        return SparseMatrix(Pattern.from_rows(row, col, (times * rows, times * columns)), self.values.repeat(times))

    def to_dense(self) -> Tensor:
        """The matrix written out, for encoders that take nothing else."""
        return _csr(self.pattern, self.values).to_dense()

    def to(self, device: torch.device) -> "SparseMatrix":
        """The same matrix on another device."""
        pattern = replace(self.pattern, crow=self.pattern.crow.to(device), col=self.pattern.col.to(device))
        return SparseMatrix(pattern, self.values.to(device))


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The links messages pass along, with self-loops, sorted by receiving node.

    Args:
        normalized: D^-1/2 (A + I) D^-1/2 of Kipf and Welling.
        edge_index: the links alone, for encoders written for PyG's layers; all of them, whatever is present.
        present: (entries,) which entries of the pattern there are; None is all.
    """

    normalized: SparseMatrix
    edge_index: Tensor
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
        return cls(SparseMatrix(pattern, values), edge_index)

    @cached_property
    def link(self) -> Tensor:
        """Which link each entry is, (entries,): 1, 2, ... in ascending order of (smaller, larger end); 0 is a loop."""
        pattern = self.normalized.pattern
        row, col = pattern.row.long(), pattern.col.long()
        pairs = torch.minimum(row, col) * pattern.shape[1] + torch.maximum(row, col)
        link: Tensor = torch.unique(pairs.where(row != col, -1), return_inverse=True)[1]
        return link

    @property
    def degree(self) -> Tensor:
        """The links of each node, and one for itself, (nodes,) float32."""
        crow = self.normalized.pattern.crow
        return crow.diff().float() if self.present is None else _segment_sum(self.present.float(), crow)

    def thinned(self, kept: Tensor) -> "Adjacency":
        """With some links only, normalised anew; loops stay.

        Args:
            kept: (links,) 1 or 0, in the order of `link`.
        """
        pattern = self.normalized.pattern
        present = torch.cat([kept.new_ones(1), kept]).index_select(0, self.link).float()
        scale = _segment_sum(present, pattern.crow).rsqrt()
        values = present * scale.index_select(0, pattern.row) * scale.index_select(0, pattern.col)
        return Adjacency(self.normalized.with_values(values), self.edge_index, present > 0)


def attention_shares(
    sender: Tensor, receiver: Tensor, pattern: Pattern, slope: float = 0.2, present: Tensor | None = None
) -> Tensor:
    """softmax over j of leaky_relu(receiver_i + sender_j), (entries, heads) from two (nodes, heads).

    Args:
        present: (entries,) those that take part; every row has one.
    """
    shares: Tensor = _AttentionShares.apply(sender, receiver, pattern, slope, present)  # type: ignore[no-untyped-call]
    return shares


def weighted_product(weights: Tensor, pattern: Pattern, dense: Tensor) -> Tensor:
    """out[i, h] = sum over entries (i, j) of weights[ij, h] * dense[j, h], differentiable in both.

    Args:
        weights: (entries, heads). dense: (..., columns, heads, channels).
    """
    heads, channels = dense.shape[-2:]
    flat = dense.reshape(-1, heads, channels)
    product: Tensor = _WeightedProduct.apply(weights, pattern, flat)  # type: ignore[no-untyped-call]
    return product.view(*dense.shape[:-3], -1, heads, channels)


def sampled_product(left: Tensor, pattern: Pattern, right: Tensor) -> Tensor:
    """<left_i, right_j> at each entry (i, j) and nowhere else, (entries,), differentiable in both.

    Args:
        left: (rows, channels). right: (columns, channels).
    """
    products: Tensor = _SampledProduct.apply(left, pattern, right)  # type: ignore[no-untyped-call]
    return products


def _starts(ascending: Tensor, count: int) -> Tensor:
    """Where each of 0, 1, ..., `count` begins in an ascending vector."""
    numbers = torch.arange(count + 1, dtype=ascending.dtype, device=ascending.device)
    return torch.searchsorted(ascending, numbers, out_int32=ascending.dtype == torch.int32)


def _csr(pattern: Pattern, values: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(pattern.crow, pattern.col, values, pattern.shape, check_invariants=False)


def _product(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    """(rows, columns) @ (columns, n)."""
    if dense.is_cuda:
        in_bags = torch.are_deterministic_algorithms_enabled()  # cuSPARSE does not repeat itself, here and below
    else:
        in_bags = dense.dtype == torch.float32 and pattern.col.numel() > 0
    if not in_bags:
        return _csr(pattern, values) @ dense
    mode_sum = 0
    bags: Tensor = torch.embedding_bag(
        dense.contiguous(), pattern.col, pattern.crow, False, mode_sum, False, values, include_last_offset=True
    )[0]
    return bags


def _sampled(left: Tensor, pattern: Pattern, right: Tensor) -> Tensor:
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
        return _product(matrix.pattern, matrix.values, dense)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        pattern, values = ctx.matrix.pattern, ctx.matrix.values
        if pattern.symmetric:
            return None, _product(pattern, values, gradient)
        order, blocks = pattern.blocked_transpose
        product = _product(blocks, values.index_select(0, order), gradient)
        return None, product.view(-1, pattern.shape[1], product.size(1)).sum(dim=0)


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


class _WeightedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, pattern: Pattern, dense: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(weights, dense)
        return _by_head(lambda h: _product(pattern, weights[:, h].contiguous(), dense[:, h]), weights.size(1))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor]:
        weights, dense = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        transposed = _transposed_values(pattern, weights)
        d_dense = _by_head(
            lambda h: _product(pattern.transposed, transposed[:, h].contiguous(), gradient[:, h]), weights.size(1)
        )
        d_weights = _by_head(lambda h: _sampled(gradient[:, h], pattern, dense[:, h]), weights.size(1))
        return d_weights, None, d_dense


class _SampledProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, pattern: Pattern, right: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(left, right)
        return _sampled(left, pattern, right)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor]:
        left, right = ctx.saved_tensors
        pattern = ctx.pattern
        d_right = _product(pattern.transposed, _transposed_values(pattern, gradient), left)
        return _product(pattern, gradient.contiguous(), right), None, d_right


def _by_head(function: Callable[[int], Tensor], heads: int) -> Tensor:
    return torch.stack([function(head) for head in range(heads)], dim=1)
