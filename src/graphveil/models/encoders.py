"""The paper's three encoders: two layers from features to embeddings z, (num_nodes, out_channels).

`forward(x, adjacency)` takes features (dense, or a `SparseMatrix`) and the cached `Adjacency`. z is always Euclidean:
HGCN returns coordinates in the tangent space at the origin, so nothing after the encoder knows about geometry.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil.models import lorentz
from graphveil.models.sparse import Adjacency, SparseMatrix, segment_softmax, weighted_product

Features = Tensor | SparseMatrix


class GCN(nn.Module):
    """Graph convolutional network (Kipf and Welling, 2017): z = A relu(A X W1 + b1) W2 + b2."""

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, dropout: float = 0.5, smoothing: int = 0
    ) -> None:
        super().__init__()
        self.dropout, self.smoothing = dropout, smoothing
        self.first = Linear(in_channels, hidden_channels)
        self.second = Linear(hidden_channels, out_channels)

    def forward(self, x: Features, adjacency: Adjacency) -> Tensor:
        matrix = adjacency.normalized
        x = drop(x, self.dropout, self.training)
        h = F.relu(matrix @ self.first(x) + self.first.bias)
        h = F.dropout(h, self.dropout, self.training)
        return smooth(matrix @ self.second(h) + self.second.bias, matrix, self.smoothing)


class GAT(nn.Module):
    """Graph attention network (Velickovic et al., 2018): several heads joined, then several averaged."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        attention_dropout: float = 0.3,
        heads: int = 8,
        smoothing: int = 0,
    ) -> None:
        super().__init__()
        if hidden_channels % heads:
            raise ValueError(f"hidden_channels={hidden_channels} must be a multiple of heads={heads}")
        self.dropout, self.smoothing = dropout, smoothing
        self.first = Attention(in_channels, hidden_channels // heads, heads, attention_dropout)
        self.second = Attention(hidden_channels, out_channels, heads, attention_dropout)
        self.bias_first = nn.Parameter(torch.zeros(hidden_channels))
        self.bias_second = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x: Features, adjacency: Adjacency) -> Tensor:
        matrix = adjacency.normalized
        x = drop(x, self.dropout, self.training)
        h = F.elu(self.first(x, matrix).flatten(1) + self.bias_first)
        h = F.dropout(h, self.dropout, self.training)
        return smooth(self.second(h, matrix).mean(dim=1) + self.bias_second, matrix, self.smoothing)


class HGCN(nn.Module):
    """Hyperbolic graph convolutional network (Chami et al., 2019), with a learnable curvature a layer.

    Each layer maps into hyperbolic space, adds its bias by parallel transport, moves every node to the centroid of its
    neighbours, and comes back to the tangent space at the origin for the activation and the next layer's curvature.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        attention: bool = False,
        smoothing: int = 0,
    ) -> None:
        super().__init__()
        self.dropout, self.smoothing = dropout, smoothing
        self.first = HyperbolicLayer(in_channels, hidden_channels, attention)
        self.second = HyperbolicLayer(hidden_channels, out_channels, attention)

    def forward(self, x: Features, adjacency: Adjacency) -> Tensor:
        matrix = adjacency.normalized
        h = F.relu(self.first(drop(x, self.dropout, self.training), matrix))
        return smooth(self.second(F.dropout(h, self.dropout, self.training), matrix), matrix, self.smoothing)


class Linear(nn.Module):
    """X W for dense or sparse X, with Glorot's initialisation; the bias is the caller's to place."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Features) -> Tensor:
        return x @ self.weight


class Attention(nn.Module):
    """Additive attention over each node's neighbours and itself: (num_nodes, heads, channels)."""

    def __init__(self, in_channels: int, channels: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.weight = nn.Parameter(torch.empty(in_channels, heads * channels))
        self.sender = nn.Parameter(torch.empty(heads, channels))
        self.receiver = nn.Parameter(torch.empty(heads, channels))
        for parameter in self.parameters():
            nn.init.xavier_uniform_(parameter)

    def forward(self, x: Features, matrix: SparseMatrix) -> Tensor:
        h = (x @ self.weight).view(-1, *self.sender.shape)
        share = attention_shares((h * self.sender).sum(-1), (h * self.receiver).sum(-1), matrix)
        return weighted_product(F.dropout(share, self.dropout, self.training), matrix, h)


class HyperbolicLayer(nn.Module):
    """One layer of HGCN, from tangent vectors to tangent vectors at the origin."""

    def __init__(self, in_channels: int, out_channels: int, attention: bool) -> None:
        super().__init__()
        self.linear = Linear(in_channels, out_channels)
        self.raw_curvature = nn.Parameter(torch.tensor(0.5413))  # softplus gives 1
        self.scorer = nn.Parameter(torch.empty(2, out_channels)) if attention else None
        if self.scorer is not None:
            nn.init.xavier_uniform_(self.scorer)

    def forward(self, v: Features, matrix: SparseMatrix) -> Tensor:
        c = F.softplus(self.raw_curvature)
        tangent = self.linear(v)
        points = lorentz.translate(lorentz.exp0(tangent, c), self.linear.bias, c)
        if self.scorer is None:
            return lorentz.log0(lorentz.centroid(matrix, points, c), c)
        sender, receiver = (tangent @ self.scorer.t()).unbind(dim=1)
        share = attention_shares(sender[:, None], receiver[:, None], matrix)
        total = weighted_product(share.double(), matrix, lorentz.ambient(points, c)[:, None]).squeeze(1)
        return lorentz.log0(lorentz.to_hyperboloid(total, c).to(points.dtype), c)


def attention_shares(sender: Tensor, receiver: Tensor, matrix: SparseMatrix) -> Tensor:
    """softmax over j of leaky_relu(receiver_i + sender_j), (entries, heads) from two (num_nodes, heads)."""
    scores = F.leaky_relu(receiver[matrix.row] + sender[matrix.col], 0.2)
    return segment_softmax(scores, matrix)


def smooth(z: Tensor, matrix: SparseMatrix, times: int, keep: float = 0.1) -> Tensor:
    """Personalised PageRank of the embeddings (Klicpera et al., 2019), which carries few labels further.

    z <- (1 - keep) A z + keep z_0, a few times.
    """
    start = z
    for _ in range(times):
        z = torch.lerp(matrix @ z, start, keep)
    return z


def drop(x: Features, p: float, training: bool) -> Features:
    """Dropout of dense or sparse features."""
    return x.dropout(p, training) if isinstance(x, SparseMatrix) else F.dropout(x, p, training)
