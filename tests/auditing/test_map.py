"""The picture of embeddings: the same points on both sides, whatever the embeddings are like."""

import numpy as np
import pytest
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing.map import POINTS, draw
from graphveil.auditing.panel import resolve_secret
from graphveil.auditing.result import Context


@pytest.mark.parametrize("secret", ["labels", "links"])
def test_points_and_their_secrets(graph: Data, split: gv.Split, secret: str) -> None:
    z = np.random.default_rng(0).normal(size=(1800, 6))
    asked = resolve_secret(secret, graph, split, 0, Context())
    found = draw(asked, z, before=z + 1)
    assert found is not None
    assert found.of == ("pairs" if secret == "links" else "nodes")
    assert found.before is not None
    counts = {len(found.classes), *(len(axis) for side in (found.before, found.after) for axis in (side.x, side.y))}
    assert counts == {POINTS}
    assert max(found.classes) < len(found.names)
    assert found == draw(asked, z, before=z + 1), "the same again"


@pytest.mark.parametrize("z", [np.zeros((1800, 3)), np.arange(1800.0)[:, None], np.ones((1800, 1))])
def test_embeddings_without_a_plane_are_drawn_all_the_same(graph: Data, split: gv.Split, z: np.ndarray) -> None:
    found = draw(resolve_secret("labels", graph, split, 0, Context()), z)
    assert found is not None
    assert np.isfinite(found.after.x).all()


def test_too_few_points_are_no_picture() -> None:
    club = gv.load("karate")
    parts = gv.Split.proportional(club, 0)
    asked = resolve_secret("labels", club, parts, 0, Context())
    z = np.random.default_rng(0).normal(size=(34, 3))
    assert (draw(asked, z) is None) == (len(asked.test.y) < 5)
