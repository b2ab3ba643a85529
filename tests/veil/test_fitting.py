"""Many runs as one batch are what they are one by one."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import graphveil as gv
from graphveil.data import UNKNOWN
from graphveil.models import ENCODERS
from graphveil.models.encoders import GCN
from graphveil.models.stack import is_batched
from graphveil.models.student import Student
from graphveil.training import distil
from graphveil.training.adversarial import Adversarial
from graphveil.training.loop import Training
from graphveil.veil import Fitting

SEEDS = (3, 4, 5)
TRADEOFFS = (1.0, 0.4, 0.8)


def veils(recipe: gv.Recipe, **arguments: object) -> list[gv.Veil]:
    runs = zip(SEEDS, TRADEOFFS, strict=True)
    settings = {"objective": "club", **arguments}
    return [
        gv.Veil(recipe=recipe, seed=seed, tradeoff=tradeoff, device="cpu", **settings)  # type: ignore[arg-type]
        for seed, tradeoff in runs
    ]


def game(training: Training) -> Adversarial:
    assert isinstance(training.method, Adversarial)
    return training.method


def both_ways(
    graph: Data, splits: Sequence[gv.Split], make: Callable[[], list[gv.Veil]]
) -> tuple[list[gv.Veil], list[gv.Veil]]:
    alone, together = make(), make()
    for veil, split in zip(alone, splits, strict=True):
        veil.fit(graph, split)
    gv.fit_together(together, graph, splits)
    return alone, together


def distance(z: Tensor, other: Tensor) -> float:
    """The largest difference, in units of the largest coordinate."""
    return float((z - other).abs().max() / z.abs().max())


@pytest.fixture
def smooth_adam(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adam divides by the size of a gradient, and so enlarges the rounding of small ones; not with this epsilon."""
    monkeypatch.setattr(torch.optim, "Adam", partial(torch.optim.Adam, eps=1e-2))


@pytest.fixture(scope="module")
def splits(small: Data) -> list[gv.Split]:
    return [gv.Split.proportional(small, seed) for seed in SEEDS]


