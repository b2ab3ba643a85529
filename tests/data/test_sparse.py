"""Sparse feature matrices."""

import torch

from graphveil.data.sparse import csr_from_rows, identity


def test_words_that_occur_twice_count_once() -> None:
    x = csr_from_rows(torch.tensor([[2, 0], [1, 1], [3, 2]]), 5)
    assert x.layout == torch.sparse_csr
    assert x.to_dense().tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0]]


def test_the_identity() -> None:
    assert identity(3).to_dense().equal(torch.eye(3))
