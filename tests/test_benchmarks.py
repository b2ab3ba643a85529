"""The plain implementation computes the same as ours; the bound and the tables are correct."""

from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks import scale
from benchmarks.bound import round_bytes
from benchmarks.cell import Cell as BenchmarkCell
from benchmarks.cell import load_graph, take_turns
from benchmarks.plain import ENCODERS, PlainBilinear, PlainFermiDirac, PlainTraining
from benchmarks.table import markdown
from torch import Tensor, nn
from torch_geometric.data import Data

import graphveil as gv
from graphveil.models.heads import Bilinear, FermiDirac
from graphveil.training.inputs import adjacency, features
from graphveil.training.recipes import default_recipe
from graphveil.veil import Fitting
from graphveil.veil.modules import build_modules

CPU = torch.device("cpu")


def copy_weights(ours: nn.Module, plain: nn.Module) -> None:
    """Copy our weights to the plain encoder; ours have shape (in, out), those of PyG (out, in)."""
    weights = dict(ours.named_parameters())
    names = {
        "first.lin.weight": "first.weight",
        "second.lin.weight": "second.weight",
        "first.bias": "bias_first" if "bias_first" in weights else "first.bias",
        "second.bias": "bias_second" if "bias_second" in weights else "second.bias",
        "first.att_src": "first.sender",
        "first.att_dst": "first.receiver",
        "second.att_src": "second.sender",
        "second.att_dst": "second.receiver",
        "first.weight": "first.linear.weight",
        "second.weight": "second.linear.weight",
        "biases.0": "first.linear.bias",
        "biases.1": "second.linear.bias",
        "curvatures.0": "first.raw_curvature",
        "curvatures.1": "second.raw_curvature",
    }
    with torch.no_grad():
        for name, parameter in plain.named_parameters():
            value = weights[names[name]]
            parameter.copy_(value.t() if name.endswith("weight") else value.view(parameter.shape))


@pytest.mark.parametrize("name", ["gcn", "gat", "hgcn"])
def test_the_plain_encoders_equal_ours(small: Data, small_split: gv.Split, name: str) -> None:
    recipe = default_recipe("links", name, "club")
    veil = gv.Veil(encoder=name, objective="club", recipe=recipe)
    veil.in_channels_, veil.classes_ = 40, {"utility": 2, "adversary": 3}
    torch.manual_seed(0)
    ours = build_modules(veil)["encoder"].eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # so that biases are not zero
    plain = ENCODERS[name](40, recipe).eval()
    copy_weights(ours, plain)
    x = features(small, [], recipe.scaling, CPU)
    z: Tensor = ours(x, adjacency(small, [small_split], CPU)).detach()
    dense = x if isinstance(x, Tensor) else x.to_dense()
    difference = plain(dense, small_split.message_edge_index).detach() - z
    assert difference.abs().max() < 1e-5 * z.abs().max()


def test_the_plain_heads_equal_ours() -> None:
    z_u, z_v = torch.randn(2, 50, 6).unbind()
    assert torch.allclose(PlainBilinear(6)(z_u, z_v), Bilinear(6)(z_u, z_v), rtol=0, atol=1e-5)
    assert torch.allclose(PlainFermiDirac()(z_u, z_v), FermiDirac(6)(z_u, z_v), rtol=1e-3, atol=1e-2)


def test_both_sides_train_and_are_timed_alternately(graph: Data, split: gv.Split) -> None:
    recipe = default_recipe("links", "gcn", "club")
    training = Fitting([gv.Veil(recipe=recipe, device="cpu")], graph, [split]).training
    plain = PlainTraining(graph, split, "gcn", recipe, CPU)
    before = [p.detach().clone() for p in plain.encoder.parameters()]
    cell = BenchmarkCell("round", "", "gcn", ("ours", "plain"), seconds=0.0)
    measured = take_turns({"ours": training.advance, "plain": plain.round}, cell)
    assert measured.repeats == 3
    assert set(measured.milliseconds) == {"ours", "plain"}
    assert training.round == 4
    assert not any(a.equal(b) for a, b in zip(before, plain.encoder.parameters(), strict=True))


