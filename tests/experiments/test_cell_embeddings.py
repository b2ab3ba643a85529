"""Embeddings of cells: stored once, and the same alone, in a batch and without protection."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphveil.auditing import classifiers
from graphveil.errors import GraphveilError
from graphveil.experiments import reproduce as reproduce_module
from graphveil.experiments.cell_embeddings import Trained, read_kept, train
from graphveil.experiments.cells import Cell, finish, read_result
from graphveil.experiments.reproduce import Selection, batches, cells, run_cell, run_missing
from graphveil.experiments.spec import load_experiment
from tests.cheap import untuned_regression
from tests.experiments.made import TINY, ignore_progress, train_on_the_cpu, write_result


@pytest.mark.usefixtures("small_audits")
@pytest.mark.parametrize("cell", [TINY, replace(TINY, objective="codes", adversary=None, rounds=2)])
def test_stored_embeddings_are_audited_without_training(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_cell(cell, tmp_path) is None
    first = read_result(cell, tmp_path)
    (trained,) = train([cell])
    kept = read_kept(cell, tmp_path)
    assert kept is not None
    assert np.array_equal(kept.z, trained.z)
    assert (kept.score, kept.curves) == (trained.score, trained.curves)
    assert read_kept(replace(cell, seed=1), tmp_path) is None
    assert read_kept(replace(cell, panel="full"), tmp_path) is not None, "another audit of the same training"

    def no_training(batch: list[Cell]) -> list[Trained]:
        raise GraphveilError("trained again")

    monkeypatch.setattr(reproduce_module, "train", no_training)
    cell.file(tmp_path).unlink()
    assert run_cell(cell, tmp_path) is None
    assert read_result(cell, tmp_path) == first
    file = cell.embeddings_file(tmp_path)
    whole = file.read_bytes()
    for torn in (whole[: len(whole) // 2], b"", whole.replace(b"about", b"abour")):
        file.write_bytes(torn)
        assert read_kept(cell, tmp_path) is None
    cell.file(tmp_path).unlink()
    assert run_cell(cell, tmp_path) == "trained again"


@pytest.mark.usefixtures("one_process")
def test_cells_that_a_gpu_trains_in_batches_equal_single_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(TINY, dataset="karate", split="proportional", rounds=2)
    todo = [replace(small, seed=seed, tradeoff=tradeoff) for seed in (0, 1) for tradeoff in (0.5, 1.0)]
    other = replace(small, objective="codes", adversary=None)
    assert sorted(len(batch) for batch in batches([*todo, other])) == [1, 4]
    on_gpu = [replace(cell, device="cuda") for cell in [*todo, other]]
    assert on_gpu[0].key != todo[0].key
    assert on_gpu[0].key == replace(on_gpu[0], device="cuda:1").key, "the number of the GPU does not matter"
    train_on_the_cpu(monkeypatch)
    monkeypatch.setattr(classifiers, "logistic_regression", untuned_regression)
    assert run_missing(on_gpu, tmp_path / "batch", 1, ignore_progress) == []
    for cell, batched in zip(todo, on_gpu, strict=False):
        (trained,) = train([cell])
        finish(trained, tmp_path / "alone")
        together, alone = read_result(batched, tmp_path / "batch"), read_result(cell, tmp_path / "alone")
        assert together is not None
        assert alone is not None
        assert together.utility == pytest.approx(alone.utility, abs=2e-3)
        assert together.history.round == alone.history.round
        assert (together.secrets["labels"].map is None) == (cell.seed > 0)


def test_batches_are_of_alike_cells_and_the_largest_come_first() -> None:
    small = replace(TINY, dataset="karate", split="proportional")
    todo = [replace(small, seed=seed, tradeoff=tradeoff / 10) for tradeoff in range(5) for seed in range(3)]
    large = replace(small, dataset="synthetic")
    found = batches([*todo, large])
    assert found[0] == [large], "more nodes than two batches of the small graph"
    assert [[cell.seed for cell in batch] for batch in found[1:]] == [[0] * 5 + [1] * 5, [2] * 5], "whole seeds"
    assert sorted(map(len, batches([replace(small, seed=seed) for seed in range(30)]))) == [6, 12, 12]


@pytest.mark.usefixtures("one_process")
def test_cells_that_differ_in_the_panel_alone_are_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[Cell] = []

    def counting(batch: list[Cell]) -> list[Trained]:
        trained.extend(batch)
        return train(batch)

    train_on_the_cpu(monkeypatch)
    monkeypatch.setattr(reproduce_module, "train", counting)
    monkeypatch.setattr(reproduce_module, "finish", lambda kept, folder: write_result(kept.cell, folder, {}))
    cell = replace(TINY, dataset="karate", split="proportional", rounds=1, device="cuda")
    todo = [cell, replace(cell, panel="full")]
    assert run_missing(todo, tmp_path, 1, ignore_progress) == []
    assert len(trained) == 1
    assert all(cell.file(tmp_path).exists() for cell in todo)


@pytest.mark.usefixtures("one_process")
def test_the_rest_of_a_batch_is_trained_if_one_cell_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(batch: list[Cell]) -> list[Trained]:
        if any(cell.seed == 1 for cell in batch):
            raise GraphveilError("diverged")
        return train(batch)

    train_on_the_cpu(monkeypatch)
    monkeypatch.setattr(reproduce_module, "train", failing)
    small = replace(TINY, dataset="karate", split="proportional", device="cuda")
    todo = [replace(small, seed=seed) for seed in range(3)]
    failed = run_missing(todo, tmp_path, 1, ignore_progress)
    assert [(cell.seed, fault) for cell, fault in failed] == [(1, "diverged")]
    assert [read_result(cell, tmp_path) is not None for cell in todo] == [True, False, True]


@pytest.mark.usefixtures("small_audits")
@pytest.mark.parametrize("problem", ["table2", "table3"])
def test_a_trade_off_of_one_equals_the_unprotected_run(problem: str) -> None:
    """For every adversarial objective and adversary."""
    experiment, selection = load_experiment(problem), Selection(["cora"], ["gcn"], seeds=1, rounds=4)
    of_variant = {key[0]: group[0] for key, group in cells(experiment, selection).items()}
    plain, last = of_variant["unprotected"], replace(of_variant["club"], tradeoff=1.0)
    assert plain != last
    one, other = (train([replace(cell, dataset="synthetic")])[0] for cell in (plain, last))
    assert (one.z == other.z).all()
    assert one.score.utility == other.score.utility
