"""The student is two layers, and gives the same logits for dense and for sparse features."""

import torch

from graphveil.models import SparseMatrix
from graphveil.models.student import Student


def test_sparse_features_have_the_logits_of_dense_ones() -> None:
    x = torch.randn(9, 6, generator=torch.Generator().manual_seed(0)).relu()
    student = Student(6, 4, 3).eval()
    first, second = student.first, student.second
    torch.nn.init.normal_(first.bias)
    expected = (x @ first.weight + first.bias).relu() @ second.weight + second.bias
    for features in (x, SparseMatrix.from_csr(x.to_sparse_csr())):
        assert torch.allclose(student(features), expected, atol=1e-6)
