"""The encoders against PyG's own layers with the same weights, and the contract every encoder keeps."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from graphveil.models import ENCODERS, Adjacency, SparseMatrix
from graphveil.models.encoders import GAT, GCN, HGCN, SAGE


def inputs(graph: Data) -> tuple[SparseMatrix, Adjacency]:
    return SparseMatrix.from_csr(graph.x), Adjacency.from_edge_index(graph.edge_index, graph.x.size(0))


def test_gcn_is_two_of_pygs_layers(small: Data) -> None:
    x, adjacency = inputs(small)
    ours = GCN(40, 8, 4).eval()
    first, second = GCNConv(40, 8), GCNConv(8, 4)
    for conv, linear in ((first, ours.first), (second, ours.second)):
        conv.lin.weight.data = linear.weight.data.t()
        linear.bias.data.normal_()
        conv.bias.data = linear.bias.data
    expected = second(first(small.x.to_dense(), small.edge_index).relu(), small.edge_index)
    assert torch.allclose(ours(x, adjacency), expected, rtol=1e-4, atol=1e-5)


def test_gat_is_two_of_pygs_layers(small: Data) -> None:
    x, adjacency = inputs(small)
    ours = GAT(40, 8, 4, heads=2).eval()
    first, second = GATConv(40, 4, heads=2), GATConv(8, 4, heads=2, concat=False)
    for conv, attention, bias in ((first, ours.first, ours.bias_first), (second, ours.second, ours.bias_second)):
        conv.lin.weight.data = attention.weight.data.t()
        conv.att_src.data, conv.att_dst.data = attention.sender.data[None], attention.receiver.data[None]
        bias.data.normal_()
        conv.bias.data = bias.data
    h = torch.nn.functional.elu(first(small.x.to_dense(), small.edge_index))
    assert torch.allclose(ours(x, adjacency), second(h, small.edge_index), rtol=1e-4, atol=1e-5)


def test_sage_is_two_of_pygs_layers(small: Data) -> None:
    x, adjacency = inputs(small)
    ours = SAGE(40, 8, 4).eval()
    first, second = SAGEConv(40, 8), SAGEConv(8, 4)
    for conv, layer in ((first, ours.first), (second, ours.second)):
        conv.lin_r.weight.data, conv.lin_l.weight.data = layer.own.weight.data.t(), layer.neighbours.data.t()
        layer.own.bias.data.normal_()
        conv.lin_l.bias.data = layer.own.bias.data
    expected = second(first(small.x.to_dense(), small.edge_index).relu(), small.edge_index)
    assert torch.allclose(ours(x, adjacency), expected, rtol=1e-4, atol=1e-5)


def test_hgcn_becomes_gcn_as_the_curvature_vanishes(small: Data) -> None:
    """In flat space the centroid with GCN's weights is their mean, so both agree up to each row's sum of weights."""
    x, adjacency = inputs(small)
    gcn, hgcn = GCN(40, 8, 4).double().eval(), HGCN(40, 8, 4).double().eval()
    mean = adjacency.normalized.with_values(adjacency.normalized.values.double()).row_normalized()
    flat = Adjacency(mean)
    for layer, linear in ((hgcn.first, gcn.first), (hgcn.second, gcn.second)):
        layer.linear.weight.data = linear.weight.data
        linear.bias.data.normal_()
        layer.linear.bias.data = linear.bias.data
        layer.raw_curvature.data.fill_(-14)  # softplus gives 8e-7
    dense = x.with_values(x.values.double())
    assert torch.allclose(hgcn(dense, flat), gcn(dense, flat), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder(name: str, small: Data) -> None:
    """Shape, finiteness, gradients to every weight, dense equals sparse, and evaluation without noise."""
    x, adjacency = inputs(small)
    torch.manual_seed(0)
    encoder = ENCODERS[name](in_channels=40, hidden_channels=8, out_channels=4, dropout=0.5)
    z = encoder(x, adjacency)
    assert z.shape == (150, 4)
    z.square().sum().backward()
    for parameter_name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert torch.isfinite(parameter.grad).all()
        assert parameter.grad.abs().sum() > 0, parameter_name
    encoder.eval()
    assert encoder(x, adjacency).equal(encoder(x, adjacency))
    assert torch.allclose(encoder(x, adjacency), encoder(x.to_dense(), adjacency), rtol=1e-4, atol=1e-6)


def test_hgcn_attention_and_smoothing_are_used(small: Data) -> None:
    x, adjacency = inputs(small)
    plain = HGCN(40, 8, 4, dropout=0.0)
    attending = HGCN(40, 8, 4, dropout=0.0, attention=True)
    attending.load_state_dict(plain.state_dict(), strict=False)
    assert not torch.allclose(plain(x, adjacency), attending(x, adjacency))
    for layer in (attending.first, attending.second):
        assert layer.scorer is not None
        layer.scorer.data.zero_()
    mean = Adjacency(adjacency.normalized.with_values(torch.ones_like(adjacency.normalized.values)))
    assert torch.allclose(attending(x, adjacency), plain(x, mean), rtol=1e-4, atol=1e-5), "equal shares are a mean"

    smooth = HGCN(40, 8, 4, dropout=0.0, smoothing=2)
    smooth.load_state_dict(plain.state_dict())
    a, z = adjacency.normalized.to_dense(), plain(x, adjacency)
    once = 0.9 * a @ z + 0.1 * z
    assert torch.allclose(smooth(x, adjacency), 0.9 * a @ once + 0.1 * z, rtol=1e-4, atol=1e-6)


def test_the_curvatures_are_learned(small: Data) -> None:
    x, adjacency = inputs(small)
    torch.manual_seed(0)
    encoder: nn.Module = HGCN(40, 8, 4)
    before = encoder.state_dict()["first.raw_curvature"].clone()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        encoder(x, adjacency).square().sum().backward()
        optimizer.step()
    assert encoder.state_dict()["first.raw_curvature"] != before
