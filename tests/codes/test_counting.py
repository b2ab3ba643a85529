"""Counts in blocks equal counts in one piece, and their memory does not grow with the number of links."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graphveil.codes import LinkCertificate, link_certificate
from graphveil.codes.counting import count_cells
from graphveil.codes.tables import Integers, link_cells
from graphveil.errors import GraphveilError
from tests.codes.made import random_release

COUNTING = "graphveil.codes.counting"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("block", "dense"), [(64, 0), (64, 2**20), (1000, 0)])
def test_a_certificate_in_blocks_equals_one_in_one_piece_exactly(
    seed: int, block: int, dense: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a memory-mapped file too, of narrow integers and in any order."""
    codes, y, links = random_release(seed, num_nodes=150, num_codes=20)
    y[:5] = -1
    random = np.random.default_rng(seed)
    links = links[:, random.permutation(links.shape[1])] if seed % 2 else links[:, np.lexsort(links)]
    chosen = random.choice(links.shape[1], 100, replace=False)
    monkeypatch.setattr("graphveil.codes.link_auc.MAX_RESAMPLED_LINKS", 1000)
    whole = link_certificate(codes, links, y, chosen)
    np.save(tmp_path / "links.npy", links.astype(np.int32))
    mapped = np.load(tmp_path / "links.npy", mmap_mode="r")
    for name, value in (("BLOCK", block), ("DENSE_CELLS", dense), ("COMPARED", 300)):
        monkeypatch.setattr(f"{COUNTING}.{name}", value)
    assert links.shape[1] > 3 * block / 2
    assert link_certificate(codes, mapped, y, chosen) == whole
    assert link_certificate(codes, links) == link_certificate(codes, mapped, calibration=np.arange(links.shape[1]))
    cells = count_cells(codes, links)
    expected, cell_of = link_cells(codes, links)
    np.testing.assert_array_equal(cells.codes, expected)
    np.testing.assert_array_equal(cells.links, np.bincount(cell_of))


@pytest.mark.parametrize("in_order", [True, False])
def test_links_that_occur_twice_are_found_across_blocks(in_order: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    codes, _, links = random_release(0, num_nodes=150)
    twice = np.concatenate([links, links[:, :70]], axis=1)
    order = np.lexsort(twice) if in_order else np.random.default_rng(0).permutation(twice.shape[1])
    for name, value in (("BLOCK", 64), ("COMPARED", 300)):
        monkeypatch.setattr(f"{COUNTING}.{name}", value)
    with pytest.raises(GraphveilError, match="70 links occur twice"):
        link_certificate(codes, twice[:, order])


@pytest.mark.slow
def test_memory_is_flat_in_the_number_of_links(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of 10,000,000 links and of a tenth of them, class-matched; the certificate is that of a table in one piece."""
    num_nodes = 200_000
    random = np.random.default_rng(0)
    codes, y = np.arange(num_nodes) * 100 // num_nodes, random.integers(-1, 5, num_nodes)
    peaks, certificates = [], list[LinkCertificate]()
    for number in (1_000_000, 10_000_000):
        links = mapped_links(tmp_path / f"{number}.npy", number, num_nodes, random)
        test = np.arange(0, number, number // 50_000)
        tracemalloc.start()
        certificates.append(link_certificate(codes, links, y, test))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < 250e6  # the links alone, as int64, take 160e6
    monkeypatch.setattr(f"{COUNTING}.BLOCK", 10_000_000)
    monkeypatch.setattr(f"{COUNTING}.DENSE_CELLS", 10_000_000)
    assert link_certificate(codes, links, y, test) == certificates[1]


def mapped_links(path: Path, number: int, num_nodes: int, random: np.random.Generator) -> NDArray[np.int32]:
    """Distinct links in a memory-mapped file, in ascending order; later nodes have more of them."""
    total = num_nodes * (num_nodes - 1) // 2
    numbers = np.unique((total * np.sqrt(random.random(number + number // 50))).astype(np.int64))
    numbers = np.sort(random.choice(numbers, number, replace=False))
    v = ((1 + np.sqrt(1 + 8.0 * numbers)) / 2).astype(np.int64)
    v -= v * (v - 1) // 2 > numbers
    v += v * (v + 1) // 2 <= numbers
    links: Integers = np.stack([numbers - v * (v - 1) // 2, v])
    np.save(path, links.astype(np.int32))
    mapped: NDArray[np.int32] = np.load(path, mmap_mode="r")
    return mapped
