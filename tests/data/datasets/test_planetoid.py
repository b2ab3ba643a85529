"""The files of Planetoid and LINQS: damaged ones are refused, and no code in a pickle is run."""

import os
import pickle
from pathlib import Path

import pytest

import graphveil as gv
from graphveil.data.datasets.planetoid import safe_unpickle


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/graphveil-was-here",)


def test_a_pickle_that_runs_code_is_refused() -> None:
    with pytest.raises(gv.GraphveilError, match=r"uses posix\.system, which is not allowed"):
        safe_unpickle(pickle.dumps(Evil()))
    assert not Path("/tmp/graphveil-was-here").exists()
    with pytest.raises(gv.GraphveilError, match="not one of Planetoid's files"):
        safe_unpickle(b"garbage")


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
