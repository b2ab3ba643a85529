"""The map of embeddings: the same points before and after, for all kinds of embeddings."""

import numpy as np
import pytest
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import Context
from graphveil.auditing.map import POINTS, draw
from graphveil.auditing.panel import resolve_secret


@pytest.mark.parametrize("secret", ["labels", "links"])
def test_points_and_their_secrets(graph: Data, split: gv.Split, secret: str) -> None:
    z = np.random.default_rng(0).normal(size=(1800, 6))
    attacked = resolve_secret(secret, graph, split, 0, Context())
    result = draw(attacked, z, before=z + 1)
    assert result is not None
    assert result.of == ("pairs" if secret == "links" else "nodes")
    assert result.before is not None
    counts = {len(result.classes), *(len(axis) for side in (result.before, result.after) for axis in (side.x, side.y))}
    assert counts == {POINTS}
    assert max(result.classes) < len(result.names)
    assert result == draw(attacked, z, before=z + 1), "the map is deterministic"


@pytest.mark.parametrize("z", [np.zeros((1800, 3)), np.arange(1800.0)[:, None], np.ones((1800, 1))])
def test_embeddings_of_rank_below_two_have_a_map(graph: Data, split: gv.Split, z: np.ndarray) -> None:
    result = draw(resolve_secret("labels", graph, split, 0, Context()), z)
    assert result is not None
    assert np.isfinite(result.after.x).all()


def test_too_few_points_have_no_map() -> None:
    club = gv.load("karate")
    parts = gv.Split.proportional(club, 0)
    attacked = resolve_secret("labels", club, parts, 0, Context())
    z = np.random.default_rng(0).normal(size=(34, 3))
    assert (draw(attacked, z) is None) == (len(attacked.test.y) < 5)
