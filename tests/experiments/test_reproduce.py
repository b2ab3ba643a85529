"""The experiments of the paper, cells that are run only once, and verdicts from intervals."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from graphveil.errors import GraphveilError
from graphveil.experiments import cells as cells_module
from graphveil.experiments import reproduce as reproduce_module
from graphveil.experiments.cells import Cell, read_result
from graphveil.experiments.reproduce import Selection, cells, run_cell, run_experiments, run_missing, select
from graphveil.experiments.spec import NAMES, load_experiment
from graphveil.target import Target
from tests.experiments.made import TINY, made_up, write_result


@pytest.mark.usefixtures("small_audits")
@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_runs_one_round_on_a_small_graph(name: str, tmp_path: Path) -> None:
    experiment = load_experiment(name)
    encoders = {"unprotected": "gcn", "published": "gat", "minimax": "hgcn", "club": "gcn", "codes": "gat"}
    encoders["matched"] = "gcn"
    ours = replace(experiment, peers={})  # peers are tested in test_peers.py
    for (variant, _, encoder, tradeoff), group in cells(ours, Selection(["cora"], seeds=1, rounds=1)).items():
        if encoder == encoders[variant] and tradeoff in (0.0, 0.5, 1.0):
            cell = replace(group[0], dataset="synthetic", panel="quick")  # the full panel takes minutes
            assert run_cell(cell, tmp_path) is None
            result = read_result(cell, tmp_path)
            assert result is not None
            assert list(result.secrets) == experiment.secrets
            for secret, found in result.secrets.items():
                assert variant != "unprotected" or Target.of(secret).papers_attacker in found.attacks
                assert found.with_features is None, "the quick panel has no attackers with features"
                assert found.certificate is None or variant in ("codes", "matched")


def test_only_codes_in_the_tables_have_the_full_panel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = {
        (name, key[0])
        for name in NAMES
        for key, group in cells(load_experiment(name), Selection(seeds=1)).items()
        if group[0].panel == "full"
    }
    assert full == {("table2", "codes"), ("table3", "codes")}
    assert replace(TINY, panel="full").key != TINY.key
    panels = []

    def audited(*given: object, **more: object) -> NoReturn:
        panels.append(given[4])
        raise GraphveilError("seen")

    monkeypatch.setattr(cells_module, "audit", audited)
    for panel in ("quick", "full"):
        assert run_cell(replace(TINY, panel=panel), tmp_path) == "seen"
    assert panels == ["quick", "full"]


def test_a_selection_reduces_experiments_and_refuses_unknown_names() -> None:
    experiment = load_experiment("figure2")
    groups = cells(experiment, Selection(["cora"], ["gcn"], seeds=3))
    assert len(groups) == 11
    assert all(len(group) == 3 for group in groups.values())
    assert len(cells(experiment, Selection())) == 11 * 9
    both = {name: load_experiment(name) for name in ("table2", "figure2")}
    assert list(select(both, Selection(variants=["club"]))) == ["table2"]
    chosen = select(both, Selection(variants=["club", "codes"]))
    assert [list(one.variants) for one in chosen.values()] == [["club", "codes"], ["codes"]]
    with pytest.raises(GraphveilError, match="unknown dataset 'corra'"):
        cells(experiment, Selection(["corra"]))
    for wrong, says in (
        (Selection(variants=["clubb"]), "unknown variant 'clubb'"),
        (Selection(encoders=["gtc"]), "unknown encoder 'gtc'"),
    ):
        with pytest.raises(GraphveilError, match=says):
            select(both, wrong)


@pytest.mark.usefixtures("one_process", "small_audits")
def test_reaudit_audits_all_stored_embeddings(tmp_path: Path) -> None:
    experiment = replace(load_experiment("table2"), peers={})
    selection = Selection(["synthetic"], ["gcn"], ["club"], seeds=1, rounds=1)
    experiment = replace(experiment, datasets=["synthetic"], variants={"club": experiment.variants["club"]})
    run_experiments({"table2": experiment}, selection, tmp_path, 1)
    (result,), (embeddings,) = (list((tmp_path / "cells").glob(kind)) for kind in ("*.json", "embeddings/*.npz"))
    written, trained = result.stat().st_mtime_ns, embeddings.stat().st_mtime_ns
    before = json.loads(result.read_text())
    run_experiments({"table2": experiment}, selection, tmp_path, 1)
    assert result.stat().st_mtime_ns == written, "an existing result is not written again"
    run_experiments({"table2": experiment}, selection, tmp_path, 1, reaudit=True)
    assert result.stat().st_mtime_ns > written
    assert embeddings.stat().st_mtime_ns == trained
    assert json.loads(result.read_text()) == before


@pytest.mark.usefixtures("one_process")
def test_a_failed_cell_is_reported_and_the_others_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(cell: Cell, folder: Path) -> str | None:
        if cell.seed == 1:
            return "did not converge"
        write_result(cell, folder, {"utility": 0.5})
        return None

    monkeypatch.setattr(reproduce_module, "run_cell", run)
    seen: list[tuple[int, str | None]] = []
    todo = [replace(TINY, seed=seed) for seed in range(3)]
    failed = run_missing(todo, tmp_path, 1, lambda cell, fault: seen.append((cell.seed, fault)))
    assert [(cell.seed, fault) for cell, fault in failed] == [(1, "did not converge")]
    assert sorted(seed for seed, _ in seen) == [0, 1, 2]
    assert [read_result(cell, tmp_path) is not None for cell in todo] == [True, False, True]
    seen.clear()
    run_missing(todo, tmp_path, 1, lambda cell, fault: seen.append((cell.seed, fault)))
    assert [seed for seed, _ in seen] == [1], "finished cells are not run again"


def test_an_error_inside_a_cell_is_one_sentence(tmp_path: Path) -> None:
    assert "unknown graph 'synthetik'" in str(run_cell(replace(TINY, dataset="synthetik"), tmp_path))
    assert "unknown node head 'nobody'" in str(run_cell(replace(TINY, adversary="nobody"), tmp_path))


@pytest.mark.usefixtures("one_process")
def test_a_table_is_made_from_saved_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(cell: Cell, folder: Path) -> None:
        write_result(cell, folder, made_up("labels", 0.80 + cell.seed / 1000, 0.28, 0.6))

    monkeypatch.setattr(reproduce_module, "run_cell", run)
    counts: list[tuple[int, int]] = []
    selection = Selection(["cora"], ["gcn"], seeds=3)
    table2 = load_experiment("table2")

    def count(done: int, total: int, fault: str | None) -> None:
        counts.append((done, total))

    rows, failed = run_experiments({"table2": table2}, selection, tmp_path, on_done=count)
    assert failed == []
    assert counts[0] == (0, 15)
    assert counts[-1] == (15, 15)
    by_variant = {row.variant: row for row in rows["table2"]}
    assert by_variant["unprotected"].protocol.value == pytest.approx(0.59), (
        "the attack of the paper on finished embeddings"
    )
    assert by_variant["club"].protocol.value == pytest.approx(0.28), "the joint adversary"
    assert by_variant["club"].utility.value == pytest.approx(0.801)
    table = (tmp_path / "table2.md").read_text()
    assert "| club | cora | gcn | 0.5 | 3 | 79.4 | 80.1 ± 0.2 | +0.7 | 28.5 | 28.0 | -0.5 | 60.0 |" in table
    record = json.loads((tmp_path / "table2.json").read_text())
    assert [row["variant"] for row in record["rows"]] == ["unprotected", "published", "minimax", "club", "codes"]
    assert record["rows"][3]["utility"]["value"] == pytest.approx(0.801)
    assert record["rows"][3]["history"] == {"round": [5], "utility": [0.7], "adversary": [0.3], "probe": [None]}
    parsed = list(csv.DictReader(io.StringIO((tmp_path / "table2.csv").read_text())))
    assert float(parsed[3]["utility"]) == pytest.approx(0.801)
    assert r"79.4 & 80.1 $\pm$ 0.2" in (tmp_path / "table2.tex").read_text()
    counts.clear()
    run_experiments({"table2": table2}, selection, tmp_path, on_done=count)
    assert counts == [(15, 15)]


@pytest.mark.usefixtures("one_process")
def test_an_auc_below_one_half_is_inverted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(cell: Cell, folder: Path) -> None:
        write_result(cell, folder, made_up("links", 0.80, 0.1 if cell.seed else 0.9, 0.95))

    monkeypatch.setattr(reproduce_module, "run_cell", run)
    selection = Selection(["cora"], ["gcn"], seeds=3)
    table3 = {"table3": load_experiment("table3")}
    rows, _ = run_experiments(table3, selection, tmp_path)
    (club,) = (row for row in rows["table3"] if row.variant == "club")
    assert club.protocol.value == pytest.approx(0.9)
    assert club.verdict == "not reproduced"
    rows, _ = run_experiments(table3, replace(selection, rounds=1), tmp_path)
    assert {row.verdict for row in rows["table3"]} == {""}, "a test run is not compared with the paper"
