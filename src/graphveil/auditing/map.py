"""A two-dimensional map of embeddings, with the secret of each point."""

import numpy as np
from sklearn.manifold import TSNE

from graphveil.auditing.attacks import standardised
from graphveil.auditing.secret import Secret
from graphveil.formats.audit import Map, Plane

POINTS, FEWEST = 300, 5


def draw(secret: Secret, z: np.ndarray, before: np.ndarray | None = None, seed: int = 0) -> Map | None:
    """Map up to 300 test examples by t-SNE: nodes, or pairs by the difference and the product of their rows.

    The map shows secrets, so it is only for people who may see them.

    Args:
        secret: the secret with the test examples.
        z: embeddings, (num_nodes, channels).
        before: other embeddings of the same nodes for a second map, such as those of an unprotected encoder.
        seed: the seed of the sample and of t-SNE.

    Returns:
        The coordinates and classes of the points; None with too few test examples.
    """
    if len(secret.test.y) < FEWEST:
        return None
    chosen = np.random.default_rng(seed).permutation(len(secret.test.y))[:POINTS]
    y = secret.test.y[chosen]
    return Map(
        of=secret.target.queries,
        before=None if before is None else _plane(_view(secret, before, chosen), seed),
        after=_plane(_view(secret, z, chosen), seed),
        classes=tuple(y.tolist()),
        names=tuple(secret.class_names),
    )


def _view(secret: Secret, z: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    index = secret.test.index[..., chosen]
    if not secret.target.is_links:
        return z[index]
    a, b = z[index[0]], z[index[1]]
    return np.concatenate([np.abs(a - b), a * b], axis=1)


def _plane(x: np.ndarray, seed: int) -> Plane:
    scaled = standardised(np.pad(x, ((0, 0), (0, max(0, 2 - x.shape[1])))))  # the PCA at the start needs two columns
    # exact ties, as in collapsed embeddings, would divide by zero in t-SNE
    jitter = 1e-6 * np.random.default_rng(seed).standard_normal(scaled.shape)
    perplexity = min(30.0, (len(x) - 1) / 3)
    placed = TSNE(init="pca", perplexity=perplexity, random_state=seed, n_jobs=1).fit_transform(scaled + jitter)
    return Plane(*(tuple(column.round(2).tolist()) for column in placed.T))
