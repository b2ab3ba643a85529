"""The student gives the same logits for dense and for sparse features."""

import torch

from graphveil.models import SparseMatrix
from graphveil.models.student import Student


def test_sparse_features_have_the_logits_of_dense_ones() -> None:
    x = torch.randn(9, 6, generator=torch.Generator().manual_seed(0)).relu()
    student = Student(6, 4, 3).eval()
    dense, sparse = student(x), student(SparseMatrix.from_csr(x.to_sparse_csr()))
    assert dense.shape == (9, 3)
    assert torch.allclose(dense, sparse, atol=1e-6)
