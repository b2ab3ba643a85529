"""The encoders, the paper's three and GraphSAGE: two layers from features to embeddings z, (num_nodes, out_channels).

`forward(x, adjacency)` takes features (dense, or a `SparseMatrix`) and the cached `Adjacency`. z is always Euclidean:
HGCN returns coordinates in the tangent space at the origin, so that other code need not know the geometry.

Weights may have a leading dimension of runs (see `graphveil.models.stack`); then z has it too, and features and
adjacency are block-diagonal.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil import kernels
from graphveil.models import lorentz
from graphveil.models.layered import Block, through_layers
from graphveil.models.layers import Dropout, Features, Linear, times
from graphveil.models.sparse import Adjacency, SparseMatrix, attention_shares, weighted_product


class GCN(nn.Module):
    """Graph convolutional network (Kipf and Welling, 2017): z = A relu(A X W1 + b1) W2 + b2.

    Args:
        in_channels: The number of features.
        hidden_channels: The hidden width.
        out_channels: The number of columns of z.
        dropout: The dropout of features and hidden units.
        smoothing: Steps of `smooth`.
        restart: The restart probability of `smooth`.
    """

    batched = True
    depth = 2

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        smoothing: int = 0,
        restart: float = 0.1,
    ) -> None:
        super().__init__()
        self.smoothing, self.restart = smoothing, restart
        self.drop_x, self.drop_h = Dropout(dropout), Dropout(dropout)
        self.first = Linear(in_channels, hidden_channels)
        self.second = Linear(hidden_channels, out_channels)

    def forward(self, x: Features, adjacency: Adjacency) -> Tensor:
        z = through_layers(self, x, [Block.of(adjacency)] * self.depth)
        return smooth(z, adjacency.normalized, self.smoothing, self.restart)

    def project(self, layer: int, h: Features) -> Tensor:
        projected: Tensor = self.second(h) if layer else self.first(self.drop_x(h))
        return projected

    def aggregate(self, layer: int, projected: Tensor, block: Block) -> Tensor:
        total = block.normalized @ projected
        return self.second.shift_(total) if layer else self.drop_h.relu(total, self.first.bias)


class SAGE(nn.Module):
    """GraphSAGE with mean aggregation (Hamilton et al., 2017): h_i = W x_i + V mean over neighbours j of x_j + b.

    Args:
        in_channels: The number of features.
        hidden_channels: The hidden width.
        out_channels: The number of columns of z.
        dropout: The dropout of features and hidden units.
        smoothing: Steps of `smooth`.
        restart: The restart probability of `smooth`.
    """

    batched = True
    depth = 2

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        smoothing: int = 0,
        restart: float = 0.1,
    ) -> None:
        super().__init__()
        self.smoothing, self.restart = smoothing, restart
        self.drop_x, self.drop_h = Dropout(dropout), Dropout(dropout)
        self.first = MeanLayer(in_channels, hidden_channels)
        self.second = MeanLayer(hidden_channels, out_channels)

    def forward(self, x: Features, adjacency: Adjacency) -> Tensor:
        z = through_layers(self, x, [Block.of(adjacency)] * self.depth)
        return smooth(z, adjacency.normalized, self.smoothing, self.restart)

    def project(self, layer: int, h: Features) -> Tensor:
        return self.second.project(h) if layer else self.first.project(self.drop_x(h))

    def aggregate(self, layer: int, projected: Tensor, block: Block) -> Tensor:
        out: Tensor = (self.second if layer else self.first)(projected, block)
        return out if layer else self.drop_h.relu(out)


class GAT(nn.Module):
    """Graph attention network (Velickovic et al., 2018): heads are concatenated, and averaged in the second layer.

    Args:
        in_channels: The number of features.
        hidden_channels: The hidden width of all heads together, a multiple of `heads`.
        out_channels: The number of columns of z.
        dropout: The dropout of features and hidden units.
        attention_dropout: The dropout of attention weights.
        heads: The number of attention heads of each layer.
        smoothing: Steps of `smooth`.
        restart: The restart probability of `smooth`.
    """

    batched = True
    depth = 2

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        attention_dropout: float = 0.3,
        heads: int = 8,
        smoothing: int = 0,
        restart: float = 0.1,
    ) -> None:
        super().__init__()
        if hidden_channels % heads:
            raise ValueError(f"hidden_channels={hidden_channels} must be a multiple of heads={heads}")
        self.smoothing, self.restart = smoothing, restart
        self.drop_x, self.drop_h = Dropout(dropout), Dropout(dropout)
        self.first = Attention(in_channels, hidden_channels // heads, heads, attention_dropout)
        self.second = Attention(hidden_channels, out_channels, heads, attention_dropout)
        self.bias_first = nn.Parameter(torch.zeros(hidden_channels))
        self.bias_second = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x: Features, adjacency: Adjacency) -> Tensor:
        z = through_layers(self, x, [Block.of(adjacency)] * self.depth)
        return smooth(z, adjacency.normalized, self.smoothing, self.restart)

    def project(self, layer: int, h: Features) -> Tensor:
        return self.second.project(h) if layer else self.first.project(self.drop_x(h))

    def aggregate(self, layer: int, projected: Tensor, block: Block) -> Tensor:
        heads: Tensor = (self.second if layer else self.first)(projected, block)
        if layer:
            return heads.mean(dim=-2) + self.bias_second[..., None, :]
        return self.drop_h.elu(heads.flatten(-2), self.bias_first)


class HGCN(nn.Module):
    """Hyperbolic graph convolutional network (Chami et al., 2019), with a learnable curvature for each layer.

    Each layer maps into hyperbolic space, adds its bias by parallel transport, takes the centroid of the neighbours of
    each node, and maps back to the tangent space at the origin, where the activation is applied.

    Args:
        in_channels: The number of features.
        hidden_channels: The hidden width.
        out_channels: The number of columns of z.
        dropout: The dropout of features and hidden units.
        attention: Whether to weight neighbours by attention instead of degrees.
        smoothing: Steps of `smooth`.
        restart: The restart probability of `smooth`.
    """

    batched = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        attention: bool = False,
        smoothing: int = 0,
        restart: float = 0.1,
    ) -> None:
        super().__init__()
        self.smoothing, self.restart = smoothing, restart
        self.drop_x, self.drop_h = Dropout(dropout), Dropout(dropout)
        self.first = HyperbolicLayer(in_channels, hidden_channels, attention)
        self.second = HyperbolicLayer(hidden_channels, out_channels, attention)

    def forward(self, x: Features, adjacency: Adjacency) -> Tensor:
        matrix = adjacency.normalized
        h = self.drop_h.relu(self.first(self.drop_x(x), adjacency))
        return smooth(self.second(h, adjacency), matrix, self.smoothing, self.restart)


class MeanLayer(nn.Module):
    """One layer of GraphSAGE: the sum of a node's own projection, the mean of its neighbours' and a bias."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.own = Linear(in_channels, out_channels)
        self.neighbours = nn.Parameter(torch.empty(in_channels, out_channels))
        nn.init.xavier_uniform_(self.neighbours)

    def project(self, x: Features) -> Tensor:
        """Return both projections side by side, (..., n, 2 * channels), in one pass over x."""
        return times(x, torch.cat([self.own.weight, self.neighbours], dim=-1))

    def forward(self, projected: Tensor, block: Block) -> Tensor:
        own, others = projected.chunk(2, dim=-1)
        return self.own.shift_(block.receivers(own) + block.neighbour_mean(others))


