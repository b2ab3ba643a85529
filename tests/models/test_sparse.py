"""Sparse products against the same mathematics written densely, forward and backward."""

import torch
from torch import Tensor

from graphveil.models.sparse import (
    Adjacency,
    Pattern,
    SparseMatrix,
    attention_shares,
    sampled_product,
    weighted_product,
)


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
    of_length_one = torch.nn.functional.normalize(matrix.to_dense(), dim=1)
    assert torch.allclose(matrix.row_normalized(2).to_dense(), of_length_one, rtol=0, atol=1e-6)


def test_float32_takes_another_kernel_to_the_same_product() -> None:
    matrix, dense = random_sparse(50, 70)
    single = matrix.with_values(matrix.values.float())
    other = torch.randn(70, 9, requires_grad=True)
    product = single @ other
    assert torch.allclose(product, dense.float() @ other, rtol=0, atol=1e-5)
    (gradient,) = torch.autograd.grad(product.square().sum() / 2, other)
    assert torch.allclose(gradient, dense.float().t() @ product, rtol=0, atol=1e-4)


def test_a_repeated_matrix_is_block_diagonal_and_multiplies_run_by_run() -> None:
    matrix, dense = random_sparse(5, 7)
    repeated = matrix.repeated(3)
    assert repeated.to_dense().equal(torch.block_diag(dense, dense, dense))
    other = torch.randn(3, 7, 2, dtype=torch.float64, requires_grad=True)
    assert torch.allclose(repeated @ other, dense @ other, rtol=0, atol=1e-14)
    assert torch.autograd.gradcheck(lambda o: repeated @ o, (other,))


def test_a_tall_matrix_is_transposed_in_blocks() -> None:
    """5,000 rows are three blocks, and each of the 3 columns has far more than 16 entries in each."""
    random = torch.Generator().manual_seed(1)
    dense = torch.randn(5000, 3, generator=random, dtype=torch.float64)
    dense[torch.rand(5000, 3, generator=random) < 0.5] = 0
    matrix = SparseMatrix.from_csr(dense.to_sparse_csr())
    assert matrix.pattern.blocked_transpose[1].shape == (9, 5000)
    other = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5000, 2, generator=random, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((matrix @ other * weight).sum(), other)
    assert torch.allclose(gradient, dense.t() @ weight, rtol=0, atol=1e-11)


def test_sampled_products_and_their_gradients() -> None:
    matrix, _ = random_sparse(4, 5)
    pattern = matrix.pattern
    left, right = (torch.randn(n, 3, dtype=torch.float64, requires_grad=True) for n in (4, 5))
    expected = (left @ right.t())[pattern.row.long(), pattern.col.long()]
    assert torch.allclose(sampled_product(left, pattern, right), expected, rtol=0, atol=1e-14)
    assert torch.autograd.gradcheck(lambda a, b: sampled_product(a, pattern, b), (left, right))


def test_the_transposed_pattern_is_that_of_the_transpose() -> None:
    matrix, dense = random_sparse(5, 7)
    transposed = SparseMatrix(matrix.pattern.transposed, matrix.values[matrix.pattern.t_order])
    assert transposed.to_dense().equal(dense.t())
    assert matrix.pattern.row.tolist() == dense.nonzero()[:, 0].tolist()


def test_the_adjacency_is_kipfs_normalisation() -> None:
    """A path 0 - 1 - 2 with loops has degrees 2, 3, 2."""
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    expected = torch.tensor([[1 / 2, 6**-0.5, 0], [6**-0.5, 1 / 3, 6**-0.5], [0, 6**-0.5, 1 / 2]])
    assert torch.allclose(adjacency.normalized.to_dense(), expected, rtol=0, atol=1e-7)


def test_the_adjacency_has_the_links_without_loops_for_layers_of_pyg() -> None:
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    adjacency = Adjacency.from_edge_index(edge_index, 4)
    assert adjacency.edge_index.dtype == torch.int64
    assert sorted(adjacency.edge_index.t().tolist()) == sorted(edge_index.t().tolist())


def triangle_and_one() -> Pattern:
    """Rows of 3, 3, 3 and 1 entries."""
    edge_index = torch.tensor([[0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0]])
    return Adjacency.from_edge_index(edge_index, 4).normalized.pattern


def test_attention_shares_are_a_softmax_within_each_row() -> None:
    pattern = triangle_and_one()
    sender, receiver = (torch.randn(4, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    scores = torch.nn.functional.leaky_relu(receiver[pattern.row] + sender[pattern.col], 0.2)
    expected = torch.cat([part.softmax(dim=0) for part in scores.split([3, 3, 3, 1])])
    assert torch.allclose(attention_shares(sender, receiver, pattern), expected, rtol=0, atol=1e-15)
    assert torch.autograd.gradcheck(lambda s, r: attention_shares(s, r, pattern), (sender, receiver))
    assert torch.isfinite(attention_shares(1e4 * sender, 1e4 * receiver, pattern)).all()


def test_attention_shares_of_a_pattern_that_is_not_symmetric() -> None:
    matrix, _ = random_sparse(6, 6)
    pattern = matrix.with_values(matrix.values).pattern
    sender, receiver = (torch.randn(6, 1, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(lambda s, r: attention_shares(s, r, pattern), (sender, receiver))


def test_weighted_product_and_its_gradients() -> None:
    matrix, _ = random_sparse(4, 5)
    pattern, entries = matrix.pattern, matrix.values.numel()
    weights = torch.randn(entries, 2, dtype=torch.float64, requires_grad=True)
    dense = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    expected = torch.zeros(4, 2, 3, dtype=torch.float64)
    for e in range(entries):
        expected[pattern.row[e]] += weights[e, :, None] * dense[pattern.col[e]]
    assert torch.allclose(weighted_product(weights, pattern, dense), expected, rtol=0, atol=1e-14)
    assert torch.autograd.gradcheck(lambda w, d: weighted_product(w, pattern, d), (weights, dense))
