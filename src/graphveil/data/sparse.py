"""Sparse feature matrices as torch CSR tensors, which are never built as dense ones."""

import copy
import warnings

import torch
from torch import Tensor
from torch_geometric.data import Data

CsrParts = tuple[Tensor, Tensor, Tensor, tuple[int, int]]
"""The arguments of `csr`."""


def csr(crow: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Return a float32 CSR tensor, without torch's warnings that CSR is in beta and that checks are optional."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta|Sparse invariant checks are")
        return torch.sparse_csr_tensor(crow, col, values, shape, check_invariants=True)


def identity(size: int) -> Tensor:
    """Return an identity matrix: with it as features, an encoder learns a row for each node."""
    return csr(torch.arange(size + 1), torch.arange(size), torch.ones(size), (size, size))


def csr_from_rows(words: Tensor, num_columns: int) -> Tensor:
    """Return a matrix (rows, num_columns) with ones at the columns `words[i]` of row i.

    Args:
        words: (rows, words per row), numbers of columns; duplicates count once.
        num_columns: The number of columns.
    """
    num_rows, width = words.shape
    row = torch.arange(num_rows).repeat_interleave(width)
    codes = torch.unique(row * num_columns + words.flatten())
    crow = torch.searchsorted(codes, torch.arange(num_rows + 1) * num_columns)
    return csr(crow, codes % num_columns, torch.ones(codes.numel()), (num_rows, num_columns))


def split_features(graph: Data) -> tuple[Data, CsrParts | None]:
    """Take sparse features out of a graph on its way to another process, where unpickling them prints a warning.

    Args:
        graph: a graph; it is not changed.

    Returns:
        A graph without sparse features, and the parts of the features; None if they are dense.
    """
    x = graph.x
    if x.layout != torch.sparse_csr:
        return graph, None
    without = copy.copy(graph)
    without.x = None
    return without, (x.crow_indices(), x.col_indices(), x.values(), tuple(x.shape))


def join_features(graph: Data, parts: CsrParts | None) -> Data:
    """The inverse of `split_features`."""
    if parts is None:
        return graph
    joined = copy.copy(graph)
    joined.x = csr(*parts)
    return joined
