"""`RunFolder`: what it refuses, what it reads, and what its digests notice."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.errors import GraphveilError
from graphveil.formats.limits import LimitsRecord
from graphveil.runs.folder import RunFolder, embeddings_digest, ids_digest
from graphveil.runs.protect import protect


@pytest.fixture
def folder(small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path) -> RunFolder:
    veil = gv.Veil(objective="club", recipe=quick.but(rounds=2), device="cpu")
    protect(veil, small, small_split, tmp_path / "run", source={"graph": "small", "split": "paper"})
    return RunFolder(tmp_path / "run")


def test_embeddings_come_back_bit_for_bit(folder: RunFolder, small: Data, small_split: gv.Split) -> None:
    found = folder.embeddings()
    assert found.z.tobytes() == folder.veil().transform(small, small_split).numpy().tobytes()
    assert found.ids.to_pylist() == list(range(150))
    assert folder.embeddings_of(pa.array(range(150))).tobytes() == found.z.tobytes()
    record = folder.record()
    assert record.audited_as == embeddings_digest(found.z)
    assert record.ids_digest == ids_digest(found.ids)


def test_rows_of_other_nodes_or_in_another_order_are_refused(folder: RunFolder) -> None:
    for ids in (range(149), [1, 0, *range(2, 150)], [f"n{number}" for number in range(150)]):
        with pytest.raises(GraphveilError, match="their ids are not those of the"):
            folder.embeddings_of(pa.array(ids))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"id": [1, 2], "y": [0.0, 1.0]}, "expected the columns id, z0, z1, ..., found 'y'"),
        ({"id": [1, 1], "z0": np.ones(2, np.float32)}, "some ids are missing or not unique"),
        ({"id": [1, None], "z0": np.ones(2, np.float32)}, "some ids are missing or not unique"),
        ({"id": [1, 2], "z0": np.ones(2)}, "expected rows of float32, found 2 rows of float64"),
        ({"id": pa.array([], pa.int64()), "z0": np.ones(0, np.float32)}, "found 0 rows of float32"),
    ],
)
def test_a_table_that_is_no_embedding_is_refused_with_the_reason(
    tmp_path: Path, columns: dict[str, object], reason: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "embeddings.parquet")
    with pytest.raises(GraphveilError, match="cannot be read as the embeddings of a run") as error:
        RunFolder(tmp_path).embeddings()
    assert reason in str(error.value)


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "embeddings.parquet")
    with pytest.raises(GraphveilError, match="it is not a plain file"):
        RunFolder(tmp_path).embeddings()


@pytest.mark.parametrize("field", ["graph", "split_digest", "scores", "message_edges"])
def test_a_record_without_a_field_that_is_needed_is_refused(folder: RunFolder, field: str) -> None:
    file = folder.path / "run.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps({key: value for key, value in record.items() if key != field}))
    with pytest.raises(GraphveilError, match=rf"run.json: {field} is missing"):
        folder.record()


def test_controls_belong_to_the_run_they_were_trained_for(folder: RunFolder) -> None:
    assert folder.controls() == ({}, None)
    folder.write_controls({"untrained encoder": torch.ones(150, 2)}, 0.875)
    kept, utility = folder.controls()
    assert kept["untrained encoder"].equal(torch.ones(150, 2))
    assert utility == 0.875
    file = folder.path / "run.json"
    file.write_text(file.read_text() + "\n")
    assert folder.controls() == ({}, None), "of another run.json"
    (folder.path / "controls.safetensors").write_bytes(b"torn")
    assert folder.controls() == ({}, None)


def test_a_second_process_waits_for_the_first(folder: RunFolder) -> None:
    with folder.edit(), pytest.raises(GraphveilError, match="another process is writing to"), folder.edit():
        pass


def test_a_finished_run_is_not_overwritten(folder: RunFolder) -> None:
    with pytest.raises(GraphveilError, match="holds a finished run"):
        folder.check_free()
    with pytest.raises(GraphveilError, match="holds a finished run"):
        folder.check_startable(resume=True)


def test_an_unfinished_run_needs_resume(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.checkpoint.write_bytes(b"")
    with pytest.raises(GraphveilError, match="add --resume"):
        folder.check_startable(resume=False)
    folder.check_startable(resume=True)


def test_limits_are_read_as_they_were_written_and_a_damaged_file_is_refused(tmp_path: Path) -> None:
    folder, file = RunFolder(tmp_path), tmp_path / "limits.json"
    assert folder.limits() is None
    limits = LimitsRecord({"labels": 0.322}, None)
    folder.write_limits(limits)
    assert folder.limits() == limits
    for text, why in (
        (file.read_text().replace("0.322", "0.9"), "it was changed after it was written"),
        (file.read_text()[:40], "Unterminated string"),
        ("{}", "it has no schema"),
    ):
        file.write_text(text)
        with pytest.raises(
            GraphveilError, match=f"the limits of the search cannot be read .limits.json: {why}"
        ) as error:
            folder.limits()
        assert str(tmp_path) not in str(error.value), "the card of a release may quote it"
