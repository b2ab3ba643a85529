"""A picture of embeddings on a plane, each point coloured by its secret: for people who would rather look than read."""

import numpy as np
from sklearn.manifold import TSNE

from graphveil.auditing.attacks import standardised
from graphveil.auditing.secret import LinkSecret, Secret
from graphveil.formats.audit import Map, Plane

POINTS, FEWEST = 300, 5


def draw(secret: Secret, z: np.ndarray, before: np.ndarray | None = None, seed: int = 0) -> Map | None:
    """Up to 300 test examples of a secret as t-SNE places them: nodes, or pairs by their differences and products.

    None where there are too few to draw.

    Args:
        before: other embeddings of the same nodes, drawn beside, such as an unprotected encoder's.

    The picture shows secrets: it is for those who may see them.
    """
    if len(secret.test.y) < FEWEST:
        return None
    chosen = np.random.default_rng(seed).permutation(len(secret.test.y))[:POINTS]
    is_pairs = isinstance(secret, LinkSecret)
    y = secret.test.y[chosen]
    return Map(
        of="pairs" if is_pairs else "nodes",
        before=None if before is None else _plane(_view(secret, before, chosen), seed),
        after=_plane(_view(secret, z, chosen), seed),
        classes=tuple(y.tolist()),
        names=tuple(secret.class_names),
    )


def _view(secret: Secret, z: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    index = secret.test.index[..., chosen]
    if not isinstance(secret, LinkSecret):
        return z[index]
    a, b = z[index[0]], z[index[1]]
    return np.concatenate([np.abs(a - b), a * b], axis=1)


def _plane(x: np.ndarray, seed: int) -> Plane:
    scaled = standardised(np.pad(x, ((0, 0), (0, max(0, 2 - x.shape[1])))))  # a plane wants two columns to begin with
    # exact ties, as collapsed embeddings have, would divide by zero inside
    jitter = 1e-6 * np.random.default_rng(seed).standard_normal(scaled.shape)
    perplexity = min(30.0, (len(x) - 1) / 3)
    placed = TSNE(init="pca", perplexity=perplexity, random_state=seed, n_jobs=1).fit_transform(scaled + jitter)
    return Plane(*(tuple(column.round(2).tolist()) for column in placed.T))
