import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import graphveil as gv
from graphveil.errors import GraphveilError
from graphveil.models import LINK_HEADS, NODE_HEADS, build_encoder, build_head
from graphveil.models.build import EdgeIndexEncoder, spec_name
from graphveil.models.encoders import GCN
from graphveil.models.heads import Bilinear, FermiDirac, LinearClassifier


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


def test_names_classes_instances_and_import_paths() -> None:
    sizes = {"in_channels": 5, "hidden_channels": 4, "out_channels": 3, "dropout": 0.1}
    for spec in ("gcn", GCN, "graphveil.models.encoders:GCN"):
        assert isinstance(build_encoder(spec, **sizes), GCN)
    instance = GCN(5, 4, 3)
    built = build_encoder(instance, **sizes)
    assert isinstance(built, GCN)
    assert built is not instance, "the caller's module is never trained in place"
    assert [spec_name(s) for s in ("gcn", GCN, instance)] == ["gcn", *["graphveil.models.encoders:GCN"] * 2]


def test_pygs_own_models_serve_as_encoders() -> None:
    sizes = {"in_channels": 5, "hidden_channels": 4, "out_channels": 3, "dropout": 0.1, "num_layers": 2}
    assert isinstance(build_encoder("torch_geometric.nn:GraphSAGE", **sizes), EdgeIndexEncoder)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("gnc", r"unknown encoder 'gnc'.*gcn.*Did you mean 'gcn'"),
        ("nowhere.module:Class", "cannot be imported"),
        ("torch.nn:NoSuchClass", "cannot be imported"),
        ("json:dumps", "not a torch.nn.Module"),
        (torch.nn.Linear, "cannot be built with in_channels=5"),
    ],
)
def test_what_is_no_encoder_is_refused(spec: str, says: str) -> None:
    with pytest.raises(GraphveilError, match=says):
        build_encoder(spec, in_channels=5)


def test_a_head_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(GraphveilError, match="unknown link head 'linear': choose one of bilinear"):
        build_head("linear", "links", 5, 2)
    assert isinstance(build_head("linear", "labels", 5, 2), LinearClassifier)


class Constant(Bilinear):
    """A head of one's own made from ours."""

    def forward(self, z_u: Tensor, z_v: Tensor) -> Tensor:
        del z_v
        return z_u.sum(dim=-1) * 0 + self.bias


def test_a_subclass_of_the_bilinear_head_uses_its_own_forward(small: Data, small_split: gv.Split) -> None:
    recipe = gv.Recipe(rounds=3, hidden_channels=8, out_channels=4, head=Constant)
    veil = gv.Veil(recipe=recipe, device="cpu").fit(small, small_split)
    assert veil.score(small, small_split).utility == 0.5, "a constant tells nothing"


@pytest.mark.parametrize("p", [1.0, 1.5, -0.2, float("nan")])
def test_dropout_is_at_least_0_and_below_1(p: float) -> None:
    with pytest.raises(gv.GraphveilError, match="expected at least 0 and below 1"):
        build_encoder("gat", in_channels=5, hidden_channels=8, out_channels=3, attention_dropout=p)
