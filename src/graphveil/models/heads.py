"""Heads, which predict a target from embeddings. All return logits.

Node heads take (..., n, channels) and return (..., n, classes). Link heads take both ends of n pairs, (..., n,
channels) each, and return (..., n); they are symmetric in the ends, since links are undirected. Leading dimensions are
runs, as in `graphveil.models.layers`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil.models import lorentz
from graphveil.models.layers import Affine, times
from graphveil.models.sparse import Pattern, sampled_product


class LinearClassifier(nn.Module):
    """The paper's node classifier, softmax(z psi), with a bias.

    Args:
        in_channels: The number of columns of z.
        num_classes: The number of classes.
    """

    batched = True

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.linear = Affine(in_channels, num_classes)

    def forward(self, z: Tensor) -> Tensor:
        out: Tensor = self.linear(z)
        return out


class MLPClassifier(nn.Module):
    """A node classifier with two hidden layers, for a stronger adversary.

    Args:
        in_channels: The number of columns of z.
        num_classes: The number of classes.
        hidden_channels: The width of the hidden layers.
    """

    batched = True

    def __init__(self, in_channels: int, num_classes: int, hidden_channels: int = 64) -> None:
        super().__init__()
        self.layers = _mlp(in_channels, hidden_channels, num_classes)

    def forward(self, z: Tensor) -> Tensor:
        out: Tensor = self.layers(z)
        return out


class Bilinear(nn.Module):
    """The paper's link predictor z_u' phi z_v for GCN and GAT, with a symmetric phi that starts as the identity.

    Args:
        in_channels: The number of columns of z.
    """

    batched = True

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(in_channels))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, z_u: Tensor, z_v: Tensor) -> Tensor:
        return (times(z_u, self.phi()) * z_v).sum(dim=-1) + self.bias[..., None]

    def phi(self) -> Tensor:
        """Return the symmetric matrix."""
        return (self.weight + self.weight.mT) / 2

    def at(self, z: Tensor, parts: Sequence[Pattern]) -> Tensor:
        """Return the logits of the pairs of sparse patterns, (..., n).

        phi is multiplied with nodes instead of pairs, of which there are many more, and no embeddings are copied.

        Args:
            z: (..., nodes, channels).
            parts: Patterns of pairs of rows of z, which are numbered through all runs.
        """
        left, right = times(z, self.phi()).flatten(0, -2), z.flatten(0, -2)
        products = [sampled_product(left, part, right).view(*z.shape[:-2], -1) for part in parts]
        return torch.cat(products, dim=-1) + self.bias[..., None]


class FermiDirac(nn.Module):
    """The paper's link predictor for HGCN (Krioukov et al., 2010): logit (r - d^2) / t with hyperbolic distance d.

    r, t and the curvature are learned; z are tangent vectors at the origin.

    Args:
        in_channels: The number of columns of z, which is not used.
    """

    batched = True

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        del in_channels  # a distance has no weights per channel
        self.radius = nn.Parameter(torch.tensor(2.0))
        self.raw_temperature = nn.Parameter(torch.tensor(0.5413))  # softplus gives 1
        self.raw_curvature = nn.Parameter(torch.tensor(0.5413))

    def forward(self, z_u: Tensor, z_v: Tensor) -> Tensor:
        distance = lorentz.squared_distance(z_u, z_v, self.curvature()[..., None, None])
        return (self.radius[..., None] - distance) / self.temperature()[..., None]

    def temperature(self) -> Tensor:
        """Return t."""
        return F.softplus(self.raw_temperature)

    def curvature(self) -> Tensor:
        """Return c of the curvature -c."""
        return F.softplus(self.raw_curvature)


class PairMLP(nn.Module):
    """A link predictor with two hidden layers over |a - b|, a * b and a + b, which determine the unordered pair.

    Args:
        in_channels: The number of columns of z.
        hidden_channels: The width of the hidden layers.
    """

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