def test_the_bound_computed_by_hand() -> None:
    """2 nodes, 3 features, 4 entries, 5 pairs, 6 weights, 10 hidden and 7 output channels.

    Forward (24 + 80) + (32 + 160 + 56) + (32 + 112), heads 5 * 12 + 2 * 56, backward (32 + 56 + 160) + (32 + 80 + 24),
    optimiser 7 * 6 * 4.
    """
    recipe = gv.Recipe(hidden_channels=10, out_channels=7)
    assert round_bytes(2, 3, 4, 5, 6, recipe) == 496 + 172 + 384 + 168


def test_the_tables_have_the_values_of_the_rows() -> None:
    row = {"work": "round", "graph": "cora", "encoder": "gcn", "device": "cpu", "runs": 1, "machine": "here"}
    row |= {"milliseconds": {"ours": 2.0, "plain": 30.0}, "spread": {"ours": 0.1, "plain": 0.2}, "rounds": 0}
    row |= {
        "bytes": 10**6,
        "bandwidth": 1e9,
        "peak": 100.0,
        "peak_plain": 200.0,
        "repeats": 3,
        "torch": "2.0",
        "commit": "abc",
    }
    rows = [row, row | {"graph": "citeseer"}, row | {"graph": "pubmed"}]
    rows += [row | {"graph": str(n), "milliseconds": {"ours": n / 10**4}, "peak": n / 100} for n in (10**5, 10**6)]
    rows += [row | {"work": "mini-batches", "graph": "1000000", "milliseconds": {"ours": 600.0}, "rounds": 500}]
    rows += [row | {"work": "processes", "milliseconds": {"ours": 50.0, "plain": 90.0}}]
    rows += [row | {"encoder": "gat", "milliseconds": {}, "fault": "killed", "peak": 0}]
    rows += [row | {"device": "cuda", "runs": r, "milliseconds": {"ours": 1.0 * r}} for r in (1, 10)]
    text = markdown(rows)
    assert "gcn: a round is 15.0 times faster than plain" in text
    assert "| round | gcn | cora | 2.00 ms (±5 %) | 30 ms (±10 %) | 15.0 | 1 ms | 2.0 | 100 | 200 |" in text
    assert (
        "with ten times the edges, time grows by a factor of 10.0 and memory by 10.0 (from 100,000 to 1,000,000 edges)"
        in text
    )
    assert "| round | gat | cora | killed |" in text
    assert "| 1,000,000 edges | gcn | 600 ms (±5 %) | 500 | 5.0 | 100 |" in text
    assert "| cora | gcn | 90 ms (±10 %) | 50 ms (±5 %) | 1.80 |" in text
    assert "| round, gcn | cora | 1.00 ms (±5 %) | 10 ms (±5 %) | 10.00 | 100 |" in text


def test_a_generated_graph_has_the_number_of_edges_in_its_name() -> None:
    assert load_graph("20000").edge_index.size(1) == 40_000


def test_the_links_of_the_benchmark_of_scale_are_distinct_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "BLOCK", 1000)
    scale.write_links(tmp_path / "links.npy", 25_500, 500)
    links = np.load(tmp_path / "links.npy").astype(np.int64)
    assert links.shape == (2, 25_500)
    assert ((links[0] >= 0) & (links[0] < links[1]) & (links[1] < 500)).all()
    assert (np.diff(links[1] * 500 + links[0]) > 0).all()
    monkeypatch.setattr(scale, "CODES", 20)
    of_file, of_graph = (
        certify(tmp_path / "links.npy", 500)() for certify in (scale.certificate_of_file, scale.certificate_of_graph)
    )
    assert of_file["auc"] == of_graph["auc"] > 0.55
    assert of_file["class-matched"] == of_graph["class_matched_auc"]
