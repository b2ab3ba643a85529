"""The rows of pairs."""

import numpy as np

from graphveil.auditing.pairs import DISTANCES, MAX_COLUMNS, geometry
from tests.auditing.made import noise


def test_pairs_of_very_wide_embeddings_are_described_by_principal_components() -> None:
    pairs = np.array([[0, 1], [2, 3]])
    assert geometry(noise(1, columns=40, nodes=500))(pairs).shape == (2, 5 * 40 + 24)
    assert geometry(noise(1, columns=400, nodes=500))(pairs).shape == (2, 3 * MAX_COLUMNS + 24)


def test_distances_by_hand() -> None:
    """Between (3, 4) and (-4, 3), which are at right angles, and between (1, 3) and (3, 1)."""
    a, b = np.array([[3.0, 4.0], [1.0, 3.0]]), np.array([[-4.0, 3.0], [3.0, 1.0]])
    expected: dict[str, list[float]] = {
        "cosine": [1, 1 - 6 / 10],
        "correlation": [0, 2],
        "Euclidean": [50**0.5, 8**0.5],
        "city block": [8, 4],
        "Chebyshev": [7, 2],
        "Bray-Curtis": [8 / 8, 4 / 8],
        "Canberra": [7 / 7 + 1 / 7, 2 / 4 + 2 / 4],
        "inner product": [0, -6],
    }
    assert set(expected) == set(DISTANCES)
    for name, values in expected.items():
        np.testing.assert_allclose(DISTANCES[name](a, b), values, atol=1e-12, err_msg=name)


def test_the_geometry_of_a_pair_does_not_depend_on_its_order() -> None:
    rows = geometry(noise(1, columns=5, nodes=60))
    pairs = np.random.default_rng(0).integers(0, 60, (2, 40))
    np.testing.assert_allclose(rows(pairs), rows(pairs[::-1]), atol=1e-6)
