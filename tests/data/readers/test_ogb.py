"""Folders of OGB: the ids of a mapping, and faults that are refused before they cost time."""

import gzip
from pathlib import Path

import pytest

import graphveil as gv
from tests.data.readers.made import as_ogb, refusal, small


def test_numbers_without_end_in_a_folder_of_ogb_are_refused_before_they_are_parsed(tmp_path: Path) -> None:
    """A parser whose time is quadratic in the digits would need a day."""
    folder = as_ogb(small(), tmp_path)
    for name, text in (("num-node-list", "9" * 10_000_000 + "x\n"), ("edge", "0,1\n99999999999999999999999,1\n")):
        for file in (folder / "raw").glob(f"{name}.csv*"):
            file.unlink()
        (folder / "raw" / f"{name}.csv").write_text(text)
        with pytest.raises(gv.GraphveilError, match=name):
            gv.read_graph(folder)


def test_a_mapping_of_ogb_gives_the_ids(tmp_path: Path) -> None:
    folder = as_ogb(small(), tmp_path)
    (folder / "mapping").mkdir()
    text = "node idx,paper id\n" + "".join(f"{4 - row},{100 + row}\n" for row in range(5))
    (folder / "mapping" / "nodeidx2paperid.csv.gz").write_bytes(gzip.compress(text.encode()))
    graph = gv.read_graph(folder)
    assert graph.origin.ids.to_pylist() == [104, 103, 102, 101, 100]
    (folder / "raw" / "node-feat.csv.gz").write_bytes(gzip.compress(b"1,2\n"))
    assert "node-feat.csv.gz has 1 row for 5 nodes" in refusal(folder)
