"""Sparse products against the same mathematics written densely, forward and backward."""

import torch
from torch import Tensor

from graphveil.models.sparse import Adjacency, SparseMatrix, segment_softmax, weighted_product


def random_sparse(rows: int, columns: int) -> tuple[SparseMatrix, Tensor]:
    random = torch.Generator().manual_seed(0)
    dense = torch.randn(rows, columns, generator=random, dtype=torch.float64)
    dense[torch.rand(rows, columns, generator=random) < 0.6] = 0
    dense[0] = 0  # an empty row
    return SparseMatrix.from_csr(dense.to_sparse_csr()), dense


def test_product_and_its_gradient_are_those_of_the_dense_matrix() -> None:
    matrix, dense = random_sparse(5, 7)
    other = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    assert torch.allclose(matrix @ other, dense @ other, rtol=0, atol=1e-14)
    assert torch.autograd.gradcheck(lambda o: matrix @ o, (other,))


def test_row_normalisation_divides_by_the_absolute_sum_and_keeps_empty_rows() -> None:
    matrix, dense = random_sparse(5, 7)
    expected = dense / dense.abs().sum(dim=1, keepdim=True).clamp(min=1e-300)
    assert torch.allclose(matrix.row_normalized().to_dense(), expected, rtol=0, atol=1e-15)


def test_dropout_scales_what_it_keeps_and_leaves_zeros_alone() -> None:
    matrix, dense = random_sparse(50, 70)
    torch.manual_seed(0)
    dropped = matrix.dropout(0.4, training=True).to_dense()
    kept = dropped != 0
    assert torch.allclose(dropped[kept], dense[kept] / 0.6)
    assert 0.5 < float(kept.sum() / (dense != 0).sum()) < 0.7
    assert matrix.dropout(0.4, training=False).to_dense().equal(dense)


def test_the_adjacency_is_kipfs_normalisation() -> None:
    """A path 0 - 1 - 2 with loops has degrees 2, 3, 2."""
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    expected = torch.tensor([[1 / 2, 6**-0.5, 0], [6**-0.5, 1 / 3, 6**-0.5], [0, 6**-0.5, 1 / 2]])
    assert torch.allclose(adjacency.normalized.to_dense(), expected, rtol=0, atol=1e-7)


def test_segment_softmax_is_softmax_within_each_row() -> None:
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0]]), 4)
    matrix = adjacency.normalized  # rows of 3, 3, 3 and 1 entries
    scores = torch.randn(10, 2, dtype=torch.float64, requires_grad=True)
    expected = torch.cat([part.softmax(dim=0) for part in scores.split([3, 3, 3, 1])])
    assert torch.allclose(segment_softmax(scores, matrix), expected, rtol=0, atol=1e-15)
    assert torch.autograd.gradcheck(lambda s: segment_softmax(s, matrix), (scores,))
    large = segment_softmax(1e4 * scores, matrix)
    assert torch.isfinite(large).all()


def test_weighted_product_and_its_gradients() -> None:
    matrix, _ = random_sparse(4, 5)
    entries = matrix.col.numel()
    weights = torch.randn(entries, 2, dtype=torch.float64, requires_grad=True)
    dense = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    expected = torch.zeros(4, 2, 3, dtype=torch.float64)
    for e in range(entries):
        expected[matrix.row[e]] += weights[e, :, None] * dense[matrix.col[e]]
    assert torch.allclose(weighted_product(weights, matrix, dense), expected, rtol=0, atol=1e-14)
    assert torch.autograd.gradcheck(lambda w, d: weighted_product(w, matrix, d), (weights, dense))
