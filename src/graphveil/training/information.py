"""The mutual information of codes and targets in nats, as exact, differentiable sums over small tables.

q is the distribution of each node over M codes, (..., n, M). The table T(c, y) has all that codes reveal about a class,
and the table L(a, b) all that they reveal about links, so neither a bound nor an adversary is needed. Leading
dimensions are runs.
"""

import torch
from torch import Tensor

TINY = 1e-12


def class_table(q: Tensor, classes: Tensor) -> Tensor:
    """T(c, y) = mean over nodes of q(c) s(y), (..., M, C).

    Args:
        q: (..., n, M).
        classes: s, (..., n, C): one-hot if the class is known, else a prediction, or zeros to exclude a node.
    """
    return shares_of(class_sums(q, classes))


def class_sums(q: Tensor, classes: Tensor) -> Tensor:
    """Return the sum over nodes of q(c) s(y), (..., M, C); see `class_table`."""
    return (classes.mT @ q).mT  # twice as fast as q' s, since q is wide


def shares_of(sums: Tensor) -> Tensor:
    """Return a table divided by its sum."""
    return sums / sums.sum(dim=(-2, -1), keepdim=True).clamp(min=TINY)


def class_information(table: Tensor) -> Tensor:
    """I(C; Y) = sum T log( T / (T_c T_y) ), (...)."""
    codes, classes = table.sum(dim=-1, keepdim=True), table.sum(dim=-2, keepdim=True)
    return _divergence(table, codes * classes)


def balanced(table: Tensor) -> Tensor:
    """Return a table (..., M, C) reweighted so that all classes that occur have the same share."""
    shares = table.sum(dim=-2, keepdim=True)
    occurs = (shares > TINY).to(table.dtype)
    return table / shares.clamp(min=TINY) * occurs / occurs.sum(dim=-1, keepdim=True)


def link_table(source: Tensor, other: Tensor) -> Tensor:
    """L(a, b) = symmetrised mean over links of q_u(a) q_v(b), (..., M, M).

    Args:
        source: q at one end of the links, (..., links, M).
        other: q at the other end, (..., links, M).
    """
    table = source.mT @ other / source.size(-2)
    return (table + table.mT) / 2


def link_information(table: Tensor, codes: Tensor) -> Tensor:
    """J = sum L log( L / (m m') ): the information about links in the codes of their ends, (...).

    Args:
        table: L, (..., M, M).
        codes: m, the mean of q over the nodes, (..., M).
    """
    return _divergence(table, codes[..., :, None] * codes[..., None, :])


def link_information_beyond(table: Tensor, classes: Tensor, class_pairs: Tensor) -> Tensor:
    """J' = sum L log( L / N' ): the information about links in the codes of their ends beyond classes, (...).

    N'(a, b) = sum over class pairs of Lambda(y, y') Q(a | y) Q(b | y').

    Args:
        table: L, (..., M, M).
        classes: T(c, y), (..., M, C).
        class_pairs: Lambda, the class pairs of the links, (..., C, C).
    """
    of_class = classes / classes.sum(dim=-2, keepdim=True).clamp(min=TINY)
    return _divergence(table, of_class @ class_pairs @ of_class.mT)


def _divergence(table: Tensor, expected: Tensor) -> Tensor:
    """sum P log(P / Q), where empty cells count 0."""
    log_ratio = (table + TINY).log() - (expected + TINY).log()
    return torch.sum(table * log_ratio, dim=(-2, -1))
