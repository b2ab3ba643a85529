"""Every export of codes is recorded in the folder of its run."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from graphveil.errors import GraphveilError
from graphveil.release import release
from graphveil.release.ledger import NodeCodes, read_ledger
from tests.release.made import FILES, ledger, limits
from tests.release.test_export import KEY, files


def test_every_export_is_in_the_ledger_and_codes_are_stored_once(coded: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    release(coded, tmp_path / "one")
    made = release(coded, tmp_path / "two", ["parquet", "codes"], tmp_path / "key")
    assert made.joint is None, "the same codes again reveal nothing more"
    first, second = ledger(coded)
    assert (first["files"], first["secrets"], first["pseudonyms"]) == (FILES, ["tribe"], False)
    assert (second["files"], second["pseudonyms"]) == (sorted([*FILES, "embeddings.parquet"]), True)
    assert (first["codes"], first["codes_sha256"]) == (second["codes"], second["codes_sha256"])
    assert first["time"] <= second["time"]
    assert files(coded / "releases") == ["1.parquet"]
    (listed,) = read_ledger(coded)
    before = pq.read_table(tmp_path / "one" / "codes.parquet")
    codes = NodeCodes.of(before["id"].combine_chunks(), before["code"].to_numpy().astype(np.int64))
    assert (listed.codes.sha256, listed.codes.sha256) == (codes.sha256, first["codes_sha256"])
    for name in ("one", "two"):
        assert not [file for file in files(tmp_path / name) if "releases" in file]


def test_an_export_that_is_refused_is_not_in_the_ledger(coded: Path, tmp_path: Path) -> None:
    with pytest.raises(GraphveilError):
        release(coded, tmp_path / "out", max_leak=limits("0.1"))
    assert not (coded / "releases.json").exists()


def test_an_export_without_a_ledger_entry_is_refused(coded: Path, tmp_path: Path) -> None:
    (coded / "releases.json").write_text("{")
    with pytest.raises(GraphveilError, match=r"the ledger .*releases.json cannot be read"):
        release(coded, tmp_path / "out", force=True)
    (coded / "releases.json").unlink()
    (coded / "releases").touch()
    with pytest.raises(GraphveilError, match="releases"):
        release(coded, tmp_path / "out", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["coded"]


def test_changed_codes_in_the_ledger_are_refused(coded: Path, tmp_path: Path) -> None:
    release(coded, tmp_path / "out")
    table = pq.read_table(coded / "releases" / "1.parquet")
    pq.write_table(table.slice(1), coded / "releases" / "1.parquet")
    with pytest.raises(GraphveilError, match=r"releases/1\.parquet was changed after it was written"):
        release(coded, tmp_path / "other")
