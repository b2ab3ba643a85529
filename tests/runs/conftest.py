"""A finished run, trained once and copied."""

import shutil
from pathlib import Path

import pytest

import graphveil as gv
from graphveil.runs.protect import protect


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of twenty rounds on the generated graph, whose secret is a node attribute."""
    folder = tmp_path_factory.mktemp("run")
    graph = gv.load("synthetic")
    split = gv.Split.paper(graph, 3)
    recipe = gv.Veil(objective="club").recipe.but(rounds=20, warmup=5, hidden_channels=16, out_channels=8)
    veil = gv.Veil("links", "secret", objective="club", recipe=recipe, seed=3, device="cpu")
    protect(veil, graph, split, folder / "a", source={"graph": "synthetic", "split": "paper"})
    return folder / "a"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"
