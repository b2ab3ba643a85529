import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import graphveil as gv
from graphveil.models import LINK_HEADS, NODE_HEADS, build_head
from graphveil.models.heads import Bilinear, FermiDirac


@pytest.mark.parametrize("name", NODE_HEADS)
def test_every_node_head_gives_a_logit_a_class(name: str) -> None:
    head = build_head(name, "labels", in_channels=5, num_classes=3)
    assert head(torch.randn(7, 5)).shape == (7, 3)


@pytest.mark.parametrize("name", LINK_HEADS)
def test_every_link_head_gives_one_logit_a_pair_whatever_its_order(name: str) -> None:
    head = build_head(name, "links", in_channels=5, num_classes=2)
    for parameter in head.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape)
    u, v = torch.randn(2, 7, 5)
    assert head(u, v).shape == (7,)
    assert torch.allclose(head(u, v), head(v, u), rtol=0, atol=1e-5)


def test_bilinear_starts_as_the_dot_product() -> None:
    u, v = torch.randn(2, 7, 5)
    assert torch.allclose(Bilinear(5)(u, v), (u * v).sum(dim=1), rtol=0, atol=1e-6)


def test_fermi_dirac_by_hand() -> None:
    """Opposite points at distance 1 from the origin, curvature -1: d = 2, so the logit is (2 - 4) / 1."""
    head = FermiDirac(1)
    assert head(torch.tensor([[1.0]]), torch.tensor([[-1.0]])).item() == pytest.approx(-2, abs=2e-3)
    assert head(torch.tensor([[1.0]]), torch.tensor([[1.0]])).item() == pytest.approx(2, abs=2e-3)


class Constant(Bilinear):
    """A head of one's own made from ours."""

    def forward(self, z_u: Tensor, z_v: Tensor) -> Tensor:
        del z_v
        return z_u.sum(dim=-1) * 0 + self.bias


def test_a_subclass_of_the_bilinear_head_uses_its_own_forward(small: Data, small_split: gv.Split) -> None:
    recipe = gv.Recipe(rounds=3, hidden_channels=8, out_channels=4, head=Constant)
    veil = gv.Veil(recipe=recipe, device="cpu").fit(small, small_split)
    assert veil.score(small, small_split).utility == 0.5, "a constant tells nothing"
