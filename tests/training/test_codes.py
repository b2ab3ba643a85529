"""Training of codes: what it may see, what it hides, and that it is the same alone, in a batch, stopped and resumed."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import graphveil as gv
from graphveil.codes.link_auc import matched_aucs
from graphveil.codes.measures import best_auc
from graphveil.codes.tables import class_table, link_table, pair_table, unordered
from graphveil.data import generate
from graphveil.data.datasets.synthetic import GraphSpec
from graphveil.randomness import draw
from graphveil.training import codes as module
from graphveil.training import linked_codes
from graphveil.training.book import code_shape, factor
from graphveil.training.codes import Codes
from graphveil.training.counts import allowed_gain, hidden_counts
from graphveil.training.distil import _codes_within, link_limit
from graphveil.training.loop import Training
from graphveil.training.targets import NodeClasses, class_secret
from graphveil.veil import Fitting

CODES = gv.Veil().recipe.but(rounds=60, ramp=30, warmup=30, hidden_channels=16, evaluate_every=10)


@pytest.fixture(scope="module")
def planted() -> Data:
    """600 nodes of three classes, whose links say more than the classes do."""
    return generate(GraphSpec(num_nodes=600, num_edges=2400, num_features=60, num_classes=3), seed=2)


@pytest.fixture(scope="module")
def parts(planted: Data) -> gv.Split:
    return gv.Split.proportional(planted, 0)


def veil(**arguments: object) -> gv.Veil:
    return gv.Veil(**{"recipe": CODES, "device": "cpu", **arguments})  # type: ignore[arg-type]


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


def test_a_limit_is_held_on_all_nodes_with_classes_drawn_where_none_may_be_used(planted: Data, parts: gv.Split) -> None:
    training = Fitting([veil(), veil(seed=1)], planted, [parts, parts]).training
    method = training.method
    assert isinstance(method, Codes)
    (known,) = method.secrets
    usable = torch.cat([parts.train_nodes, parts.spare_nodes, parts.val_nodes])
    one, other = known.drawn_of(0), known.drawn_of(1)
    assert (one[:, usable] == planted.y[usable]).all()
    assert not one[:, parts.test_nodes].equal(other[:, parts.test_nodes]), "each run has draws of its own"
    assert (one[0] != one[1])[parts.test_nodes].any(), "two draws differ"
    share = (one == planted.y)[:, parts.test_nodes].double().mean()
    assert share > 0.5, "draws follow the predictions, which are better than the chance level of three classes"
    hard = torch.arange(600) % 4
    held = hidden_counts(hard, known_target(planted, parts), one, 4)
    assert held.sum(dim=(1, 2)).tolist() == [len(usable), 600, 600]
    for table, y in zip(held[1:], one, strict=True):
        assert table.equal(torch.from_numpy(class_table(hard.numpy(), y.numpy(), 4, 3)).double())


def known_target(graph: Data, split: gv.Split) -> NodeClasses:
    return class_secret("labels", graph, [split], "all", torch.device("cpu"))


def test_neither_training_nor_selection_sees_a_class_of_the_test_part(planted: Data, parts: gv.Split) -> None:
    altered = planted.clone()
    altered.y = planted.y.clone()
    altered.y[parts.test_nodes] = (planted.y[parts.test_nodes] + 1) % 3
    one, other = (veil().fit(graph, parts) for graph in (planted, altered))
    assert one.codes(planted, parts).equal(other.codes(altered, parts))
    assert [done.score for done in one.history_[9::10]] == [done.score for done in other.history_[9::10]]


def test_a_node_keeps_its_code_when_the_graph_is_embedded_again(planted: Data, parts: gv.Split) -> None:
    trained = veil().fit(planted, parts)
    assert trained.codes(planted).equal(trained.codes(planted, parts)), "along all links as along some"
    other = generate(GraphSpec(num_nodes=600, num_edges=2400, num_features=60, num_classes=3), seed=9)
    assert trained.known_codes(other).unique().tolist() == [-1], "row 5 of another graph is another node"
    assert trained.codes(other).min() >= 0


def test_a_resumed_training_ends_with_the_same_bytes(planted: Data, parts: gv.Split, tmp_path: Path) -> None:
    def stop(training: Training) -> None:
        if training.round == 45:
            raise KeyboardInterrupt

    whole = veil().fit(planted, parts)
    with pytest.raises(KeyboardInterrupt):
        veil().fit(planted, parts, checkpoint=tmp_path / "checkpoint", on_round=stop)
    resumed = veil().fit(planted, parts, checkpoint=tmp_path / "checkpoint")
    assert [repr(done) for done in resumed.history_] == [repr(done) for done in whole.history_]
    assert resumed.transform(planted).equal(whole.transform(planted))


@pytest.mark.parametrize("encoder", ["gcn", "gat", "hgcn"])
def test_a_round_of_a_batch_is_that_of_its_runs(planted: Data, encoder: str) -> None:
    """Losses, gradients and tables of the first round; Adam blows rounding up in the next ones."""
    seeds, tradeoffs = (3, 4), (0.5, 1.0)
    splits = [gv.Split.proportional(planted, seed) for seed in seeds]
    veils = [veil(encoder=encoder, seed=s, tradeoff=t) for s, t in zip(seeds, tradeoffs, strict=True)]
    batch = Fitting(veils, planted, splits).training
    alone = [Fitting([one], planted, [split]).training for one, split in zip(veils, splits, strict=True)]
    logged = batch.method.round()
    for run, training in enumerate(alone):
        assert torch.allclose(training.method.round()[:, 0], logged[:, run], rtol=2e-2, atol=1e-6)
        for one, many in zip(_tables(training), _tables(batch), strict=True):
            assert torch.allclose(many[run], one, rtol=2e-2, atol=1e-3)


def _tables(training: Training) -> list[Tensor]:
    method = training.method
    assert isinstance(method, Codes)
    return [method.pairs.mean, *(secret.shares for secret in method.secrets)]


def test_a_sample_of_nodes_and_links_estimates_the_same_terms(
    planted: Data, parts: gv.Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = Fitting([veil()], planted, [parts]).training.method.round()
    monkeypatch.setattr(module, "NODES_AT_ONCE", 500)
    monkeypatch.setattr(linked_codes, "LINKS_AT_ONCE", 1500)
    sampled = Fitting([veil()], planted, [parts]).training.method.round()
    assert not sampled.equal(exact)
    assert torch.allclose(sampled[:2], exact[:2], atol=0.02)


def test_both_ends_of_the_tradeoff(planted: Data, parts: gv.Split) -> None:
    """At 0 nothing is kept; at 1 nothing is hidden."""
    longer = CODES.but(rounds=200, ramp=100, warmup=100)
    hidden, kept = (veil(tradeoff=tradeoff, recipe=longer).fit(planted, parts) for tradeoff in (0.0, 1.0))
    assert len(hidden.codes(planted, parts).unique()) == 1
    score = kept.score(planted, parts)
    assert score.utility > 0.6
    limits = allowed_gain(CODES, torch.tensor([0.0, 0.5, 1.0]))
    assert limits[:2].tolist() == [0.0, pytest.approx(0.02)]
    assert limits[2] > 1


def test_a_class_is_kept_and_another_hidden(planted: Data, parts: gv.Split) -> None:
    """They are correlated: the class predicts the secret of 61 % of the nodes; the chance level is 52 %."""
    recipe = CODES.but(rounds=200, ramp=100, warmup=100, evaluate_every=20, leak_limit=0.1)
    trained = veil(utility="labels", secret="secret", recipe=recipe).fit(planted, parts)
    score = trained.score(planted, parts)
    assert score.utility > score.utility_chance + 0.15
    assert score.secrets[0].value < score.secrets[0].chance + 0.05


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


def test_more_weight_on_links_beyond_classes_leaves_less_of_them(planted: Data) -> None:
    """Answers that a node has from its neighbours tell which nodes are linked; matched by the true classes here."""
    row, col = planted.edge_index
    links = planted.edge_index[:, row < col]
    classes = torch.nn.functional.one_hot(planted.y, 3).float()
    noisy = classes + torch.randn(600, 3, generator=torch.Generator().manual_seed(0))
    p = (2 * torch.zeros(600, 3).index_add_(0, row, noisy[col])).softmax(dim=-1)
    uniform = torch.rand(600, generator=torch.Generator().manual_seed(1)).double()
    found = []
    for weight in (0.0, 0.3, 1.0):
        codes = _codes_within(1.0, weight, p, classes, links, uniform)
        found.append((matched_aucs(codes.numpy(), links.numpy(), planted.y.numpy()) or (0.0,))[0])
    assert found[0] > found[1] + 0.01
    assert found[1] > found[2]
    for limit in (0.72, 0.6, 0.52):
        codes = _codes_within(limit, 0.0, p, classes, links, uniform)
        assert link_auc(codes, links) <= limit, "by J' alone, by both terms, or with the most frequent class"
        assert link_auc(_codes_within(limit, 1.0, p, classes, links, uniform), links) <= limit
    assert len(_codes_within(0.52, 0.0, p, classes, links, uniform).unique()) > 1
    assert len(_codes_within(0.5, 0.0, p, classes, links, uniform).unique()) == 1, "one half is held by saying nothing"


def link_auc(codes: Tensor, links: Tensor) -> float:
    table = link_table(codes.numpy(), links.numpy(), 3)
    nonlinks = pair_table(codes.numpy(), 3) - table
    return best_auc(unordered(table).astype(float), unordered(nonlinks).astype(float))


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


def test_a_limit_for_links_by_hand() -> None:
    """Two classes of half the nodes: one of two links joins a class with itself, as chance would."""
    p = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    nobody, y = torch.full((4,), -1), torch.tensor([0, 0, 1, 1])
    assert link_limit(p, nobody, torch.tensor([[0, 1], [1, 2]]), 0.5) == pytest.approx(0.5)
    assert link_limit(p, nobody, torch.tensor([[0, 2], [1, 3]]), 0.5) == pytest.approx(0.75)
    assert link_limit(p, nobody, torch.tensor([[0, 2], [1, 3]]), 0.0) == 0.5
    many = torch.tensor([[0, 0], [1, 2]]).repeat(1, 60)  # half of them between nodes of one class
    assert link_limit(p, y, many, 0.5) == pytest.approx(0.5)
    alike = torch.tensor([[0], [1]]).repeat(1, 120)
    assert link_limit(p, y, alike, 0.5) == pytest.approx(0.75)
    assert link_limit(p, y, alike[:, :50], 0.5) == pytest.approx(0.75), "few of them: one class by its prediction"


def test_a_limit_for_links_where_one_class_of_most_links_is_known() -> None:
    """Three of four links lead to a node that is predicted to be of the same class; two nodes were sampled."""
    p = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    y = torch.tensor([0, -1, 1, -1])
    links = torch.tensor([[0, 0, 0, 2], [1, 1, 3, 3]]).repeat(1, 30)
    alike = 0.75 - math.sqrt(0.75 * 0.25 / 2)
    assert link_limit(p, y, links, 0.5) == pytest.approx(0.5 + max(alike - 0.5, 0) / 2)
    certain = torch.tensor([[0, 2], [1, 3]]).repeat(1, 60)
    assert link_limit(p, y, certain, 0.5) == pytest.approx(0.75)


def test_codes_are_drawn_as_often_as_they_are_probable() -> None:
    q = torch.tensor([0.2, 0.5, 0.3]).expand(10_000, 3)
    uniform = (torch.arange(10_000).double() + 0.5) / 10_000
    assert (draw(q, uniform).bincount() - torch.tensor([2000, 5000, 3000])).abs().max() <= 1
