"""The code book of a trained veil: what its codes may say, and which code a node keeps or gets."""

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.codes.tables import class_table
from graphveil.data import generate
from graphveil.data.datasets.synthetic import GraphSpec
from tests.training.made import veil


def test_a_limit_holds_for_what_may_be_used_and_each_code_has_five_nodes(planted: Data, parts: gv.Split) -> None:
    trained = veil().fit(planted, parts)
    codes = trained.codes(planted, parts)
    assert codes.bincount().min() >= 5
    usable = torch.cat([parts.train_nodes, parts.spare_nodes, parts.val_nodes])
    table = class_table(codes[usable].numpy(), planted.y[usable].numpy(), int(codes.max()) + 1, 3)
    assert table.max(axis=1).sum() <= table.sum(axis=0).max() + 0.02 * table.sum()
    z = trained.transform(planted, parts)
    assert len(z.unique(dim=0)) == len(codes.unique())
    assert z.equal(trained.book.rows[codes])


def test_a_tradeoff_of_0_keeps_nothing(planted: Data, parts: gv.Split, quick: gv.Recipe) -> None:
    veil = gv.Veil(tradeoff=0.0, objective="codes", recipe=quick, seed=1, device="cpu").fit(planted, parts)
    assert len(veil.transform(planted, parts).unique(dim=0)) == 1
    assert veil.score(planted, parts).utility == 0.5


def test_a_node_keeps_its_code_when_the_graph_is_embedded_again(planted: Data, parts: gv.Split) -> None:
    trained = veil().fit(planted, parts)
    assert trained.codes(planted).equal(trained.codes(planted, parts)), "along all links as along some"
    other = generate(GraphSpec(num_nodes=600, num_edges=2400, num_features=60, num_classes=3), seed=9)
    assert trained.known_codes(other).unique().tolist() == [-1], "row 5 of another graph is another node"
    assert trained.codes(other).min() >= 0


def test_links_are_hidden_down_to_what_the_classes_imply(planted: Data) -> None:
    split = gv.Split.proportional(planted, 0, message_edges="all")
    recipe = gv.Veil("labels", "links").recipe.but(rounds=60)
    scores = {}
    for tradeoff in (1.0, 0.5, 0.0):
        trained = gv.Veil("labels", "links", tradeoff=tradeoff, recipe=recipe, device="cpu").fit(planted, split)
        scores[tradeoff] = trained.score(planted, split)
    assert scores[1.0].utility > 0.8
    assert scores[0.5].utility > scores[0.5].utility_chance + 0.2
    read = {tradeoff: score.secrets[0].value for tradeoff, score in scores.items()}
    assert read[0.0] == 0.5
    assert scores[0.0].utility == pytest.approx(scores[0.0].utility_chance)
    assert read[0.5] < read[1.0]


def test_links_and_a_class_are_hidden_at_once(planted: Data) -> None:
    split = gv.Split.proportional(planted, 0, message_edges="all", targets=("labels", "secret"))
    recipe = gv.Veil("labels", ["links", "secret"]).recipe.but(rounds=40)
    trained = gv.Veil("labels", ["links", "secret"], recipe=recipe, device="cpu").fit(planted, split)
    assert [one.secret for one in trained.score(planted, split).secrets] == ["links", "secret"]


def test_later_nodes_get_the_students_answer(planted: Data) -> None:
    """It sees features only: with the links of another graph it answers the same."""
    split = gv.Split.proportional(planted, 0, message_edges="all")
    recipe = gv.Veil("labels", "links").recipe.but(rounds=20)
    trained = gv.Veil("labels", "links", recipe=recipe, device="cpu").fit(planted, split)
    other = generate(GraphSpec(num_nodes=600, num_edges=2400, num_features=60, num_classes=3), seed=9)
    rewired = other.clone()
    rewired.edge_index = planted.edge_index
    assert trained.codes(other).equal(trained.codes(rewired))
