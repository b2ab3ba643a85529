"""The run folder: which files, whole or not at all, and the same bytes after any number of kills."""

import json
import os
import random
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.codes import LinkCertificate
from graphveil.runs.folder import RunFolder
from graphveil.runs.protect import protect
from graphveil.training.loop import Training
from tests.forked import Forks

FILES = [
    "embeddings.parquet",
    "history.parquet",
    "model.safetensors",
    "run.json",
    "trained_links.parquet",
    "trained_on.parquet",
]


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.name != ".lock")


def test_the_files_people_get(small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path) -> None:
    veil = gv.Veil(objective="club", recipe=quick, device="cpu")
    run = protect(veil, small, small_split, tmp_path / "a" / "run")
    folder = tmp_path / "a" / "run"
    assert files(folder) == FILES
    seen = pq.read_table(folder / "trained_on.parquet")["id"].to_pylist()
    assert sorted(seen) == sorted(small_split.defender_nodes("all").tolist())
    links = pq.read_table(folder / "trained_links.parquet")
    assert [links["one"].to_pylist(), links["other"].to_pylist()] == small_split.train_links.tolist()

    z = RunFolder(folder).embeddings().z
    table = pq.read_table(folder / "embeddings.parquet")
    assert table.column_names == ["id", "z0", "z1", "z2", "z3"]
    assert table["id"].to_pylist() == list(range(150))
    columns = np.stack([table[f"z{i}"].to_numpy() for i in range(4)], axis=1)
    assert np.array_equal(columns, z)
    assert np.array_equal(z, veil.transform(small, small_split).numpy()), "those that the scores were measured on"

    history = pq.read_table(folder / "history.parquet").to_pylist()
    assert [row["round"] for row in history] == list(range(1, 13))
    record = json.loads((folder / "run.json").read_text())
    assert record["scores"]["utility"] == run.score.utility
    assert record["config"]["recipe"]["rounds"] == 12
    assert record["graph_digest"] == gv.data.digest(small)
    assert record["split_digest"] == small_split.digest()
    assert record["certificates"] == run.certificates == {"labels": None}, "every node has a row of its own"
    assert set(record["versions"]) == {"graphveil", "torch", "torch_geometric", "numpy", "numba"}


def test_codes_are_certified(small: Data, small_split: gv.Split, tmp_path: Path) -> None:
    """Labels are kept and links hidden, so the codes are classes."""
    split = replace(small_split, message_edges="all")
    recipe = gv.Veil("labels", "links").recipe.but(rounds=30)
    veil = gv.Veil("labels", "links", tradeoff=0.9, recipe=recipe, device="cpu")
    run = protect(veil, small, split, tmp_path)
    found = run.certificates["links"]
    assert isinstance(found, LinkCertificate)
    assert found == gv.certify(run.z, small, split, "links")
    written = json.loads((tmp_path / "run.json").read_text())["certificates"]["links"]
    assert written == found.to_dict()


def test_links_that_are_neither_kept_nor_hidden_are_not_told(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path
) -> None:
    split = replace(small_split, message_edges="all")
    veil = gv.Veil("labels", "secret", recipe=quick.but(head="linear"), device="cpu")
    protect(veil, small, split, tmp_path)
    assert files(tmp_path) == [name for name in FILES if name != "trained_links.parquet"]


