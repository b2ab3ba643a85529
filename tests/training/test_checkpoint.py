"""A training that is stopped goes on bit for bit, and from no checkpoint but its own."""

from pathlib import Path

import pytest
from torch_geometric.data import Data

import graphveil as gv
from graphveil.models import ENCODERS
from graphveil.training.loop import Training
from tests.veil.made import veil


class Stop(Exception):  # noqa: N818 - not an error
    pass


@pytest.fixture(scope="module", params=ENCODERS)
def unbroken(request: pytest.FixtureRequest, small: Data, small_split: gv.Split, quick: gv.Recipe) -> gv.Veil:
    """A training of 65 rounds with each encoder."""
    recipe = quick.but(rounds=65, patience=65)
    return gv.Veil(encoder=request.param, recipe=recipe, device="cpu").fit(small, small_split)


@pytest.mark.parametrize("stops", [[1], [20], [21], [25, 40], [59, 60]])
def test_stopped_and_resumed_is_bit_for_bit_the_unbroken_run(
    small: Data, small_split: gv.Split, tmp_path: Path, unbroken: gv.Veil, stops: list[int]
) -> None:
    encoder, recipe = unbroken.encoder, unbroken.recipe
    checkpoint = tmp_path / "checkpoint.safetensors"
    for stop in stops:

        def on_round(run: Training, stop: int = stop) -> None:
            if run.round == stop:
                raise Stop

        with pytest.raises(Stop):
            gv.Veil(encoder=encoder, recipe=recipe, device="cpu").fit(small, small_split, checkpoint, on_round)
    resumed = gv.Veil(encoder=encoder, recipe=recipe, device="cpu").fit(small, small_split, checkpoint)
    assert resumed.transform(small).equal(unbroken.transform(small))
    assert str(resumed.history_) == str(unbroken.history_), "as text, since NaN is not equal to itself"
    assert resumed.best_round_ == unbroken.best_round_


def test_a_checkpoint_of_something_else_is_refused(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    long = quick.but(rounds=20, patience=20)
    veil(long, seed=0).fit(small, small_split, checkpoint)
    assert checkpoint.exists()
    others = [
        (veil(long, seed=1), small, small_split),
        (veil(long, tradeoff=0.3), small, small_split),
        (veil(long), small, gv.Split.proportional(small, 9)),
    ]
    for other, graph, split in others:
        with pytest.raises(gv.GraphveilError, match="another configuration, graph or split"):
            other.fit(graph, split, checkpoint)
    checkpoint.unlink()
    checkpoint.mkdir()
    with pytest.raises(gv.GraphveilError, match="cannot be read as a checkpoint"):
        veil(long).fit(small, small_split, checkpoint)
