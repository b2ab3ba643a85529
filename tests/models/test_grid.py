"""The grid of continuous embeddings."""

from pathlib import Path

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.auditing.embeddings import value_bits
from graphveil.models.grid import STEPS, Grid


def test_columns_are_whole_multiples_of_a_power_of_two() -> None:
    z = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 1e-6, 300.0])
    grid = Grid.of(z)
    assert torch.equal(grid.steps.log2(), grid.steps.log2().round())
    share = z.std(dim=0) / grid.steps
    assert ((share >= STEPS) & (share < 2 * STEPS)).all()
    rounded = grid(z)
    assert torch.equal(rounded, grid(rounded)), "what is on the grid stays where it is"
    assert ((rounded - z).abs() <= grid.steps / 2).all()
    assert max(value_bits(column) for column in rounded.double().numpy().T) < 9


def test_a_column_that_never_changes_is_no_fault() -> None:
    z = torch.tensor([[0.3, 1.0], [0.3, 2.0]])
    assert Grid.of(z)(z)[:, 0].tolist() == [0.0, 0.0]


def test_tiny_and_huge_columns_stay_finite_and_zero_has_one_sign() -> None:
    for scale in (1e-45, 1e-38, 1e30):
        z = torch.tensor([[1.0], [2.0], [3.0]]) * scale
        assert Grid.of(z)(z).isfinite().all()
    z = torch.tensor([[-0.01], [0.01], [5.0]])
    assert not Grid.of(z)(z)[:2].signbit().any()


@pytest.mark.parametrize(("utility", "secret"), [("links", "labels"), ("labels", "links")])
def test_continuous_embeddings_are_released_and_scored_on_the_grid(utility: str, secret: str, tmp_path: Path) -> None:
    graph = gv.load("karate")
    split = gv.Split.proportional(graph, 0, message_edges="train" if utility == "links" else "all")
    veil = gv.Veil(utility, secret, objective="club", device="cpu")
    veil.recipe = veil.recipe.but(rounds=5)
    z = veil.fit(graph, split).transform(graph, split)
    assert max(value_bits(column) for column in z.double().numpy().T) < 12
    assert not np.array_equal(z.numpy(), veil.encode(graph, split).numpy())
    veil.save(tmp_path)
    loaded = gv.Veil.load(tmp_path)
    assert torch.equal(loaded.transform(graph, split), z)
    assert loaded.score(graph, split) == veil.score(graph, split)
