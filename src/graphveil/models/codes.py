"""Product codes: distributions over finitely many codes from the output of an encoder, and the code book of a release.

The encoder returns logits (..., n, groups * size). Each group is a softmax over `size` values, and a code is one value
of every group, so there are M = size ** groups codes. In a release every node has one code, and so one of at most M
rows.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil import kernels
from graphveil.models.layers import Affine, Features
from graphveil.models.sparse import Adjacency

DEGREES = 24
"""The number of bins of the degree of a node, which are powers of two."""


@dataclass(frozen=True)
class CodeShape:
    """The shape of codes.

    Args:
        groups: The number of groups.
        size: The number of values of a group.
    """

    groups: int
    size: int

    @property
    def channels(self) -> int:
        """The number of logits of a node."""
        return self.groups * self.size

    @property
    def codes(self) -> int:
        """M, the number of codes."""
        return int(self.size**self.groups)


def soft_codes(logits: Tensor, shape: CodeShape) -> Tensor:
    """Return q, the distribution of each node over the codes, (..., n, M): the outer product of its groups."""
    if kernels.usable(logits):
        return _by_row(logits, shape)
    groups = logits.unflatten(-1, (shape.groups, shape.size)).softmax(dim=-1).unbind(dim=-2)
    q: Tensor = groups[0]
    for group in groups[1:]:
        q = (q[..., :, None] * group[..., None, :]).flatten(-2)
    return q


def _by_row(logits: Tensor, shape: CodeShape) -> Tensor:
    q: Tensor = _SoftCodes.apply(logits, shape)  # type: ignore[no-untyped-call]
    return q


class _SoftCodes(torch.autograd.Function):
    """`soft_codes` in one pass over rows; of the intermediate results only the small softmax of each group is kept."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, shape: CodeShape) -> Tensor:
        rows = logits.reshape(-1, shape.channels).contiguous()
        p, q = torch.empty_like(rows), rows.new_empty(len(rows), shape.codes)
        arrays = rows.numpy(), shape.groups, shape.size, p.numpy(), q.numpy()
        kernels.compiling.over(len(rows), q.numel(), kernels.codes.outer_products, *arrays)
        ctx.shape = shape
        ctx.save_for_backward(p)
        return q.view(*logits.shape[:-1], shape.codes)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (p,) = ctx.saved_tensors
        groups, size = ctx.shape.groups, ctx.shape.size
        d_q, d_logits = gradient.reshape(len(p), ctx.shape.codes).contiguous(), torch.empty_like(p)
        arrays = d_q.numpy(), p.numpy(), groups, size, d_logits.numpy()
        kernels.compiling.over(len(p), d_q.numel(), kernels.codes.outer_products_backward, *arrays)
        return d_logits.view(*gradient.shape[:-1], groups * size), None


def hard_codes(logits: Tensor, shape: CodeShape) -> Tensor:
    """Return the most probable code of each node, (..., n) int64."""
    values = logits.unflatten(-1, (shape.groups, shape.size)).argmax(dim=-1)
    place = shape.size ** torch.arange(shape.groups - 1, -1, -1, device=logits.device)
    codes: Tensor = (values * place).sum(dim=-1)
    return codes


class PairTable(nn.Module):
    """How often the ends of a link have codes a and b, (M, M): a running mean over the steps of a training.

    The scores of links in a release are computed from it. A table counted from the released codes alone would overfit
    the training links, along which messages passed; this one also has rounds with edge dropout, and soft codes.

    Args:
        num_codes: M.
    """

    batched = True

    def __init__(self, num_codes: int) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.full((num_codes, num_codes), num_codes**-2.0), requires_grad=False)

    def add(self, table: Tensor, share: float) -> None:
        """Move the mean towards a table (..., M, M) by a share."""
        self.mean.data.lerp_(table.detach(), share)


