"""What codes say about a target, in nats: exact, differentiable sums over small tables.

q is each node's distribution over M codes, (..., n, M). Everything a reader of the codes can learn about a class is in
the table T(c, y), and everything about links in the table L(a, b); so there is no bound and no adversary here.
Leading dimensions are runs.
"""

import torch
from torch import Tensor

TINY = 1e-12


def class_table(q: Tensor, classes: Tensor) -> Tensor:
    """T(c, y) = mean over nodes of q(c) s(y), (..., M, C).

    Args:
        classes: s, (..., n, C): one-hot where a class is known, a prediction elsewhere, zeros to leave a node out.
    """
    table = q.mT @ classes
    return table / table.sum(dim=(-2, -1), keepdim=True).clamp(min=TINY)


def class_information(table: Tensor) -> Tensor:
    """I(C; Y) = sum T log( T / (T_c T_y) ), (...)."""
    codes, classes = table.sum(dim=-1, keepdim=True), table.sum(dim=-2, keepdim=True)
    return _divergence(table, codes * classes)


def balanced(table: Tensor) -> Tensor:
    """The table where every class that occurs has the same share: small classes count as much as large ones."""
    shares = table.sum(dim=-2, keepdim=True)
    occurs = (shares > TINY).to(table.dtype)
    return table / shares.clamp(min=TINY) * occurs / occurs.sum(dim=-1, keepdim=True)


def link_table(one: Tensor, other: Tensor) -> Tensor:
    """L(a, b) = symmetrised mean over links of q_u(a) q_v(b), (..., M, M), from q at both ends of the links."""
    table = one.mT @ other / one.size(-2)
    return (table + table.mT) / 2


def link_information(table: Tensor, codes: Tensor) -> Tensor:
    """J = sum L log( L / (m m') ): the evidence for a link in the codes of its ends, (...).

    Args:
        codes: m, the mean of q over the nodes, (..., M).
    """
    return _divergence(table, codes[..., :, None] * codes[..., None, :])


def link_information_beyond(table: Tensor, classes: Tensor, class_pairs: Tensor) -> Tensor:
    """J' = sum L log( L / N' ): what codes say about links that classes do not.

    N'(a, b) = sum over class pairs of Lambda(y, y') Q(a | y) Q(b | y').

    Args:
        classes: T(c, y), (..., M, C). class_pairs: Lambda, the class pairs of the links, (..., C, C).
    """
    of_class = classes / classes.sum(dim=-2, keepdim=True).clamp(min=TINY)
    return _divergence(table, of_class @ class_pairs @ of_class.mT)


def _divergence(table: Tensor, expected: Tensor) -> Tensor:
    """sum P log(P / Q); a cell with nothing in it counts nothing."""
    log_ratio = (table + TINY).log() - (expected + TINY).log()
    return torch.sum(table * log_ratio, dim=(-2, -1))
