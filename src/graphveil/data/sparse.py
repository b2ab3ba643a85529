"""Sparse feature matrices as torch CSR tensors, built without ever being dense."""

import warnings

import torch
from torch import Tensor


def csr(crow: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A float32 CSR tensor, without torch's once-a-process notices that CSR is in beta and checks can be chosen."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta|Sparse invariant checks are")
        return torch.sparse_csr_tensor(crow, col, values, shape, check_invariants=True)


def identity(size: int) -> Tensor:
    """Ones on the diagonal: features of nodes that have none, of which an encoder learns a row for each."""
    return csr(torch.arange(size + 1), torch.arange(size), torch.ones(size), (size, size))


def csr_from_rows(words: Tensor, num_columns: int) -> Tensor:
    """Ones where row i holds a column of `words[i]`, (rows, words a row); repeated words count once."""
    num_rows, width = words.shape
    row = torch.arange(num_rows).repeat_interleave(width)
    codes = torch.unique(row * num_columns + words.flatten())
    crow = torch.searchsorted(codes, torch.arange(num_rows + 1) * num_columns)
    return csr(crow, codes % num_columns, torch.ones(codes.numel()), (num_rows, num_columns))
