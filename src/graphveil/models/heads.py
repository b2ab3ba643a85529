"""What predicts a target from embeddings. All heads return logits.

Node heads take (..., n, channels) and give (..., n, classes). Link heads take the two ends of n pairs and give
(..., n); they are symmetric in the ends, since a link has no direction. Leading dimensions are runs, as in
`graphveil.models.layers`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil.models import lorentz
from graphveil.models.layers import Affine, times
from graphveil.models.sparse import Pattern, sampled_product


class LinearClassifier(nn.Module):
    """The paper's node classifier, softmax(z psi), with a bias."""

    batched = True

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.linear = Affine(in_channels, num_classes)

    def forward(self, z: Tensor) -> Tensor:
        out: Tensor = self.linear(z)
        return out


class MLPClassifier(nn.Module):
    """Two hidden layers, for an adversary that is not fooled by a rotation."""

    batched = True

    def __init__(self, in_channels: int, num_classes: int, hidden_channels: int = 64) -> None:
        super().__init__()
        self.layers = _mlp(in_channels, hidden_channels, num_classes)

    def forward(self, z: Tensor) -> Tensor:
        out: Tensor = self.layers(z)
        return out


class Bilinear(nn.Module):
    """The paper's link predictor z_u' phi z_v for GCN and GAT, with a symmetric phi that starts as the identity."""

    batched = True

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(in_channels))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, z_u: Tensor, z_v: Tensor) -> Tensor:
        return (times(z_u, self.phi()) * z_v).sum(dim=-1) + self.bias[..., None]

    def phi(self) -> Tensor:
        """The symmetric form."""
        return (self.weight + self.weight.mT) / 2

    def at(self, z: Tensor, parts: Sequence[Pattern]) -> Tensor:
        """The logits of the pairs that each part names by rows of z counted through all runs, (..., n).

        phi meets the nodes here and not the pairs, of which there are many more, and no pair's embeddings are copied.
        """
        left, right = times(z, self.phi()).flatten(0, -2), z.flatten(0, -2)
        products = [sampled_product(left, part, right).view(*z.shape[:-2], -1) for part in parts]
        return torch.cat(products, dim=-1) + self.bias[..., None]


class FermiDirac(nn.Module):
    """The paper's link predictor for HGCN (Krioukov et al., 2010): logit (r - d^2) / t with hyperbolic d.

    r, t and the curvature are learned; z is taken as tangent vectors at the origin.
    """

    batched = True

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        del in_channels  # a distance has no weight a channel
        self.radius = nn.Parameter(torch.tensor(2.0))
        self.raw_temperature = nn.Parameter(torch.tensor(0.5413))  # softplus gives 1
        self.raw_curvature = nn.Parameter(torch.tensor(0.5413))

    def forward(self, z_u: Tensor, z_v: Tensor) -> Tensor:
        distance = lorentz.squared_distance(z_u, z_v, F.softplus(self.raw_curvature)[..., None, None])
        return (self.radius[..., None] - distance) / F.softplus(self.raw_temperature)[..., None]


class PairMLP(nn.Module):
    """Two hidden layers over |a - b|, a * b and a + b, which together determine the unordered pair's geometry."""

    batched = True

    def __init__(self, in_channels: int, hidden_channels: int = 64) -> None:
        super().__init__()
        self.layers = _mlp(3 * in_channels, hidden_channels, 1)

    def forward(self, z_u: Tensor, z_v: Tensor) -> Tensor:
        pair = torch.cat([(z_u - z_v).abs(), z_u * z_v, z_u + z_v], dim=-1)
        out: Tensor = self.layers(pair).squeeze(-1)
        return out


def _mlp(in_channels: int, hidden_channels: int, out_channels: int) -> nn.Sequential:
    return nn.Sequential(
        Affine(in_channels, hidden_channels),
        nn.ReLU(),
        Affine(hidden_channels, hidden_channels),
        nn.ReLU(),
        Affine(hidden_channels, out_channels),
    )
