"""Products with a sparse matrix, forward and backward, at the cost of its entries.

torch's own backward of a CSR product transposes the matrix anew in every step. Here both orders are kept, so that
backward is one more CSR product. Edge-weighted products, which attention needs, are derived with respect to the
weights too.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A matrix in CSR order together with its transpose.

    Args:
        crow, col, values: CSR of the matrix, (rows + 1,), (entries,), (entries,).
        row: the row of each entry, (entries,).
        t_crow, t_col: CSR pattern of the transpose.
        t_order: where the transpose's entries lie in `values`.
    """

    crow: Tensor
    col: Tensor
    row: Tensor
    values: Tensor
    t_crow: Tensor
    t_col: Tensor
    t_order: Tensor
    shape: tuple[int, int]

    @classmethod
    def from_csr(cls, matrix: Tensor) -> "SparseMatrix":
        """Build from a torch CSR tensor."""
        crow, col, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
        rows, columns = matrix.shape
        row = torch.repeat_interleave(torch.arange(rows, device=col.device), crow.diff())
        t_order = torch.argsort(col, stable=True)  # entries come row by row, so this is (column, row) order
        t_crow = torch.searchsorted(col[t_order], torch.arange(columns + 1, device=col.device))
        return cls(crow, col, row, values, t_crow, row[t_order], t_order, (rows, columns))

    def __matmul__(self, dense: Tensor) -> Tensor:
        """(rows, columns) @ (columns, n), differentiable in `dense`."""
        return _multiply(self, dense)

    def with_values(self, values: Tensor) -> "SparseMatrix":
        """The same pattern with other entries."""
        return replace(self, values=values)

    def row_normalized(self) -> "SparseMatrix":
        """Each row divided by the sum of its absolute values; empty rows stay empty."""
        total = self.values.new_zeros(self.shape[0]).index_add_(0, self.row, self.values.abs())
        return self.with_values(self.values / total.clamp(min=torch.finfo(self.values.dtype).tiny)[self.row])

    def dropout(self, p: float, training: bool) -> "SparseMatrix":
        """Drop entries, as dropout does on the dense matrix: what is zero stays zero."""
        return self.with_values(torch.nn.functional.dropout(self.values, p, training)) if p else self

    def to_dense(self) -> Tensor:
        """The matrix written out, for encoders that take nothing else."""
        return _csr(self.crow, self.col, self.values, self.shape).to_dense()

    def to(self, device: torch.device) -> "SparseMatrix":
        """The same matrix on another device."""
        moved: dict[str, Any] = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, **moved)


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The links messages pass along, with self-loops, sorted by receiving node.

    Args:
        normalized: D^-1/2 (A + I) D^-1/2 of Kipf and Welling.
        edge_index: the links alone, for encoders written for PyG's layers.
    """

    normalized: SparseMatrix
    edge_index: Tensor

    @classmethod
    def from_edge_index(cls, edge_index: Tensor, num_nodes: int) -> "Adjacency":
        """Build from PyG's `edge_index`, (2, edges) in both directions without duplicates."""
        loops = torch.arange(num_nodes, device=edge_index.device).expand(2, -1)
        row, col = torch.cat([edge_index, loops], dim=1)
        order = torch.argsort(row * num_nodes + col)
        row, col = row[order], col[order]
        crow = torch.searchsorted(row, torch.arange(num_nodes + 1, device=row.device))
        scale = crow.diff().float().rsqrt()
        pattern = _csr(crow, col, scale[row] * scale[col], (num_nodes, num_nodes))
        return cls(SparseMatrix.from_csr(pattern), edge_index)


def segment_softmax(scores: Tensor, matrix: SparseMatrix) -> Tensor:
    """Softmax of (entries, heads) within each row of `matrix`."""
    result: Tensor = _SegmentSoftmax.apply(scores, matrix)  # type: ignore[no-untyped-call]
    return result


def weighted_product(weights: Tensor, matrix: SparseMatrix, dense: Tensor) -> Tensor:
    """out[i, h] = sum over entries (i, j) of weights[ij, h] * dense[j, h], differentiable in both.

    Args:
        weights: (entries, heads). dense: (columns, heads, channels).
    """
    result: Tensor = _WeightedProduct.apply(weights, matrix, dense)  # type: ignore[no-untyped-call]
    return result


def _csr(crow: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(crow, col, values, shape, check_invariants=False)


def _product(matrix: SparseMatrix, values: Tensor, dense: Tensor) -> Tensor:
    return _csr(matrix.crow, matrix.col, values, matrix.shape) @ dense


def _transposed_product(matrix: SparseMatrix, values: Tensor, dense: Tensor) -> Tensor:
    return _csr(matrix.t_crow, matrix.t_col, values[matrix.t_order], matrix.shape[::-1]) @ dense


def _multiply(matrix: SparseMatrix, dense: Tensor) -> Tensor:
    result: Tensor = _Multiply.apply(matrix, dense)  # type: ignore[no-untyped-call]
    return result


class _Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, dense: Tensor) -> Tensor:
        ctx.matrix = matrix
        return _product(matrix, matrix.values, dense)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, _transposed_product(ctx.matrix, ctx.matrix.values, gradient)


class _SegmentSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, matrix: SparseMatrix) -> Tensor:
        highest = torch.segment_reduce(scores, "max", offsets=matrix.crow)
        share = (scores - highest[matrix.row]).exp_()
        share /= torch.segment_reduce(share, "sum", offsets=matrix.crow)[matrix.row]
        ctx.matrix = matrix
        ctx.save_for_backward(share)
        return share

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (share,) = ctx.saved_tensors
        weighted = share * gradient
        total = torch.segment_reduce(weighted, "sum", offsets=ctx.matrix.crow)
        return weighted - share * total[ctx.matrix.row], None


class _WeightedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, matrix: SparseMatrix, dense: Tensor) -> Tensor:
        ctx.matrix = matrix
        ctx.save_for_backward(weights, dense)
        heads = range(weights.size(1))
        out = [_product(matrix, weights[:, h].contiguous(), dense[:, h].contiguous()) for h in heads]
        return torch.stack(out, dim=1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor]:
        weights, dense = ctx.saved_tensors
        matrix = ctx.matrix
        heads = range(weights.size(1))
        d_weights = (gradient[matrix.row] * dense[matrix.col]).sum(dim=-1)
        d_dense = [_transposed_product(matrix, weights[:, h].contiguous(), gradient[:, h].contiguous()) for h in heads]
        return d_weights, None, torch.stack(d_dense, dim=1)