class Attention(nn.Module):
    """Additive attention of each node to its neighbours and itself: (num_nodes, heads, channels)."""

    def __init__(self, in_channels: int, channels: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, heads * channels))
        self.sender = nn.Parameter(torch.empty(heads, channels))
        self.receiver = nn.Parameter(torch.empty(heads, channels))
        self.drop_share = Dropout(dropout)
        for parameter in self.parameters():
            nn.init.xavier_uniform_(parameter)

    def project(self, x: Features) -> Tensor:
        """Return (..., n, heads, channels)."""
        h: Tensor = times(x, self.weight).unflatten(-1, self.sender.shape[-2:])
        return h

    def forward(self, h: Tensor, block: Block) -> Tensor:
        sent, received = self._scores(h, block)
        share = attention_shares(sent, received, block.pattern, present=block.present)
        return weighted_product(self.drop_share(share), block.pattern, h)

    def _scores(self, h: Tensor, block: Block) -> tuple[Tensor, Tensor]:
        """<sender, h> of the senders and <receiver, h> of the receivers for each head, (rows, heads) each."""
        heads = self.sender.size(-2)
        if heads == 1 and kernels.usable(h):  # one product reads h once; sums of products read and write it four times
            both = h.squeeze(-2) @ torch.cat([self.sender, self.receiver], dim=-2).mT
            return both[..., :1].reshape(-1, 1), block.receivers(both[..., 1:]).reshape(-1, 1)
        sent, received = (
            (rows * vector[..., None, :, :]).sum(-1).reshape(-1, heads)
            for rows, vector in ((h, self.sender), (block.receivers(h, dim=-3), self.receiver))
        )
        return sent, received


class HyperbolicLayer(nn.Module):
    """One layer of HGCN, from tangent vectors to tangent vectors at the origin."""

    def __init__(self, in_channels: int, out_channels: int, attention: bool) -> None:
        super().__init__()
        self.linear = Linear(in_channels, out_channels)
        self.raw_curvature = nn.Parameter(torch.tensor(0.5413))  # softplus gives 1
        self.scorer = nn.Parameter(torch.empty(2, out_channels)) if attention else None
        if self.scorer is not None:
            nn.init.xavier_uniform_(self.scorer)

    def forward(self, v: Features, adjacency: Adjacency) -> Tensor:
        matrix = adjacency.normalized
        c = F.softplus(self.raw_curvature)[..., None, None]
        tangent = self.linear(v)
        points = lorentz.exp0_and_translate(tangent, self.linear.bias[..., None, :], c)
        if self.scorer is None:
            return lorentz.log0(lorentz.centroid(matrix, points, c), c)
        sender, receiver = (tangent @ self.scorer.mT).reshape(-1, 2).unbind(dim=1)
        share = attention_shares(sender[:, None], receiver[:, None], matrix.pattern, present=adjacency.present)
        total = weighted_product(share.double(), matrix.pattern, lorentz.ambient(points, c)[..., None, :]).squeeze(-2)
        return lorentz.log0(lorentz.to_hyperboloid(total, c).to(points.dtype), c)


def smooth(z: Tensor, matrix: SparseMatrix, times: int, restart: float) -> Tensor:
    """Smooth embeddings by personalised PageRank (Klicpera et al., 2019), which helps if there are few labels.

    z <- (1 - restart) A z + restart z_0, `times` times.
    """
    start = z
    for _ in range(times):
        z = torch.lerp(matrix @ z, start, restart)
    return z
