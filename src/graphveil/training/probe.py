"""A probe: an attack that is solved in closed form, so that it never lags behind the encoder. Selection uses it.

An adversary that is trained by gradient steps lags some rounds behind z. The probe is a ridge regression on random
features f of the present z. f are the embeddings (of a pair: products, differences, sums, distances) and cosines of
their random projections, the features of a Gaussian kernel (Rahimi and Recht, 2007). All of f is standardised, so that
shrinking z hides nothing, and clipped and standardised again, so that moving a few nodes far away hides nothing either.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil.randomness import Noise
from graphveil.training.targets import Examples, LearnedTarget, ListedExamples, Rows, metric_value

MAX_EXAMPLES = 4096
"""The largest number of training examples; of more, a sample is used."""
PROJECTIONS = 256
SHARPNESS = (0.5, 1.5)
"""Inverse widths of the kernels, from the widest to the narrowest."""
RIDGE = 0.01
FARTHEST = 5.0
"""Embeddings are clipped at this number of standard deviations."""


@dataclass(frozen=True)
class Draws:
    """The random numbers of the probes of one training: of the sample of examples, and of the projections."""

    examples: Noise
    projections: Noise


def probe(target: LearnedTarget, z: Tensor, train: Examples, val: Examples, draws: Draws) -> Tensor:
    """Fit a probe on training examples and return its validation AUC or accuracy, (...).

    Args:
        target: The target to predict.
        z: (..., nodes, channels).
        train: The training examples.
        val: The validation examples.
        draws: The random numbers.
    """
    with torch.no_grad():
        rows = Rows(z, _sample(train, draws.examples))
        transform = _RandomFeatures(rows, draws.projections)
        f, y = transform(rows), _classes(target, rows.examples.y)
        weights = torch.cholesky_solve(_mean_product(f, y), _root(_mean_product(f, f), _ridge(f)))
        centred = transform(Rows(z, val)) - f.mean(dim=-2, keepdim=True)
        return metric_value(target, centred @ weights + target.prior[..., None, :], val.y)


class _RandomFeatures:
    """Random features of embeddings, standardised by the moments of the rows that it was built from."""

    def __init__(self, rows: Rows, projections: Noise) -> None:
        self._of_z = _moments(torch.cat(rows.gathered, dim=-2))
        self._of_view = _moments(self._view(rows))
        channels = self._of_view[0][0].size(-1)
        shape = (*rows.z.shape[:-2], channels + 1, PROJECTIONS)
        drawn = projections.normal((channels + 1) * PROJECTIONS).view(shape).to(rows.z.dtype)
        sharpness = torch.linspace(*SHARPNESS, PROJECTIONS, dtype=drawn.dtype, device=drawn.device)
        self._directions = drawn[..., :-1, :] * sharpness / math.sqrt(channels)
        self._phases = drawn[..., -1:, :] * 10  # a normal distribution this wide is uniform on the circle

    def __call__(self, rows: Rows) -> Tensor:
        """(..., n, features)."""
        view = _standardised(self._view(rows), self._of_view)
        waves = math.sqrt(2) * torch.cos(view @ self._directions + self._phases)
        return torch.cat([view, waves], dim=-1)

    def _view(self, rows: Rows) -> Tensor:
        ends = [_standardised(end, self._of_z) for end in rows.gathered]
        if len(ends) == 1:
            return ends[0]
        a, b = ends
        distance = ((a - b).square().sum(dim=-1, keepdim=True) + 1e-6).sqrt()
        cosine = F.cosine_similarity(a, b, dim=-1).unsqueeze(-1)
        return torch.cat([(a - b).abs(), a * b, a + b, distance, distance.log(), cosine], dim=-1)


def _sample(examples: Examples, noise: Noise) -> Examples:
    count = examples.y.size(-1)
    if count <= MAX_EXAMPLES:
        return examples
    chosen = noise.ascending_integers(count, MAX_EXAMPLES).view(*examples.y.shape[:-1], MAX_EXAMPLES)
    index = examples.index.gather(-1, chosen.expand(*examples.index.shape[:-1], MAX_EXAMPLES))
    return ListedExamples(index, examples.y.gather(-1, chosen))


def _classes(target: LearnedTarget, y: Tensor) -> Tensor:
    return F.one_hot(y, target.num_classes).to(target.prior.dtype)


def _ridge(f: Tensor) -> float:
    """The ridge, larger if there are fewer examples than features, which would then fit anything."""
    return RIDGE + max(0.0, f.size(-1) / f.size(-2) - 1)


def _moments(x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Mean and deviation of x, and again after clipping, twice: a single outlier would dominate the first."""
    moments = []
    for _ in range(3):
        mean = x.mean(dim=-2, keepdim=True)
        moments.append((mean, ((x - mean).square().mean(dim=-2, keepdim=True) + 1e-8).sqrt()))
        x = _standardised(x, moments[-1:])
    return moments


def _standardised(x: Tensor, moments: list[tuple[Tensor, Tensor]]) -> Tensor:
    for mean, deviation in moments:
        x = ((x - mean) / deviation).clamp(-FARTHEST, FARTHEST)
    return x


def _mean_product(a: Tensor, b: Tensor) -> Tensor:
    return (a - a.mean(dim=-2, keepdim=True)).mT @ (b - b.mean(dim=-2, keepdim=True)) / a.size(-2)


def _root(covariance: Tensor, added: float) -> Tensor:
    """The Cholesky factor, without a check for success, which a GPU could not replay."""
    eye = torch.eye(covariance.size(-1), dtype=covariance.dtype, device=covariance.device)
    root: Tensor = torch.linalg.cholesky_ex(covariance + added * eye).L
    return root
