"""Runs whose audits are edited as if the full panel had found nothing."""

import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

import graphveil as gv
from graphveil.data import Split
from graphveil.data.datasets.catalog import open_graph
from graphveil.runs.protect import protect
from tests.release.made import (
    CODES,
    PROTECTED,
    READING,
    audit_files,
    change,
    give_codes,
    tribes,
)


@pytest.fixture(scope="session")
def trained_codes(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that keeps links and hides the tribe, with the codes of `CODES`."""
    out = tmp_path_factory.mktemp("run") / "codes"
    graph = open_graph(str(tables), READING)
    split = Split.proportional(graph, 4, message_edges="train", targets=["links", "tribe"])
    veil = gv.Veil("links", "tribe", objective="codes", seed=4, device="cpu")
    veil.recipe = veil.recipe.but(rounds=2)
    source = {"graph": str(tables), "reading": asdict(READING), "split": "proportional"}
    protect(veil, graph, split, out, source=source)
    give_codes(out, CODES)
    return out


@pytest.fixture
def coded(trained_codes: Path, tmp_path: Path) -> Path:
    """A copy of the run of codes."""
    return Path(shutil.copytree(trained_codes, tmp_path / "coded"))


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of the run with the verdict *protected*, the full panel and no flags in its audits."""
    shutil.copytree(trained, tmp_path / "run")
    for file in audit_files(tmp_path / "run").values():
        change(file, **PROTECTED)
    return tmp_path / "run"


@pytest.fixture
def other(coded: Path, tmp_path: Path) -> Path:
    """A run whose codes reveal nothing alone, and everything together with those of `coded`."""
    folder = Path(shutil.copytree(coded, tmp_path / "other"))
    give_codes(folder, CODES % 2 ^ tribes())
    return folder
