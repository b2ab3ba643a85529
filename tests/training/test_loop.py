"""The loop: which round is selected, when it stops or diverges, and what it leaves as it was."""

import math

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import graphveil as gv
from graphveil.training.loop import Training
from tests.training.made import game, same, training, weights


def test_selection_looks_at_validation_only(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    """Test answers turned upside down change nothing that is selected."""
    run = training(small, small_split, quick, tradeoff=0.6)
    run.run()
    altered = small.clone()
    altered.y = small.y.clone()
    altered.y[small_split.test_nodes] = (small.y[small_split.test_nodes] + 1) % 3
    other = training(altered, small_split, quick, tradeoff=0.6)
    other.run()
    record, twin = run.records[0], other.records[0]
    assert [r.score for r in record.history[2::3]] == [r.score for r in twin.history[2::3]]
    assert same(weights(game(run).encoder.module), game(other).encoder.module)
    evaluated = {r.round: r.score for r in record.history if not math.isnan(r.score) and r.round > quick.warmup}
    assert record.best_score == max(evaluated.values())
    assert record.best_round == min(r for r, score in evaluated.items() if score == record.best_score)


def test_early_stopping_counts_from_the_best_round(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    run = training(small, small_split, quick.but(rounds=400, patience=9), tradeoff=1.0)
    run.run()
    assert run.round == len(run.records[0].history) < 400
    assert run.round == run.records[0].best_round + 9


def test_a_naive_adversary_selects_nothing(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    run = training(small, small_split, quick.but(rounds=9, warmup=6), tradeoff=0.5)
    run.run()
    assert run.records[0].best_round > 6
    short = training(small, small_split, quick.but(rounds=5, warmup=100), tradeoff=0.5)
    short.run()
    assert short.records[0].best_round == 5, "a run shorter than the warm-up selects its last round"


@pytest.mark.parametrize("tradeoff", [1.0, 0.5])
def test_divergence_names_the_round_and_keeps_the_last_good_state(
    small: Data, small_split: gv.Split, tradeoff: float
) -> None:
    """With something to hide no round is selected before the warm-up is over: the last finite state is kept then."""
    recipe = gv.Recipe(rounds=50, hidden_channels=8, out_channels=4, evaluate_every=2, warmup=20)
    veil = gv.Veil(tradeoff=tradeoff, objective="club", recipe=recipe, device="cpu")
    good: dict[int, Tensor] = {}

    def poison(run: Training) -> None:
        good[run.round] = game(run).embed()
        if run.round == 7:
            with torch.no_grad():
                next(iter(game(run).encoder.module.parameters())).fill_(float("nan"))

    with pytest.raises(gv.DivergedError, match="diverged in round 8"):
        veil.fit(small, small_split, on_round=poison)
    assert veil.encode(small, small_split).equal(good[veil.best_round_ or 6])
    assert veil.transform(small, small_split).isfinite().all()
    assert len(veil.history_) == 8, "the bad round is on record"
    assert (veil.best_round_ > 0) == (tradeoff == 1)


def test_the_callers_randomness_is_left_as_it_was(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    gv.Veil(recipe=quick, device="cpu").fit(small, small_split)
    assert torch.rand(3).equal(expected)


def test_the_callers_graph_is_left_as_it_was(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    from graphveil.data import digest

    before = digest(small)
    gv.Veil(recipe=quick, device="cpu").fit(small, small_split).transform(small)
    assert digest(small) == before


@pytest.mark.slow
def test_hgcn_stays_finite_over_a_thousand_rounds_on_pubmed() -> None:
    graph = gv.load("pubmed")
    split = gv.Split.paper(graph, 0)
    recipe = gv.Veil(encoder="hgcn").recipe.but(rounds=1000, patience=1000, evaluate_every=100)
    veil = gv.Veil(encoder="hgcn", tradeoff=0.9, recipe=recipe, adversary=gv.Adversary(steps=1)).fit(graph, split)
    assert len(veil.history_) == 1000
    assert all(math.isfinite(r.utility_loss) and math.isfinite(r.secrets[0].loss) for r in veil.history_)
    assert torch.isfinite(veil.transform(graph)).all()