def test_a_finished_or_unfinished_run_is_not_overwritten(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path
) -> None:
    veil = gv.Veil(recipe=quick, device="cpu")
    protect(veil, small, small_split, tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    with pytest.raises(gv.GraphveilError, match="holds a finished run"):
        protect(veil, small, small_split, tmp_path, resume=True)
    assert before == {name: (tmp_path / name).read_bytes() for name in FILES}
    (tmp_path / "run.json").rename(tmp_path / "checkpoint.safetensors")
    with pytest.raises(gv.GraphveilError, match="holds an unfinished run: add --resume"):
        protect(veil, small, small_split, tmp_path)


def test_what_a_kill_left_behind_is_swept_away(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path
) -> None:
    (tmp_path / ".embeddings.parquet.0123.part").write_bytes(b"half")
    veil = gv.Veil(recipe=quick, device="cpu")
    protect(veil, small, small_split, tmp_path)
    assert files(tmp_path) == FILES
    (tmp_path / "checkpoint.safetensors").write_bytes(b"a kill came between the last two steps")
    with pytest.raises(gv.GraphveilError, match="holds a finished run"):
        protect(veil, small, small_split, tmp_path, resume=True)
    assert files(tmp_path) == FILES


def test_two_runs_do_not_share_a_folder(small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path) -> None:
    from filelock import FileLock

    with (
        FileLock(tmp_path / ".lock"),
        pytest.raises(gv.GraphveilError, match="another process is writing"),
    ):
        protect(gv.Veil(recipe=quick, device="cpu"), small, small_split, tmp_path)


@pytest.mark.parametrize("tradeoff", [1.0, 0.5])
def test_a_diverged_run_leaves_its_last_good_state(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path, tradeoff: float
) -> None:
    veil = gv.Veil(tradeoff=tradeoff, recipe=quick, device="cpu")

    def poison(run: Training) -> None:
        if run.round == 7:
            next(iter(run.method.parts["encoder"].parameters())).data.fill_(float("inf"))

    with pytest.raises(gv.DivergedError, match=r"diverged in round 8.*It can be loaded from .*last_good"):
        protect(veil, small, small_split, tmp_path, on_round=poison)
    assert not (tmp_path / "run.json").exists()
    assert torch.isfinite(gv.Veil.load(tmp_path / "last_good").transform(small)).all()


def command(out: Path, *more: str, rounds: int = 100) -> list[str]:
    settings = [f"rounds={rounds}", f"patience={rounds}", "hidden_channels=16", "out_channels=8"]
    options = [word for setting in settings for word in ("--set", setting)]
    run = ["protect", "synthetic", "--device", "cpu", "--out", str(out)]
    return [*run, *options, "--adversary-steps", "1", *more]


@dataclass(frozen=True)
class KilledAt:
    """A kill while the n-th file is written, as `before`."""

    number: int

    def __call__(self) -> None:
        real, files_left = os.fsync, self.number

        def sync(fd: Any) -> None:
            nonlocal files_left
            files_left -= 1
            if not files_left:
                os.kill(os.getpid(), signal.SIGKILL)
            real(fd)

        os.fsync = sync


def kill_and_resume(forks: Forks, tmp_path: Path, kills: int, seed: int) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert forks(*command(whole)) == (0, "")
    pick = random.Random(seed)
    checkpoint, half_way = broken / "checkpoint.safetensors", 0
    for _ in range(kills):
        code, said = forks(*command(broken, "--resume"), before=KilledAt(pick.randrange(2, 5)))
        if code == 0:
            break
        assert code == -signal.SIGKILL, said
        half_way += checkpoint.exists()
    assert half_way, "no run was killed half way, so nothing was tested"
    if not (broken / "run.json").exists():
        assert forks(*command(broken, "--resume")) == (0, "")

    assert files(broken) == files(whole) == FILES, "nothing half-written is left"
    for name in FILES:
        if name != "run.json":
            assert (broken / name).read_bytes() == (whole / name).read_bytes(), name
    records = [json.loads((folder / "run.json").read_text()) for folder in (whole, broken)]
    assert [r.pop("seconds") > 0 for r in records] == [True, True]
    assert records[0] == records[1]


def test_killed_and_resumed_ends_where_an_unbroken_run_ends(forks: Forks, tmp_path: Path) -> None:
    kill_and_resume(forks, tmp_path, kills=3, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 8))
def test_killed_at_many_moments(forks: Forks, tmp_path: Path, seed: int) -> None:
    kill_and_resume(forks, tmp_path, kills=6, seed=seed)


def test_a_folder_of_somebody_s_own_files_is_left_alone(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path
) -> None:
    (tmp_path / "customers.csv").write_text("id\n1\n")
    with pytest.raises(gv.GraphveilError, match=r"holds 'customers\.csv' and no files of this command"):
        protect(gv.Veil(recipe=quick, device="cpu"), small, small_split, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["customers.csv"]
    (tmp_path / "empty").mkdir()
    protect(gv.Veil(recipe=quick, device="cpu"), small, small_split, tmp_path / "empty")
    assert files(tmp_path / "empty") == FILES
