"""Pseudonyms and their keys."""

import hashlib
import hmac
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphveil.errors import GraphveilError
from graphveil.release.pseudonyms import pseudonyms, read_key, under_pseudonyms
from graphveil.runs.folder import Embeddings

KEY = b"0123456789abcdef"


def expected(message: bytes, key: bytes = KEY) -> str:
    return hmac.new(key, message, hashlib.sha256).hexdigest()[:32]


def test_pseudonyms_are_hmacs_of_kind_and_id() -> None:
    assert pseudonyms(pa.array(["anna", "ütz"]), KEY).to_pylist() == [
        expected(b"text:anna"),
        expected("text:ütz".encode()),
    ]
    assert pseudonyms(pa.array([42, -1]), KEY).to_pylist() == [expected(b"int:42"), expected(b"int:-1")]
    assert pseudonyms(pa.array([True]), KEY).to_pylist() == [expected(b"bool:true")]


def test_the_kind_of_an_id_matters_and_its_width_does_not() -> None:
    same = [pseudonyms(pa.array([1], kind), KEY)[0].as_py() for kind in (pa.int8(), pa.uint64(), pa.int64())]
    assert set(same) == {expected(b"int:1")}
    text = [pseudonyms(pa.array(["1"], kind), KEY)[0].as_py() for kind in (pa.string(), pa.large_string())]
    assert set(text) == {expected(b"text:1")}
    assert text[0] != same[0]


def test_another_key_gives_other_pseudonyms() -> None:
    ids = pa.array([f"node {number}" for number in range(50)])
    one, other = (pseudonyms(ids, key).to_pylist() for key in (KEY, KEY + b"!"))
    assert len({*one, *other}) == 100


def test_rows_are_sorted_by_pseudonym() -> None:
    ids = pa.array(list(range(100)))
    z = np.arange(200, dtype=np.float32).reshape(100, 2)
    made = under_pseudonyms(Embeddings(ids, z), KEY)
    names = made.ids.to_pylist()
    assert names == sorted(names)
    rows = {expected(f"int:{number}".encode()): z[number].tolist() for number in range(100)}
    assert [rows[name] for name in names] == made.z.tolist()


def test_whitespace_around_a_key_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\n " + KEY + b"\r\n")
    assert read_key(tmp_path / "key", [tmp_path / "run"]) == KEY


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "the key .* does not exist: create it with `openssl rand -hex 32 > .*my key'`"),
        (b"", "has 0 bytes, expected at least 16"),
        (b"  123456789012345 \n", "has 15 bytes, expected at least 16"),
        (b"x" * 100_000, "too large for a key"),
    ],
)
def test_an_invalid_key_is_refused(content: bytes | None, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "my key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(GraphveilError, match=sentence):
        read_key(file, [])


@pytest.mark.parametrize("odd", [".", "/dev/zero"])
def test_a_folder_or_a_device_is_refused_as_a_key(odd: str) -> None:
    with pytest.raises(GraphveilError, match=r"is not a regular file: give a file that holds a key\.$"):
        read_key(Path(odd), [])


def test_a_key_inside_the_run_or_the_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "key").write_bytes(KEY)
    (tmp_path / "link").symlink_to(tmp_path / "run" / "key")
    for file in (tmp_path / "run" / "key", tmp_path / "link", tmp_path / "other" / ".." / "run" / "key"):
        with pytest.raises(GraphveilError, match="is inside"):
            read_key(file, [tmp_path / "out", tmp_path / "run"])


def test_a_pipe_is_refused_as_a_key(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GraphveilError, match="is not a regular file"):
        read_key(tmp_path / "pipe", [])
