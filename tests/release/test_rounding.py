"""`graphveil grid`: rounding a file of embeddings to a grid."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from graphveil.auditing.embeddings import read_embeddings, shape_flags
from graphveil.cli import app
from graphveil.errors import GraphveilError
from graphveil.release.rounding import round_file

Z = np.random.default_rng(0).normal(size=(50, 3))
IDS = np.arange(50)[::-1]


def write(path: Path) -> None:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(Z.ravel()), 3)
    columns = {"id": IDS, "a": Z[:, 0], "b": Z[:, 1], "c": Z[:, 2]}
    match path.name:
        case "z.npy":
            np.save(path, Z)
        case "z.npz":
            np.savez(path, z=Z, id=IDS)
        case "z.safetensors":
            path.write_bytes(safetensors.numpy.save({"z": Z, "id": IDS.copy()}))
        case "z.parquet":
            pq.write_table(pa.table(columns), path)
        case "lists.parquet":
            pq.write_table(pa.table({"id": IDS, "z": lists}), path)
        case "z.csv":
            pyarrow.csv.write_csv(pa.table(columns), path)


@pytest.mark.parametrize("name", ["z.npy", "z.npz", "z.safetensors", "z.parquet", "lists.parquet", "z.csv"])
def test_every_format_is_rounded_and_keeps_its_ids(name: str, tmp_path: Path) -> None:
    write(tmp_path / name)
    out = tmp_path / f"rounded{Path(name).suffix}"
    assert round_file(tmp_path / name, out) == 3
    before, after = (read_embeddings(file, pa.array(range(50))) for file in (tmp_path / name, out))
    np.testing.assert_allclose(after, before, atol=Z.std(axis=0).max() / 16)
    assert [flag.name for flag in shape_flags(before)] == ["not on a grid"]
    assert shape_flags(after.astype(np.float64)) == []


def test_a_file_that_cannot_be_rounded_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "z.npy")
    np.save(tmp_path / "whole.npy", IDS[:, None])
    np.save(tmp_path / "nan.npy", np.full((3, 1), np.nan))
    np.save(tmp_path / "huge.npy", Z * 1e300)
    (tmp_path / "torn.npy").write_bytes(b"no")
    for name, out, sentence in (
        ("z.npy", "z.npy", "already exists"),
        ("z.npy", "z.csv", "does not end in .npy"),
        ("z.txt", "new.txt", "ends in .txt"),
        ("none.npy", "new.npy", "is not a file"),
        ("whole.npy", "new.npy", "nothing to round"),
        ("nan.npy", "new.npy", "not finite"),
        ("huge.npy", "new.npy", "too large for float32"),
        ("torn.npy", "new.npy", "cannot be read"),
    ):
        with pytest.raises(GraphveilError, match=sentence):
            round_file(tmp_path / name, tmp_path / out)
    assert not (tmp_path / "new.npy").exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "z.npy")
    app(["grid", str(tmp_path / "z.npy"), "--out", str(tmp_path / "new.npy")], standalone_mode=False)
    assert "rounded 3 columns to a grid" in capsys.readouterr().out
    assert len(np.load(tmp_path / "new.npy")) == 50


def test_large_integers_and_half_precision_are_rounded(tmp_path: Path) -> None:
    np.save(tmp_path / "large.npy", (Z * 1e9).astype(np.int64))
    assert round_file(tmp_path / "large.npy", tmp_path / "new.npy") == 3
    assert shape_flags(np.load(tmp_path / "new.npy").astype(np.float64)) == []
    half = torch.from_numpy(Z).to(torch.bfloat16)
    safetensors.torch.save_file({"z": half}, tmp_path / "half.safetensors")
    assert round_file(tmp_path / "half.safetensors", tmp_path / "new.safetensors") == 3
