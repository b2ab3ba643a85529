"""Untrusted files: their kind and unpacked size are checked, and the encoding of their text is found."""

import gzip
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphveil as gv
from graphveil.data.readers import safe_open
from tests.data.readers.made import EDGES, links, refusal, tables


def test_what_is_no_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is not a regular file" in refusal(tmp_path / "pipe.csv")
    assert "is not a regular file" in refusal("/dev/zero")
    tables(tmp_path, nodes=None)
    os.mkfifo(tmp_path / "nodes.csv")
    assert "is not a regular file" in refusal(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    assert "holds no table" in refusal(tmp_path / "folder.csv")
    assert "No such file" in refusal(tmp_path / "none.csv")
    assert "File name too long" in refusal(str(tmp_path / ("n" * 300)))
    assert "null byte" in refusal("a\0b")


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("u,v\na,b\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    assert gv.read_graph(tmp_path / "link.csv").x.size(0) == 2
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    assert "loop" in refusal(tmp_path / "loop.csv")


def test_bombs_are_refused_unopened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_open, "SMALL", 1 << 20)
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(b"0,0\n" * 2_000_000))
    assert "as a decompression bomb does" in refusal(tmp_path / "edges.csv.gz")
    with zipfile.ZipFile(tmp_path / "zeros.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        content = io.BytesIO()
        np.save(content, np.zeros((2, 1_000_000), dtype=np.int64))
        archive.writestr("edge_index.npy", content.getvalue())
    assert "as a decompression bomb does" in refusal(tmp_path / "zeros.npz")
    pq.write_table(
        pa.table({"u": np.zeros(50_000_000, dtype=np.int8), "v": np.zeros(50_000_000, dtype=np.int8)}),
        tmp_path / "e.parquet",
    )
    assert "as a decompression bomb does" in refusal(tmp_path / "e.parquet")


def test_a_wrong_encoding_is_named(tmp_path: Path) -> None:
    """Two bytes are one letter then, and no letter is the end of a line."""
    rows = "".join(f"a{number % 10},b{number % 10}\n" for number in range(60_000))
    folder = tables(tmp_path, "source,target\n" + rows, None)
    sentence = refusal(folder / "edges.csv", text_encoding="utf-16")
    assert "cannot be read as 'utf-16' (all lines would become one)" in sentence


def test_gz_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(EDGES.encode()))
    (tmp_path / "nodes.tsv.gz").write_bytes(
        gzip.compress(b"id\tz\nann\t1\nbob\t2\n") + gzip.compress(b"cid\t3\ndee\t4\n")
    )
    graph = gv.read_graph(tmp_path)
    assert links(graph) == [("ann", "bob"), ("bob", "cid"), ("cid", "dee")]
    assert graph.x.size(1) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_marks_of_encodings_are_understood(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "edges.csv").write_text("source,target\nZoë,李\n", encoding=encoding)
    assert links(gv.read_graph(tmp_path)) == [("Zoë", "李")]


def test_another_encoding_is_reported_with_its_line_and_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\nZoë,b\n", encoding="latin-1")
    sentence = refusal(tmp_path)
    assert "edges.csv, line 3, has the byte 0xeb" in sentence
    assert "--text-encoding latin-1" in sentence
    assert gv.read_graph(tmp_path, text_encoding="latin-1").origin.ids.to_pylist() == ["Zoë", "a", "b"]