@pytest.mark.usefixtures("smooth_adam")
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("utility", ["links", "labels"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_batch_equals_its_runs_one_by_one(
    small: Data, splits: list[gv.Split], quick: gv.Recipe, encoder: str, utility: str, dense: bool
) -> None:
    """Every weight and value of every run is compared."""
    graph = small.clone()
    graph.x = small.x.to_dense() if dense else small.x
    recipe = quick.but(rounds=6, head="linear" if utility == "labels" else "bilinear")
    secret = "labels" if utility == "links" else "links"
    alone, together = both_ways(
        graph, splits, lambda: veils(recipe, utility=utility, secret=secret, encoder=encoder, objective="club")
    )
    for one, many, split in zip(alone, together, splits, strict=True):
        assert len(one.history_) == len(many.history_) == 6
        for a, b in zip(one.history_, many.history_, strict=True):
            assert a.round == b.round
            assert a.utility_loss == pytest.approx(b.utility_loss, abs=2e-6)
            assert a.secrets[0].loss == pytest.approx(b.secrets[0].loss, abs=2e-6)
        assert distance(one.encode(graph, split), many.encode(graph, split)) < 1e-5, "before the grid"
    assert distance(together[0].transform(graph), together[1].transform(graph)) > 0.1, "runs differ"


@pytest.mark.usefixtures("smooth_adam")
@pytest.mark.parametrize("heads", [("bilinear", "mlp"), ("fermi-dirac", "linear"), ("pair-mlp", "mlp")])
def test_every_head_can_be_stacked(
    small: Data, splits: list[gv.Split], quick: gv.Recipe, heads: tuple[str, str]
) -> None:
    recipe = quick.but(rounds=6, head=heads[0])
    alone, together = both_ways(
        small, splits, lambda: veils(recipe, objective="club", adversary=gv.Adversary(heads[1]))
    )
    for one, many, split in zip(alone, together, splits, strict=True):
        assert distance(one.encode(small, split), many.encode(small, split)) < 1e-5, "before the grid"
        assert one.score(small, split).utility == pytest.approx(many.score(small, split).utility, abs=0.01)


@pytest.mark.parametrize("secrets", ["links", ["links", "group"]])
def test_tradeoffs_of_one_seed_share_their_teachers(
    small: Data, quick: gv.Recipe, secrets: str | list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each veil has the result that it has alone, and as many students are trained as there are different ones."""
    grouped = small.clone()
    grouped["group"] = torch.arange(150) % 2
    split = gv.Split.proportional(grouped, 0)
    quick = quick.but(teachers=2, head="linear")
    students: list[Student] = []
    train = distil._train_student

    def count(*arguments: Any) -> Student:
        students.append(train(*arguments))
        return students[-1]

    monkeypatch.setattr(distil, "_train_student", count)

    def make() -> list[gv.Veil]:
        return [
            gv.Veil(utility="labels", secret=secrets, recipe=quick, seed=3, tradeoff=tradeoff, device="cpu")
            for tradeoff in TRADEOFFS
        ]

    fitting = Fitting(make(), grouped, [split] * 3)
    assert len(fitting.training.records) == quick.teachers
    alone, together = both_ways(grouped, [split] * 3, make)
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one.transform(grouped, split), other.transform(grouped, split))
        assert one.score(grouped, split) == other.score(grouped, split)
    each = 1 + distil.FOLDS
    expected_alone, expected_together = 1 + 2 * each, each if secrets == "links" else 1 + 2 * each
    assert len(students) == expected_alone + expected_together


def test_each_run_stops_by_itself(small: Data, splits: list[gv.Split], quick: gv.Recipe) -> None:
    recipe = quick.but(rounds=150, patience=6)
    together = veils(recipe)
    gv.fit_together(together, small, splits)
    lengths = [len(veil.history_) for veil in together]
    assert len(set(lengths)) > 1, "these three stop at different rounds"
    for veil, length in zip(together, lengths, strict=True):
        assert length == 150 or length == veil.best_round_ + 6
        assert veil.history_[-1].round == length


def test_a_run_that_diverges_does_not_touch_the_others(small: Data, splits: list[gv.Split], quick: gv.Recipe) -> None:
    def poison(training: Training) -> None:
        if training.round == 4:
            with torch.no_grad():
                next(iter(game(training).encoder.module.parameters()))[1].fill_(float("nan"))

    together, untouched = veils(quick), veils(quick)
    with pytest.raises(gv.DivergedError, match=r"1 of 3 runs diverged.*seed 4, tradeoff 0.4.*round 5"):
        gv.fit_together(together, small, splits, on_round=poison)
    gv.fit_together(untouched, small, splits)
    for run in (0, 2):
        assert together[run].transform(small).equal(untouched[run].transform(small))
    assert torch.isfinite(together[1].transform(small)).all(), "it keeps its last good state"


def test_unknown_classes_that_fall_differently_train_apart(small: Data, quick: gv.Recipe) -> None:
    """With holes in the secret the parts have other sizes in each split: no batch, and still the same results."""
    graph = small.clone()
    graph.secret = small.secret.clone()
    graph.secret[::3] = UNKNOWN
    splits = [gv.Split.proportional(graph, seed) for seed in SEEDS]
    alone, together = both_ways(graph, splits, lambda: veils(quick.but(rounds=3), secret="secret"))
    for one, many, split in zip(alone, together, splits, strict=True):
        assert distance(one.transform(graph, split), many.transform(graph, split)) < 1e-3


def test_a_batch_of_one_that_diverges_does_not_stop_the_next(
    small: Data, splits: list[gv.Split], quick: gv.Recipe
) -> None:
    seen: list[Training] = []

    def poison(training: Training) -> None:
        seen.append(training)
        if training is seen[0] and training.round == 4:
            next(iter(game(training).encoder.module.parameters())).data.fill_(float("nan"))

    together = veils(quick, encoder=Own)
    with pytest.raises(gv.DivergedError, match="1 of 3 runs diverged; the others are fitted"):
        gv.fit_together(together, small, splits, on_round=poison)
    assert [len(veil.history_) for veil in together] == [5, 12, 12]


class Own(nn.Module):
    """An encoder that nobody promised to be stackable."""

    def __init__(self, in_channels: int, out_channels: int, **_: object) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        del edge_index
        return torch.nn.functional.dropout(self.linear(x), 0.3, self.training)


def test_an_encoder_of_ones_own_is_trained_run_by_run(small: Data, splits: list[gv.Split], quick: gv.Recipe) -> None:
    alone, together = both_ways(small, splits, lambda: veils(quick, encoder=Own))
    for one, many, split in zip(alone, together, splits, strict=True):
        assert one.transform(small, split).equal(many.transform(small, split))


def test_what_cannot_be_a_batch_is_one_sentence(small: Data, splits: list[gv.Split], quick: gv.Recipe) -> None:
    with pytest.raises(gv.GraphveilError, match="3 veils came with 2 splits"):
        gv.fit_together(veils(quick), small, splits[:2])
    odd = [*veils(quick)[:2], gv.Veil(objective="club", recipe=quick.but(rounds=99), device="cpu")]
    with pytest.raises(gv.GraphveilError, match="differ in more than seed and tradeoff"):
        gv.fit_together(odd, small, splits)
    gv.fit_together([], small, [])


def test_no_run_sees_another_runs_nodes(small: Data, splits: list[gv.Split], quick: gv.Recipe) -> None:
    """The loss of one run has no gradient at another run's embeddings."""
    training = Fitting(veils(quick), small, splits).training
    z = training.method.embed().requires_grad_()
    from graphveil.training.targets import Rows

    for target, module in (
        (game(training).problem.utility, game(training).utility.module),
        (game(training).secrets[0].target, game(training).adversaries[0].module),
    ):
        examples = target.train(game(training)._noise)
        log_q = target.log_probabilities(module, Rows(z, examples))
        (gradient,) = torch.autograd.grad(log_q[1].sum(), z)
        assert gradient[1].abs().sum() > 0
        assert gradient[0].abs().sum() == gradient[2].abs().sum() == 0


def test_other_message_edges_are_another_batch(small: Data, quick: gv.Recipe) -> None:
    """All else of the two splits is of the same size, but the graph is not."""
    splits = [gv.Split.proportional(small, seed, message_edges=edges) for seed, edges in ((3, "train"), (4, "all"))]  # type: ignore[arg-type]
    recipe = quick.but(rounds=6, head="linear")
    alone, together = both_ways(
        small,
        splits,
        lambda: veils(recipe, utility="labels", secret="links", encoder="gat")[:2],
    )
    for one, many, split in zip(alone, together, splits, strict=True):
        assert distance(one.transform(small, split), many.transform(small, split)) < 1e-3


def test_instances_of_one_class_are_not_alike(small: Data, splits: list[gv.Split], quick: gv.Recipe) -> None:
    encoders = [GCN(40, 8, 4, smoothing=times) for times in (0, 6)]
    two = [gv.Veil(encoder=encoder, recipe=quick, device="cpu") for encoder in encoders]
    with pytest.raises(gv.GraphveilError, match="differ in more than seed and tradeoff"):
        gv.fit_together(two, small, splits[:2])


class Promising(Own):
    """Says that it can be stacked, but draws from torch's generator."""

    batched = True

    def __init__(self, in_channels: int, out_channels: int, **_: object) -> None:
        super().__init__(in_channels, out_channels)
        self.drop = nn.Dropout(0.3)


class Buffered(Own):
    """Says that it can be stacked, but has a buffer."""

    batched = True

    def __init__(self, in_channels: int, out_channels: int, **_: object) -> None:
        super().__init__(in_channels, out_channels)
        self.register_buffer("scale", torch.ones(out_channels))


@pytest.mark.parametrize("encoder", [Promising, Buffered])
def test_a_promise_that_cannot_be_kept_is_not_relied_on(encoder: type[nn.Module]) -> None:
    assert not is_batched(encoder(3, 2))
    assert is_batched(GCN(3, 4, 2))