class CodeEncoder(nn.Module):
    """An encoder whose output is mapped to the logits of codes.

    Args:
        encoder: The encoder.
        out_channels: The number of columns of its output.
        shape: The shape of the codes.
        scale: The scale of the logits. If it is too small, training drops codes before they are learned.
        by_degree: Whether to add a term that depends on the degree of the node. Attention and hyperbolic centroids are
            means over neighbours and do not depend on the degree, which is informative about further links.
    """

    batched = True

    def __init__(
        self, encoder: nn.Module, out_channels: int, shape: CodeShape, scale: float = 1.0, by_degree: bool = False
    ) -> None:
        super().__init__()
        self.encoder, self.scale = encoder, scale
        own = out_channels != shape.channels
        self.logits = Affine(out_channels, shape.channels) if own else None
        self.degree = nn.Parameter(torch.empty(DEGREES, shape.channels).normal_(std=0.1)) if by_degree else None

    def forward(self, x: Features, adjacency: Adjacency) -> Tensor:
        z = self.encoder(x, adjacency)
        return self.to_logits(z, None if self.degree is None else adjacency.degree)

    def to_logits(self, z: Tensor, num_links: Tensor | None) -> Tensor:
        """Return the logits of codes from the encoder's output.

        Args:
            z: (..., n, out_channels).
            num_links: The number of links of each node plus one, (nodes of all runs,), which is used `by_degree` only.
        """
        logits: Tensor = self.scale * (z if self.logits is None else self.logits(z))
        if self.degree is None or num_links is None:
            return logits
        return logits + self._by_degree(self.degree, num_links, z)

    def _by_degree(self, table: Tensor, num_links: Tensor, z: Tensor) -> Tensor:
        row = num_links.log2().long().clamp_(max=DEGREES - 1).view(z.shape[:-1])
        if z.dim() == 3:
            row = row + DEGREES * torch.arange(len(z), device=z.device)[:, None]
        return F.embedding(row, table.flatten(0, -2))


class CodeBook(nn.Module):
    """The code book of a run: the row of each released code, and the code of each node.

    Attributes:
        merged: (M,), the released code of each code of the encoder.
        rows: (released codes, channels), the embedding of each released code.
        signs: (channels,), 1 or -1: the score of a link between two nodes is the sum of signs * z_u * z_v.
        nodes: (n,), hashed ids in ascending order.
        codes: (n,), the code of each of these nodes; a node that is embedded again keeps its code.
    """

    def __init__(self, num_codes: int, released: int, channels: int, num_nodes: int) -> None:
        super().__init__()
        self.merged: Tensor
        self.rows: Tensor
        self.signs: Tensor
        self.nodes: Tensor
        self.codes: Tensor
        self.register_buffer("merged", torch.zeros(num_codes, dtype=torch.long))
        self.register_buffer("rows", torch.zeros(released, channels))
        self.register_buffer("signs", torch.ones(channels))
        self.register_buffer("nodes", torch.zeros(num_nodes, dtype=torch.long))
        self.register_buffer("codes", torch.zeros(num_nodes, dtype=torch.long))

    @classmethod
    def of(cls, merged: Tensor, rows: Tensor, signs: Tensor, nodes: Tensor, codes: Tensor) -> "CodeBook":
        """Build from its tables; `nodes` and `codes` may have any order."""
        book = cls(len(merged), rows.size(0), rows.size(1), len(nodes))
        order = nodes.argsort()
        tables = {"merged": merged, "rows": rows, "signs": signs, "nodes": nodes[order], "codes": codes[order]}
        for name, value in tables.items():
            getattr(book, name).copy_(value)
        return book

    def sizes(self) -> tuple[int, int, int, int]:
        """Return the arguments of the constructor."""
        return len(self.merged), self.rows.size(0), self.rows.size(1), len(self.nodes)

    def find(self, nodes: Tensor) -> Tensor:
        """Return the codes of nodes by their hashed ids, (n,); -1 for unknown nodes."""
        place = torch.searchsorted(self.nodes, nodes).clamp(max=len(self.nodes) - 1)
        return self.codes[place].where(self.nodes[place] == nodes, -1)
