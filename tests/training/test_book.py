"""How many codes there are, and the rows that they stand for."""

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.training.book import code_shape, factor


@pytest.mark.parametrize(("nodes", "classes", "size"), [(34, 2, 2), (962, 2, 4), (2708, 7, 6), (2708, 70, 3)])
def test_the_number_of_codes_follows_nodes_and_classes(nodes: int, classes: int, size: int) -> None:
    assert code_shape(gv.Recipe(), nodes, classes).size == size
    assert code_shape(gv.Recipe(code_groups=2, code_size=4), nodes, classes).codes == 16


def test_few_codes_are_not_spent_on_degrees(planted: Data, parts: gv.Split) -> None:
    few, many = (gv.Veil(recipe=gv.Veil().recipe.but(rounds=1, code_size=size)) for size in (4, 5))
    assert few.recipe.code_degree
    assert few.fit(planted, parts).modules_["encoder"].degree is None
    assert many.fit(planted, parts).modules_["encoder"].degree is not None


def test_signed_rows_give_the_scores_back() -> None:
    scores = torch.randn(9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores = scores + scores.T + 5 * torch.arange(9)[:, None] + 5 * torch.arange(9)[None]
    rows, signs = factor(scores, 9)
    assert torch.allclose((rows * signs) @ rows.T, scores, atol=1e-9)
    assert (signs < 0).any(), "no inner product has these scores"
    few, sign = factor(scores, 3)
    assert ((few * sign) @ few.T - scores).norm() < 0.2 * scores.norm()
