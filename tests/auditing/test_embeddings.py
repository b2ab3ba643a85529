"""Embeddings from files, and their flags."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from graphveil.auditing.embeddings import (
    check_embeddings,
    read_embeddings,
    rows_digest,
    shape_flags,
    value_bits,
    whole_steps,
)
from graphveil.errors import GraphveilError

Z = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
SHUFFLED = np.random.default_rng(1).permutation(30)


def nodes(count: int) -> pa.Array:
    return pa.array(range(count))


def write(path: Path) -> None:
    """Z as each kind of file, in another order where rows carry ids."""
    columns = {"node": SHUFFLED, **{f"z{i}": Z[SHUFFLED, i] for i in range(3)}}
    match path.name:
        case "z.npy":
            np.save(path, Z)
        case "z.npz":
            np.savez(path, z=Z, other=np.ones((2, 2)))
        case "z.safetensors":
            path.write_bytes(safetensors.numpy.save({"z": Z[SHUFFLED], "node": SHUFFLED}))
        case "z.parquet":
            pq.write_table(pa.table(columns), path)
        case "lists.parquet":
            rows = pa.FixedSizeListArray.from_arrays(pa.array(Z[SHUFFLED].ravel()), 3)
            pq.write_table(pa.table({"id": SHUFFLED, "embedding": rows}), path)
        case "z.csv":
            lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
            path.write_text("\n".join(lines))
        case "plain.csv":
            path.write_text("\n".join(["a,b,c", *(",".join(map(str, row)) for row in Z)]))


@pytest.mark.parametrize(
    "name", ["z.npy", "z.npz", "z.safetensors", "z.parquet", "lists.parquet", "z.csv", "plain.csv"]
)
def test_rows_of_every_kind_of_file_are_in_the_order_of_the_nodes(name: str, tmp_path: Path) -> None:
    write(tmp_path / name)
    np.testing.assert_array_equal(read_embeddings(tmp_path / name, nodes(30)).astype(np.float32), Z)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("z.txt", b"1", "ends in .txt"),
        ("z", b"1", "has no suffix"),
        ("z.npy", b"not numpy", "cannot be read as embeddings"),
        ("z.npz", b"not a zip", "cannot be read as embeddings"),
        ("z.npz", b"PK\x03\x04" + b"x" * 60, "cannot be read as embeddings"),
        ("z.parquet", b"not parquet", "cannot be read as embeddings"),
        ("z.safetensors", b"\xff" * 40, "cannot be read as embeddings"),
        ("z.csv", b"", "cannot be read as embeddings"),
        ("z.csv", b"a,b\n1,x\n2,y\n", "column 'b' holds string"),
        ("z.csv", b"node\n1\n2\n", "no column of numbers"),
        ("z.csv", b"node,a\n0,1\n0,2\n", "expected the ids of the graph's 2 nodes, 0 to 1, each once"),
        ("z.csv", b"node,a\n0,1\n1,\n", "nan in row 1, column 0"),
    ],
)
def test_an_unreadable_file_raises_an_error_in_one_line(
    name: str, content: bytes, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(GraphveilError, match=sentence) as error:
        read_embeddings(tmp_path / name, nodes(2))
    assert "\n" not in str(error.value)
    assert name in str(error.value)


def test_a_pickle_inside_an_array_is_not_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(GraphveilError, match="cannot be read as embeddings"):
        read_embeddings(tmp_path / "z.npy", nodes(1))


def test_half_precision_of_either_kind(tmp_path: Path) -> None:
    for kind in (torch.bfloat16, torch.float16):
        safetensors.torch.save_file({"z": torch.from_numpy(Z).to(kind)}, tmp_path / "z.safetensors")
        np.testing.assert_allclose(read_embeddings(tmp_path / "z.safetensors", nodes(30)), Z, atol=2e-2)


def test_missing_files_and_ambiguous_archives(tmp_path: Path) -> None:
    with pytest.raises(GraphveilError, match="is not a file"):
        read_embeddings(tmp_path / "z.npy", nodes(2))
    np.savez(tmp_path / "z.npz", a=np.ones((2, 2)), b=np.ones((2, 2)))
    with pytest.raises(GraphveilError, match="it holds a, b, not one matrix named z"):
        read_embeddings(tmp_path / "z.npz", nodes(2))


def test_dead_and_duplicated_dimensions() -> None:
    assert shape_flags(np.rint(64 * Z)) == []
    bad = np.concatenate([Z, np.ones((30, 2), np.float32), -3 * Z[:, :1] + 1], axis=1)
    flags = {flag.name: flag.sentence for flag in shape_flags(bad, discrete=True)}
    assert flags == {
        "dead dimensions": "2 of 6 dimensions are constant",
        "duplicated dimensions": "1 of 6 dimensions repeat another",
    }


@pytest.mark.parametrize(("ids", "text"), [(["b", "007", "7"], ["7", "b", "007"]), ([30, 10, 20], ["20", "30", "10"])])
def test_rows_are_matched_by_ids(ids: list[object], text: list[str], tmp_path: Path) -> None:
    """Row r of the file is for node `text[r]`; 007 and 7 are two nodes."""
    (tmp_path / "z.csv").write_text("\n".join(["id,a", *(f"{name},{row + 1}" for row, name in enumerate(text))]))
    result = read_embeddings(tmp_path / "z.csv", pa.array(ids))
    assert result[:, 0].tolist() == [text.index(str(name)) + 1 for name in ids]
    with pytest.raises(GraphveilError, match="each once"):
        read_embeddings(tmp_path / "z.csv", pa.array(["x", "y", "z"]))


def test_check_embeddings_loses_no_bit_and_is_idempotent() -> None:
    for scale in (1.0, 3e30, 1e-30):
        rows = check_embeddings(Z.astype(np.float64) * scale, 30)
        assert np.abs(rows).max() < 1
        np.testing.assert_array_equal(check_embeddings(rows, 30), rows)
    rows = check_embeddings(Z, 30)
    np.testing.assert_array_equal(rows * 2.0 ** np.frexp(np.abs(Z).max())[1], Z)


def test_bits_of_values() -> None:
    assert value_bits(np.array([0.0, 0.25, 1.75])) == 3
    assert value_bits(np.array([5.0, 5.0])) == 0
    assert value_bits(Z[:, 0].astype(np.float64)) > 16
    steps = whole_steps(np.array([-0.5, 0.75, 0.0]))
    assert steps is not None
    assert steps.tolist() == [-2, 3, 0]
    assert whole_steps(np.array([1e-300, 1e300])) is None
    assert value_bits(np.array([1e-300, 1e300])) == 64


def test_values_that_are_not_on_a_grid_are_flagged() -> None:
    (flag,) = shape_flags(Z)
    assert flag.name == "not on a grid"
    assert flag.sentence.startswith("3 of 3 dimensions have values of ")
    assert "`graphveil grid`" in flag.sentence
    assert shape_flags(Z, discrete=True) == []
    assert shape_flags(np.rint(Z * 64) / 64) == []


def test_numbers_that_float64_cannot_represent_raise_an_error() -> None:
    with pytest.raises(GraphveilError, match="int64 numbers that float64 cannot represent exactly"):
        check_embeddings(np.array([[2**60 + 1], [3]]), 2)
    fine = np.array([[1.0], [2.0]], dtype=np.longdouble)
    assert check_embeddings(fine, 2).dtype == np.float64
    if np.finfo(np.longdouble).nmant > 52:
        fine[0] += np.longdouble(2) ** -60
        with pytest.raises(GraphveilError, match="save it as float64"):
            check_embeddings(fine, 2)


@pytest.mark.parametrize(
    "z",
    [
        np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32),
        np.random.default_rng(1).standard_normal((50, 4)) * 1e-30,
        np.random.default_rng(2).standard_normal((50, 4)) * [1e-20, 1.0, 1e200, 3.0],
        np.random.default_rng(3).integers(-5, 2**31, (50, 4)),
        np.array([[5e-324, 1e308], [0.0, -1e308]]),
        np.ones((50, 4)),
    ],
    ids=["float32", "tiny", "uneven", "integers", "extremes", "constant"],
)
def test_checking_embeddings_twice_changes_no_bit(z: np.ndarray) -> None:
    """A digest of the checked rows matches an audit with its embeddings, whether these were checked before or not."""
    once = check_embeddings(z, len(z))
    assert rows_digest(check_embeddings(once, len(z))) == rows_digest(once)
