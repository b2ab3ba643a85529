"""On a GPU: the same as on the CPU, replayed, in a batch, and bit for bit if deterministic. Skipped without a GPU."""

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import graphveil as gv
from graphveil.models.codes import soft_codes
from graphveil.training.loop import Training

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ENCODERS = ["gcn", "gat", "hgcn"]


def distance(z: Tensor, other: Tensor) -> float:
    return float((z - other).abs().max() / z.abs().max())


@pytest.mark.parametrize("utility", ["links", "labels"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_few_rounds_are_those_of_the_cpu(
    small: Data, small_split: gv.Split, quick: gv.Recipe, encoder: str, utility: str
) -> None:
    """Six rounds: three that warm up, and three that are replayed.

    The adversaries are smooth ones: beside a ReLU's corner, rounding alone moves the embeddings by per cents (seen on
    the CPU by changing the features by a millionth).
    """
    recipe = quick.but(rounds=6, head="linear" if utility == "labels" else "bilinear")
    secret, head = ("labels", "linear") if utility == "links" else ("links", "bilinear")
    cpu, gpu = (
        gv.Veil(utility, secret, encoder, objective="club", adversary=gv.Adversary(head), recipe=recipe, device=device)
        for device in ("cpu", "cuda")
    )
    for veil in (cpu, gpu):
        veil.fit(small, small_split)
    for a, b in zip(cpu.history_, gpu.history_, strict=True):
        assert a.utility_loss == pytest.approx(b.utility_loss, abs=1e-4)
        assert a.secrets[0].loss == pytest.approx(b.secrets[0].loss, abs=1e-4)
    # a bilinear decoder hardly sees what all nodes have in common: rounding moves that by per mille (seen on the CPU)
    z = [veil.transform(small, small_split) for veil in (cpu, gpu)]
    assert distance(*(one - one.mean(dim=0) for one in z)) < 2e-3


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_few_rounds_of_codes_are_those_of_the_cpu(graph: Data, split: gv.Split, encoder: str) -> None:
    """With a third of the links dropped in each round, replayed ones included."""
    recipe = gv.Veil(encoder=encoder).recipe.but(rounds=6, warmup=0, ramp=6)
    cpu, gpu = (gv.Veil(encoder=encoder, recipe=recipe, device=device).fit(graph, split) for device in ("cpu", "cuda"))
    for a, b in zip(cpu.history_, gpu.history_, strict=True):
        assert a.utility_loss == pytest.approx(b.utility_loss, abs=1e-3)
        assert a.secrets[0].loss == pytest.approx(b.secrets[0].loss, abs=1e-3)
    # before codes are merged: rounding may change which of two nearly equal merges is cheaper
    q, other = (soft_codes(veil.encode(graph, split).cpu(), cpu.code_shape_) for veil in (cpu, gpu))
    assert float((q - other).abs().max()) < 1e-2 * float(q.max())
    best, second = q.topk(2, dim=-1).values.unbind(dim=-1)
    clear = best > 1.05 * second  # of two nearly equal codes, a node may get either
    assert clear.any()
    assert (q.argmax(dim=-1) == other.argmax(dim=-1))[clear].all()


def test_codes_that_hide_links_are_those_of_the_cpu(graph: Data) -> None:
    """The encoder's classes are given to students and to a channel, which are recorded and replayed too."""
    split = gv.Split.paper(graph, 0, message_edges="all")
    cpu, gpu = (gv.Veil("labels", "links", device=device).fit(graph, split) for device in ("cpu", "cuda"))
    difference = cpu.score(graph, split).utility - gpu.score(graph, split).utility
    same = (cpu.transform(graph, split) == gpu.transform(graph, split)).all(dim=1).float().mean()
    assert abs(difference) < 0.02
    assert same > 0.9  # the rest is drawn: the key of a draw is made of the encoder's weights


@pytest.mark.parametrize("encoder", ENCODERS)
def test_deterministic_runs_repeat_bit_for_bit(graph: Data, split: gv.Split, encoder: str) -> None:
    recipe = gv.Veil(encoder=encoder).recipe.but(rounds=40, warmup=0, deterministic=True)
    first, second = (
        gv.Veil(encoder=encoder, recipe=recipe, device="cuda").fit(graph, split).transform(graph, split)
        for _ in range(2)
    )
    assert first.equal(second)
    assert not torch.are_deterministic_algorithms_enabled(), "the caller's setting is put back"


@pytest.mark.parametrize("objective", ["club", "codes"])
def test_a_batch_equals_its_runs_one_by_one(small: Data, quick: gv.Recipe, objective: str) -> None:
    splits = [gv.Split.proportional(small, seed) for seed in range(4)]
    recipe = quick.but(rounds=6, code_size=2)
    alone, together = (
        [gv.Veil(objective=objective, recipe=recipe, seed=seed, device="cuda") for seed in range(4)] for _ in range(2)
    )
    for veil, split in zip(alone, splits, strict=True):
        veil.fit(small, split)
    gv.fit_together(together, small, splits)
    for one, many, split in zip(alone, together, splits, strict=True):
        for a, b in zip(one.history_, many.history_, strict=True):
            assert a.utility_loss == pytest.approx(b.utility_loss, abs=1e-3)
            assert a.secrets[0].loss == pytest.approx(b.secrets[0].loss, abs=1e-3)
        if objective == "club":
            assert distance(one.transform(small, split), many.transform(small, split)) < 2e-3


@pytest.mark.parametrize("utility", ["links", "labels"])
def test_trainings_one_after_the_other_can_all_be_recorded(small: Data, quick: gv.Recipe, utility: str) -> None:
    """A recording breaks off if an earlier one's memory is freed meanwhile."""
    secret, split = ("labels", "links")[utility == "labels"], gv.Split.proportional(small, 0, message_edges="train")
    recipe = quick.but(rounds=6, head="linear" if utility == "labels" else "bilinear")
    for seed in range(12):
        gv.Veil(utility, secret, "gat", recipe=recipe, seed=seed, device="cuda").fit(small, split)


def test_a_run_resumes_where_it_was(small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path) -> None:  # type: ignore[no-untyped-def]
    class Stop(Exception):  # noqa: N818 - not an error
        pass

    def stop(training: Training) -> None:
        if training.round == 25:
            raise Stop

    recipe = quick.but(rounds=40, patience=40, deterministic=True)
    whole = gv.Veil(recipe=recipe, device="cuda").fit(small, small_split)
    checkpoint = tmp_path / "checkpoint.safetensors"
    with pytest.raises(Stop):
        gv.Veil(recipe=recipe, device="cuda").fit(small, small_split, checkpoint, stop)
    resumed = gv.Veil(recipe=recipe, device="cuda").fit(small, small_split, checkpoint)
    assert [r.round for r in resumed.history_] == [r.round for r in whole.history_]
    assert resumed.transform(small).equal(whole.transform(small))
