"""The estimator: both problems and an attribute, several secrets, saving and loading, and misuse."""

import shutil
from copy import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import graphveil as gv
from graphveil.models import ENCODERS
from graphveil.models.build import spec_name
from graphveil.training.loop import Training
from graphveil.training.objectives import OBJECTIVES
from tests.veil.made import veil

PROBLEMS = [("links", "labels"), ("labels", "links"), ("labels", "secret"), ("links", "secret")]


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(("utility", "secret"), PROBLEMS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_problem_encoder_and_objective_trains(
    small: Data, small_split: gv.Split, quick: gv.Recipe, encoder: str, utility: str, secret: str, objective: str
) -> None:
    few = quick.but(rounds=6)
    trained = veil(few, utility, secret, encoder=encoder, objective=objective, tradeoff=0.7).fit(small, small_split)
    z = trained.transform(small)
    widths = (4,) if objective != "codes" else (3,) if secret == "links" else range(1, 5)
    assert z.shape[0] == 150
    assert z.shape[1] in widths
    assert z.dtype == torch.float32
    assert torch.isfinite(z).all()
    score = trained.score(small, small_split)
    assert 0 <= score.utility <= 1
    assert score.secrets[0].metric == ("auc" if secret == "links" else "accuracy")
    assert len(trained.history_) == 6


@pytest.mark.parametrize("encoder", ENCODERS)
def test_training_learns_both_utilities(graph: Data, encoder: str) -> None:
    """On a graph with strong homophily and topics an unprotected encoder is far above chance, and tells the secret."""
    for utility, secret, edges in (("links", "labels", "train"), ("labels", "links", "all")):
        split = gv.Split.paper(graph, 0, message_edges=edges)  # type: ignore[arg-type]
        plain = gv.Veil(utility, secret, encoder, device="cpu").unprotected()
        veil = copy(plain)
        veil.adversary, veil.recipe = gv.Adversary(steps=2), plain.recipe.but(rounds=50)
        score = veil.fit(graph, split).score(graph, split)
        assert score.utility > (0.7 if utility == "links" else 0.85), utility
        assert score.secrets[0].value > score.secrets[0].chance + 0.2, secret


def test_several_secrets_are_hidden_scored_saved_and_resumed(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path
) -> None:
    def make() -> gv.Veil:
        recipe = quick.but(head="linear", rounds=24)
        return gv.Veil("labels", ["secret", "links"], objective="club", recipe=recipe, device="cpu", seed=4)

    whole = make().fit(small, small_split)
    score = whole.score(small, small_split)
    assert [(one.secret, one.metric) for one in score.secrets] == [("secret", "accuracy"), ("links", "auc")]
    whole.save(tmp_path / "run")
    again = gv.Veil.load(tmp_path / "run")
    assert again.secrets == ("secret", "links")
    assert again.score(small, small_split) == score

    def stop(training: Training) -> None:
        if training.round == 21:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make().fit(small, small_split, checkpoint=tmp_path / "checkpoint", on_round=stop)
    resumed = make().fit(small, small_split, checkpoint=tmp_path / "checkpoint")
    assert resumed.transform(small).equal(whole.transform(small))
    assert [repr(done) for done in resumed.history_] == [repr(done) for done in whole.history_]
    assert list(whole.history_[0].row())[-3:] == ["secret_loss-2", "adversary-2", "probe-2"]


def test_protection_lowers_what_the_adversary_reads(graph: Data, split: gv.Split) -> None:
    recipe = gv.Veil(objective="club").recipe.but(rounds=120, hidden_channels=32, out_channels=16)
    scores = [
        gv.Veil(objective="club", tradeoff=tradeoff, recipe=recipe, device="cpu").fit(graph, split).score(graph, split)
        for tradeoff in (1.0, 0.5)
    ]
    assert scores[1].secrets[0].value < scores[0].secrets[0].value - 0.3


def test_same_seed_same_bytes_and_other_seed_others(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    z = [veil(quick, seed=seed, objective="club").fit(small, small_split).transform(small) for seed in (3, 3, 4)]
    assert z[0].equal(z[1])
    assert not z[0].equal(z[2])


def test_transform_follows_the_message_edges(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    trained = veil(quick, objective="club").fit(small, small_split)
    assert not trained.transform(small).equal(trained.transform(small, small_split))
    everything = gv.Split.proportional(small, 2, message_edges="all")
    assert torch.allclose(trained.transform(small), trained.transform(small, everything), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("utility", "secret"), PROBLEMS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_saved_and_loaded_is_the_same(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path, utility: str, secret: str, encoder: str
) -> None:
    trained = veil(quick.but(rounds=6), utility, secret, encoder=encoder).fit(small, small_split)
    trained.save(tmp_path / "run")
    again = gv.Veil.load(tmp_path / "run")
    assert again.transform(small).equal(trained.transform(small))
    assert again.score(small, small_split) == trained.score(small, small_split)
    assert again.config() == trained.config()
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["model.safetensors", "run.json"]


class Strict(nn.Module):
    """An encoder that takes the four sizes every encoder is given, and nothing else."""

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(in_channels, hidden_channels), nn.Linear(hidden_channels, out_channels))
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        del edge_index
        out: Tensor = self.layers(x)
        return out


@pytest.mark.parametrize(("utility", "secret"), PROBLEMS[:2])
def test_an_encoder_of_ones_own_starts_from_a_recipe_it_can_follow(
    small: Data, small_split: gv.Split, utility: str, secret: str
) -> None:
    own = gv.Veil(utility, secret, Strict, device="cpu")
    own.recipe = own.recipe.but(rounds=2)
    assert len(own.fit(small, small_split).transform(small)) == 150
    for name, cls in ENCODERS.items():
        named = gv.Veil(utility, secret, name).recipe
        assert gv.Veil(utility, secret, cls).recipe == gv.Veil(utility, secret, spec_name(cls)).recipe == named


@pytest.fixture(scope="module")
def two_runs(small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, and another one with weights of another shape."""
    folder = tmp_path_factory.mktemp("runs")
    veil(quick).fit(small, small_split).save(folder / "run")
    veil(quick.but(hidden_channels=7)).fit(small, small_split).save(folder / "other")
    return folder


@pytest.mark.parametrize("damage", ["no folder", "no model", "torn model", "torn json", "other weights", "a list"])
def test_what_is_no_run_is_one_sentence(two_runs: Path, tmp_path: Path, damage: str) -> None:
    shutil.copytree(two_runs, tmp_path, dirs_exist_ok=True)
    run, model = tmp_path / "run", tmp_path / "run" / "model.safetensors"
    match damage:
        case "no folder":
            run = tmp_path / "nowhere"
        case "no model":
            model.unlink()
        case "torn model":
            model.write_bytes(model.read_bytes()[:200])
        case "torn json":
            (run / "run.json").write_text('{"schema": ')
        case "other weights":
            model.write_bytes((tmp_path / "other" / "model.safetensors").read_bytes())
        case "a list":
            (run / "run.json").write_text("[]")
    with pytest.raises(gv.GraphveilError, match="is not a run of graphveil that can be read") as caught:
        gv.Veil.load(run)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"utility": "links", "secret": "links"}, "both 'links'"),
        ({"objective": "clubb"}, "unknown objective 'clubb'.*Did you mean 'club'"),
        ({"tradeoff": 1.5}, "tradeoff is 1.5"),
        ({"tradeoff": float("nan")}, "tradeoff is nan"),
        ({"secret": "gender"}, "no 'gender'"),
        ({"encoder": "gnc"}, "unknown encoder"),
        ({"device": "tpu"}, "device 'tpu' cannot be used"),
        ({"objective": "club", "adversary": gv.Adversary("bilinear")}, "unknown node head 'bilinear'"),
        ({"recipe": gv.Recipe(code_groups=2, code_size=13)}, "169 codes for 150 nodes"),
    ],
)
def test_wrong_arguments_are_one_sentence(
    small: Data, small_split: gv.Split, quick: gv.Recipe, arguments: dict[str, object], says: str
) -> None:
    with pytest.raises(gv.GraphveilError, match=says):
        gv.Veil(**{"recipe": quick, "device": "cpu", **arguments}).fit(small, small_split)  # type: ignore[arg-type]


def test_other_misuse_is_one_sentence(small: Data, small_split: gv.Split, quick: gv.Recipe, graph: Data) -> None:
    with pytest.raises(gv.GraphveilError, match="has not been trained"):
        gv.Veil().transform(small)
    with pytest.raises(gv.GraphveilError, match="split is for 150 nodes and the graph has 1800"):
        veil(quick).fit(graph, small_split)
    with pytest.raises(gv.GraphveilError, match='use message_edges="train"'):
        veil(quick).fit(small, gv.Split.proportional(small, 0, message_edges="all"))
    with pytest.raises(gv.GraphveilError, match="has 120 features and the encoder was trained on 40"):
        veil(quick).fit(small, small_split).transform(graph)
    unknown = small.clone()
    unknown.secret = torch.full((150,), -1)
    with pytest.raises(gv.GraphveilError, match="known for none of the training nodes"):
        veil(quick, secret="secret").fit(unknown, small_split)
