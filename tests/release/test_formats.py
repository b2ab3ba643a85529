"""Every format reads back exactly: the same bits, and the same ids in the same order."""

import json
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.release.formats import FORMATS, token, tokens
from graphveil.runs.folder import Embeddings

Z = np.array([[0.1, -2.5e-30, 3.0], [1 / 3, 7e20, -0.0], [np.pi, 1e-45, 65504.0], [0, 1, 2]], dtype=np.float32)
NASTY = ["plain", "two words", 'a\tb\n"c"', "100%"]
IDS = {
    "text": pa.array(NASTY),
    "int64": pa.array([7, -3, 2**53 + 1, 0]),
    "uint64": pa.array([2**64 - 1, 0, 1, 2], pa.uint64()),
}


def lines(file: Path, delimiter: str) -> list[list[str]]:
    text = file.read_bytes().decode()
    assert text.endswith("\n")
    return [line.split(delimiter) for line in text[:-1].split("\n")]


def numbers(rows: list[list[str]]) -> "np.typing.NDArray[np.float32]":
    return np.array([[np.float32(word) for word in row] for row in rows], dtype=np.float32)


def back(word: str) -> str:
    return "" if word == "%" else unquote(word, errors="strict")


@pytest.mark.parametrize("kind", IDS)
def test_every_format_reads_back_equal(kind: str, tmp_path: Path) -> None:
    ids = IDS[kind]
    for write in FORMATS.values():
        write(tmp_path, Embeddings(ids, Z))

    table = pq.read_table(tmp_path / "embeddings.parquet")
    assert table.column_names == ["id", "z0", "z1", "z2"]
    assert table["id"].type == ids.type
    assert table["id"].to_pylist() == ids.to_pylist()
    assert np.stack([table[f"z{i}"].to_numpy() for i in range(3)], axis=1).tobytes() == Z.tobytes()

    assert np.load(tmp_path / "embeddings.npy", allow_pickle=False).tobytes() == Z.tobytes()
    beside = [json.loads(line) for line in (tmp_path / "ids.jsonl").read_text().splitlines()]
    assert beside == ids.to_pylist(), "with their type: JSON distinguishes 7 from '7'"

    tensors = safetensors.numpy.load_file(tmp_path / "embeddings.safetensors")
    assert tensors["z"].tobytes() == Z.tobytes()
    assert ("id" in tensors) == (kind != "text")
    if kind != "text":
        assert tensors["id"].tolist() == ids.to_pylist()

    head, *rows = lines(tmp_path / "embeddings.word2vec.txt", " ")
    assert head == ["4", "3"]
    assert numbers([row[1:] for row in rows]).tobytes() == Z.tobytes()
    assert [back(row[0]) for row in rows] == [str(value) for value in ids.to_pylist()]

    assert numbers(lines(tmp_path / "projector" / "tensors.tsv", "\t")).tobytes() == Z.tobytes()
    metadata = lines(tmp_path / "projector" / "metadata.tsv", "\t")
    assert [len(row) for row in metadata] == [1] * 4
    assert [back(row[0]) for row in metadata] == [str(value) for value in ids.to_pylist()]
    config = (tmp_path / "projector" / "projector_config.pbtxt").read_text()
    for name in ("tensors.tsv", "metadata.tsv"):
        assert f'_path: "{name}"' in config


@given(st.lists(st.text(), min_size=1, max_size=5, unique=True))
@settings(max_examples=300, deadline=None)
def test_every_id_has_a_unique_token_without_whitespace(ids: list[str]) -> None:
    words = tokens(pa.array(ids)).to_pylist()
    assert len(set(words)) == len(ids)
    for word, text in zip(words, ids, strict=True):
        assert word.split() == [word]
        assert word.isprintable()
        assert '"' not in word
        assert word == token(text)
        assert back(word) == text


def test_the_token_of_an_empty_id_is_unique() -> None:
    assert tokens(pa.array(["", "%", "%25", "a b"])).to_pylist() == ["%", "%25", "%2525", "a%20b"]


def test_every_printable_ascii_id_can_be_written(tmp_path: Path) -> None:
    """Arrow's CSV writer refuses quotes and delimiters, so tokens must not contain them."""
    ids = [chr(code) * 2 for code in range(32, 127)]
    z = np.zeros((len(ids), 1), dtype=np.float32)
    FORMATS["word2vec"](tmp_path, Embeddings(pa.array(ids), z))
    FORMATS["projector"](tmp_path, Embeddings(pa.array(ids), z))
    assert [back(row[0]) for row in lines(tmp_path / "embeddings.word2vec.txt", " ")[1:]] == ids
