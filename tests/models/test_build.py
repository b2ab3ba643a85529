"""Encoders and heads from names, classes, instances and import paths."""

import pytest
import torch

import graphveil as gv
from graphveil.errors import GraphveilError
from graphveil.models import build_encoder, build_head
from graphveil.models.build import EdgeIndexEncoder, spec_name
from graphveil.models.encoders import GCN
from graphveil.models.heads import LinearClassifier


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


@pytest.mark.parametrize("p", [1.0, 1.5, -0.2, float("nan")])
def test_dropout_is_at_least_0_and_below_1(p: float) -> None:
    with pytest.raises(gv.GraphveilError, match="expected at least 0 and below 1"):
        build_encoder("gat", in_channels=5, hidden_channels=8, out_channels=3, attention_dropout=p)
