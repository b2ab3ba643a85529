"""What the tests of the training share: trainings that have not begun, and a recipe of codes."""

from torch import Tensor, nn
from torch_geometric.data import Data

import graphveil as gv
from graphveil.training.adversarial import Adversarial
from graphveil.training.loop import Training
from graphveil.veil import Fitting


def training(graph: Data, split: gv.Split, recipe: gv.Recipe, **arguments: object) -> Training:
    settings = {"objective": "club", **arguments}
    return Fitting([gv.Veil(recipe=recipe, device="cpu", **settings)], graph, [split]).training  # type: ignore[arg-type]


def game(run: Training) -> Adversarial:
    assert isinstance(run.method, Adversarial)
    return run.method


def weights(module: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in module.parameters()]


def same(before: list[Tensor], module: nn.Module) -> bool:
    return all(a.equal(b) for a, b in zip(before, module.parameters(), strict=True))


CODES = gv.Veil().recipe.but(rounds=60, ramp=30, warmup=30, hidden_channels=16, evaluate_every=10)


def veil(**arguments: object) -> gv.Veil:
    return gv.Veil(**{"recipe": CODES, "device": "cpu", **arguments})  # type: ignore[arg-type]
