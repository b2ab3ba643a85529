"""Every format reads back exactly: the same bits, and the same ids in the same order."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphveil.release.writers import FORMATS, token, tokens
from graphveil.runs.folder import Embeddings

Rows = NDArray[np.float32]
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


def numbers(rows: list[list[str]]) -> Rows:
    return np.array([[np.float32(word) for word in row] for row in rows], dtype=np.float32)


def back(word: str) -> str:
    return "" if word == "%" else unquote(word, errors="strict")


def read_codes(folder: Path) -> tuple[list[Any], Rows]:
    nodes, book = (pq.read_table(folder / f"{name}.parquet") for name in ("codes", "code_book"))
    assert (nodes.column_names, book.column_names) == (["id", "code"], ["code", "z0", "z1", "z2"])
    return nodes["id"].to_pylist(), columns(book)[nodes["code"].to_numpy()]


def read_parquet(folder: Path) -> tuple[list[Any], Rows]:
    table = pq.read_table(folder / "embeddings.parquet")
    assert table.column_names == ["id", "z0", "z1", "z2"]
    return table["id"].to_pylist(), columns(table)


def read_npy(folder: Path) -> tuple[list[Any], Rows]:
    return ids_beside(folder), np.load(folder / "embeddings.npy", allow_pickle=False)


def read_safetensors(folder: Path) -> tuple[list[Any], Rows]:
    tensors = safetensors.numpy.load_file(folder / "embeddings.safetensors")
    assert (folder / "ids.jsonl").exists() != ("id" in tensors), "ids of text are beside it"
    return tensors["id"].tolist() if "id" in tensors else ids_beside(folder), tensors["z"]


def read_word2vec(folder: Path) -> tuple[list[Any], Rows]:
    head, *rows = lines(folder / "embeddings.word2vec.txt", " ")
    assert head == ["4", "3"]
    return [back(row[0]) for row in rows], numbers([row[1:] for row in rows])


def read_projector(folder: Path) -> tuple[list[Any], Rows]:
    metadata = lines(folder / "projector" / "metadata.tsv", "\t")
    assert [len(row) for row in metadata] == [1] * 4
    config = (folder / "projector" / "projector_config.pbtxt").read_text()
    for name in ("tensors.tsv", "metadata.tsv"):
        assert f'_path: "{name}"' in config
    return [back(row[0]) for row in metadata], numbers(lines(folder / "projector" / "tensors.tsv", "\t"))


def read_embedding_atlas(folder: Path) -> tuple[list[Any], Rows]:
    table = pq.read_table(folder / "embeddings.atlas.parquet")
    assert table.column_names == ["id", "vector"]
    return table["id"].to_pylist(), np.stack(table["vector"].to_numpy(zero_copy_only=False))


def columns(table: pa.Table) -> Rows:
    return np.stack([table[f"z{i}"].to_numpy() for i in range(3)], axis=1)


def ids_beside(folder: Path) -> list[Any]:
    """With their type: JSON distinguishes 7 from '7'."""
    return [json.loads(line) for line in (folder / "ids.jsonl").read_text().splitlines()]


READERS: dict[str, Callable[[Path], tuple[list[Any], Rows]]] = {
    "codes": read_codes,
    "parquet": read_parquet,
    "npy": read_npy,
    "safetensors": read_safetensors,
    "word2vec": read_word2vec,
    "projector": read_projector,
    "embedding-atlas": read_embedding_atlas,
}
OF_TOKENS = ("word2vec", "projector")
"""Formats in which every id is text."""


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", IDS)
def test_every_format_reads_back_equal(kind: str, name: str, tmp_path: Path) -> None:
    ids = IDS[kind]
    FORMATS[name](tmp_path, Embeddings(ids, Z))
    found, z = READERS[name](tmp_path)
    assert found == ([str(value) for value in ids.to_pylist()] if name in OF_TOKENS else ids.to_pylist())
    assert z.dtype == np.float32
    assert z.tobytes() == Z.tobytes()


@pytest.mark.parametrize("kind", IDS)
def test_parquet_keeps_the_type_of_the_ids(kind: str, tmp_path: Path) -> None:
    FORMATS["parquet"](tmp_path, Embeddings(IDS[kind], Z))
    assert pq.read_table(tmp_path / "embeddings.parquet")["id"].type == IDS[kind].type


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
