"""The map of embeddings: the same points before and after, for all kinds of embeddings."""

import numpy as np
import pytest
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import Context
from graphveil.auditing.map import MOST_CODES, POINTS, count_codes, count_pairs, draw
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


def test_codes_are_counted_by_class_the_most_frequent_first() -> None:
    codes = np.repeat([0, 1], [5, 15])
    y = np.array([0, 0, 0, 1, -1, *[0] * 5, *[1] * 10])
    result = count_codes(codes, y, ["a", "b"])
    assert result is not None
    assert result.counts == ((5, 10), (3, 1)), "a node with an unknown class is not counted"
    assert (result.of, result.codes, result.names) == ("nodes", 2, ("a", "b"))


def test_rare_codes_are_counted_together() -> None:
    codes = np.repeat(np.arange(MOST_CODES + 5), 6)
    codes = np.concatenate([codes, np.zeros(20, dtype=np.int64)])
    result = count_codes(codes, np.zeros_like(codes), ["a"])
    assert result is not None
    assert len(result.counts) == MOST_CODES
    assert result.codes == MOST_CODES + 5
    assert result.counts[0] == (26,)
    assert result.counts[-1] == (6 * 6,), "the last six codes"
    assert sum(count for (count,) in result.counts) == len(codes)


def test_pairs_are_counted_by_their_two_codes_in_any_order() -> None:
    codes = np.repeat([0, 1], [5, 5])
    pairs = np.array([[0, 5, 0, 0, 1, *[1] * 5], [5, 0, 1, 1, 2, *[6] * 5]])
    result = count_pairs(codes, pairs, np.array([1, 0, 1, 1, 0, *[1] * 5]))
    assert result is not None
    assert result.counts == ((1, 6), (1, 2)), "codes 0 and 1; code 0 twice"
    assert (result.of, result.names) == ("pairs", ("no link", "link"))
    assert count_pairs(np.arange(10), pairs, np.zeros(10, dtype=np.int64)) is None


def test_only_codes_are_counted(graph: Data, split: gv.Split) -> None:
    z = np.repeat(np.eye(3), 600, axis=0)
    labels = resolve_secret("labels", graph, split, 0, Context())
    found, continuous = draw(labels, z), draw(labels, np.random.default_rng(0).normal(size=(1800, 3)))
    assert found is not None
    assert found.codes is not None
    assert [sum(row) for row in found.codes.counts] == [600, 600, 600], "of all nodes, not of a sample"
    assert continuous is not None
    assert continuous.codes is None
    links = resolve_secret("links", graph, split, 0, Context())
    pairs = draw(links, z)
    assert pairs is not None
    assert pairs.codes is not None
    assert sum(map(sum, pairs.codes.counts)) == len(links.test.y)
    assert pairs.codes.codes <= 6, "pairs of three codes"
