"""Training by mini-batches: every problem, the same result when resumed, and the whole graph if the batch is larger."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import graphveil as gv
from graphveil.models.layers import Features
from graphveil.training.inputs import FeatureRows
from graphveil.training.loop import Training
from graphveil.training.objectives import OBJECTIVES
from graphveil.training.sampled import SampledGraph
from graphveil.veil import Fitting
from tests.models.test_layered import LAYERED
from tests.veil.made import veil
from tests.veil.test_estimator import PROBLEMS, Strict


@pytest.mark.parametrize("encoder", LAYERED)
@pytest.mark.parametrize(("utility", "secret"), PROBLEMS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_problem_encoder_and_objective_trains(
    small: Data, small_split: gv.Split, quick: gv.Recipe, encoder: str, utility: str, secret: str, objective: str
) -> None:
    few = quick.but(rounds=6, batch_size=32, fanout=3)
    trained = veil(few, utility, secret, encoder=encoder, objective=objective, tradeoff=0.7).fit(small, small_split)
    z = trained.transform(small)
    assert len(z) == 150
    assert torch.isfinite(z).all()
    assert 0 <= trained.score(small, small_split).utility <= 1
    assert len(trained.history_) == 6


@pytest.mark.parametrize(
    ("utility", "secret", "objective"), [("links", "labels", "codes"), ("labels", "links", "club")]
)
def test_stopped_and_resumed_is_bit_for_bit_the_unbroken_run(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path, utility: str, secret: str, objective: str
) -> None:
    recipe = quick.but(rounds=45, batch_size=32, fanout=3)

    def make() -> gv.Veil:
        return veil(recipe.but(patience=45), utility, secret, objective=objective)

    def stop(run: Training) -> None:
        if run.round == 27:
            raise KeyboardInterrupt

    whole = make().fit(small, small_split)
    with pytest.raises(KeyboardInterrupt):
        make().fit(small, small_split, tmp_path / "checkpoint", stop)
    resumed = make().fit(small, small_split, tmp_path / "checkpoint")
    assert resumed.transform(small).equal(whole.transform(small))
    assert str(resumed.history_) == str(whole.history_)
    other = veil(recipe.but(patience=45), utility, secret, objective=objective, seed=1).fit(small, small_split)
    assert not other.transform(small).equal(whole.transform(small))


@pytest.mark.parametrize("objective", ["codes", "club"])
def test_a_batch_that_is_larger_than_the_graph_is_the_graph(
    small: Data, small_split: gv.Split, quick: gv.Recipe, objective: str
) -> None:
    z = [
        veil(quick.but(rounds=8, batch_size=size), objective=objective).fit(small, small_split).transform(small)
        for size in (None, 500)
    ]
    assert z[0].equal(z[1])


def test_saved_and_loaded_is_the_same(
    small: Data, small_split: gv.Split, quick: gv.Recipe, graph: Data, tmp_path: Path
) -> None:
    trained = veil(quick.but(rounds=6, batch_size=32)).fit(small, small_split)
    trained.save(tmp_path)
    again = gv.Veil.load(tmp_path)
    assert again.recipe.batch_size == 32
    assert again.transform(small).equal(trained.transform(small))


def test_mini_batches_keep_and_hide_about_as_much_as_the_whole_graph(graph: Data, split: gv.Split) -> None:
    """1,800 nodes by batches of 600: the utility within three points, and nothing more of the labels."""
    plain = gv.Veil("links", "labels", device="cpu", tradeoff=0.5)
    plain.recipe = plain.recipe.but(rounds=300, warmup=150, ramp=150)
    batched = gv.Veil("links", "labels", device="cpu", tradeoff=0.5, recipe=plain.recipe.but(batch_size=600))
    whole, parts = (one.fit(graph, split).score(graph, split) for one in (plain, batched))
    assert whole.utility > 0.6
    assert parts.utility == pytest.approx(whole.utility, abs=0.03)
    assert parts.secrets[0].value < whole.secrets[0].chance + 0.04


def test_each_run_of_several_trains_by_itself(small: Data, quick: gv.Recipe) -> None:
    recipe = quick.but(rounds=6, batch_size=32)
    splits = [gv.Split.proportional(small, seed) for seed in (0, 1)]
    together = [veil(recipe, seed=seed, objective="club") for seed in (0, 1)]
    gv.fit_together(together, small, splits)
    for one, split in zip(together, splits, strict=True):
        assert one.transform(small).equal(
            veil(recipe, seed=one.seed, objective="club").fit(small, split).transform(small)
        )


def test_the_unprotected_encoder_of_an_audit_trains_by_mini_batches_too(quick: gv.Recipe) -> None:
    for objective in ("codes", "club"):
        plain = veil(quick.but(batch_size=32, fanout=3), objective=objective).unprotected()
        assert (plain.recipe.batch_size, plain.recipe.fanout) == (32, 3)


def test_the_unprotected_encoder_has_the_dropout_of_what_it_is_fitted_on(small: Data) -> None:
    """150 nodes and 500 links."""
    plain = gv.Veil("labels", "links", device="cpu")
    for size, dropout in ((100, 0.5), (500, 0.8)):
        plain.recipe = plain.recipe.but(batch_size=size, fanout=3)
        unprotected = plain.unprotected(small).recipe
        assert (unprotected.batch_size, unprotected.fanout, unprotected.dropout) == (size, 3, dropout)
    assert plain.unprotected().recipe.dropout == 0.5, "without a graph, by mini-batches"


@pytest.mark.parametrize("encoder", ["hgcn", Strict])
def test_other_encoders_are_refused_in_one_sentence(
    small: Data, small_split: gv.Split, quick: gv.Recipe, encoder: str
) -> None:
    with pytest.raises(gv.GraphveilError, match="cannot be trained with a batch_size: choose gcn, gat or sage"):
        veil(quick.but(batch_size=32), encoder=encoder).fit(small, small_split)


def test_strong_dropout_goes_with_smoothing_only() -> None:
    classes, codes = gv.Veil("labels", "links").recipe, gv.Veil("links", "labels", "gat").recipe
    assert classes.dropout == 0.8
    assert classes.by_batches(64) == classes.but(batch_size=64, dropout=0.5)
    assert codes.by_batches(64) == codes.but(batch_size=64)
    assert gv.Recipe(dropout=0.9).by_batches(64).dropout == 0.9, "without smoothing, the caller's dropout"


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(gv.GraphveilError, match="batch_size=0: expected a whole number of at least 1"):
        gv.Recipe(batch_size=0)
    assert gv.Recipe().parsed(["batch_size=64", "fanout=5"]) == gv.Recipe(batch_size=64, fanout=5)


def test_the_encoder_sees_parts_of_the_graph_only(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    made = Fitting([veil(quick.but(batch_size=8, fanout=1), objective="club")], small, [small_split]).training
    graph = made.method.problem.graph
    assert isinstance(graph, SampledGraph)
    seen: list[int] = []

    class Watched(FeatureRows):
        def __getitem__(self, nodes: Tensor | slice) -> Features:
            assert isinstance(nodes, Tensor)
            seen.append(len(nodes))
            return super().__getitem__(nodes)

    graph.features = Watched(graph.features.x, graph.features.scaling)
    made.advance()
    # 8 links, as many non-links and 8 nodes have at most 40 nodes, each with a neighbour, which has another one
    assert 0 < max(seen) <= 120
