"""The experiments of the paper, cells that are run only once, and verdicts from intervals."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.auditing import Context, Utility, audit, links, nodes
from graphveil.auditing.controls import classes_and_features, raw_features
from graphveil.auditing.tasks import Task
from graphveil.codes import ClassCertificate, LinkCertificate
from graphveil.errors import GraphveilError
from graphveil.experiments import cells as cells_module
from graphveil.experiments import reproduce as reproduce_module
from graphveil.experiments.cell_embeddings import Trained, read_kept, train
from graphveil.experiments.cells import Cell, finish, read_result, summary
from graphveil.experiments.render import brief, comma_separated, latex, markdown
from graphveil.experiments.reproduce import Selection, batches, cells, run_cell, run_experiment, run_missing, select
from graphveil.experiments.spec import NAMES, Experiment, load_experiment, parse
from graphveil.experiments.table1 import table1
from graphveil.experiments.tables import Row, over_seeds
from graphveil.formats import Interval
from graphveil.formats.experiment import CertifiedCell, Curves
from graphveil.target import Target
from graphveil.veil import code_books, estimator, fitting
from tests.experiments.made import PLAIN, write_result
from tests.forked import processes_of_group

TINY = Cell(
    dataset="synthetic",
    encoder="gcn",
    utility="links",
    secrets=("labels",),
    objective="club",
    tradeoff=0.5,
    adversary="mlp",
    steps=2,
    knows="all",
    split="paper",
    message_edges="train",
    seed=0,
    rounds=1,
)


def ignore_progress(cell: Cell, fault: str | None) -> None:
    """An `on_done` that does nothing."""


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


def test_the_required_utilities() -> None:
    assert load_experiment("table2").required == {"cora": 79, "citeseer": 76, "pubmed": 92}
    assert load_experiment("table3").required == {"cora": 79, "citeseer": 65, "pubmed": 76.5}


def test_a_summary_has_the_certificate_and_the_attacks_with_features() -> None:
    """Twelve codes, which reveal the class of every second node on average."""
    graph = gv.generate(gv.GraphSpec(num_nodes=300, num_edges=1200, num_features=12, num_classes=3), seed=4)
    split = gv.Split.proportional(graph, seed=2, message_edges="all")
    random = np.random.default_rng(0)
    codes = 4 * np.where(random.random(300) < 0.5, graph.y.numpy(), random.integers(0, 3, 300)) + random.integers(0, 4)
    z = random.normal(size=(12, 4)).astype(np.float32)[codes]
    context = Context(utility=Utility("labels", 0.9, 0.3, 100))
    table = audit(z, graph, split, "labels", nodes.counting())
    found_labels = summary(table, 0.5, Curves((), ()), None)
    certificate = gv.certify(z, graph, split, "labels")
    assert isinstance(certificate, ClassCertificate)
    assert certificate.calibration is not None
    limit = certificate.calibration.accuracy_limit
    assert found_labels.certificate == CertifiedCell(certificate.accuracy, certificate.majority, limit, None)
    assert found_labels.with_features is None
    found = audit(z, graph, split, "links", links.counting(), context=context)
    features = raw_features(graph, 0)
    both = np.concatenate([z, features], axis=1)
    trees = links.with_features()[1]
    held = Task("embeddings", trees, both)(found.secret, 0)
    alone = Task("raw features", replace(trees, name="boosted trees on pairs"), features)(found.secret, 0)  # type: ignore[type-var]
    control = classes_and_features(found.secret, features)[1](found.secret, 0)
    whole = replace(
        found,
        findings=[*found.findings, held],
        controls={"raw features": [alone], "true classes and features": [control]},
    )
    found_links = summary(whole, 0.5, Curves((), ()), None)
    certificate = gv.certify(z, graph, split, "links")
    assert isinstance(certificate, LinkCertificate)
    assert found_links.certificate is not None
    assert found_links.certificate.best == certificate.auc
    assert found_links.certificate.class_matched == certificate.class_matched_auc
    assert found_links.with_features is not None
    assert found_links.with_features.to_dict() == {
        "attack": "boosted trees on pairs, with features",
        "value": held.headline.value,
        "alone": alone.headline.value,
        "z_adds": pytest.approx(held.headline.value - alone.headline.value),
        "true_classes": control.headline.value,
        "over_true_classes": pytest.approx(held.headline.value - control.headline.value),
    }


def test_the_published_numbers_are_complete() -> None:
    tables = [load_experiment("table2"), load_experiment("table3")]
    printed = [
        experiment.paper(variant, dataset, encoder)
        for experiment in tables
        for variant in ("unprotected", "club")
        for dataset in experiment.datasets
        for encoder in experiment.encoders
    ]
    assert len(printed) == 36
    assert None not in printed
    assert tables[0].paper("club", "pubmed", "gcn") == pytest.approx((0.8124, 0.4250))
    assert tables[1].paper("unprotected", "citeseer", "gat") == pytest.approx((0.71, 0.8212))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text.replace("secrets:", "secret:"), "unknown key of x.yaml 'secret'"),
        (lambda text: text.replace("    steps: 5 ", "    step: 5 ", 1), "unknown key of x.yaml, variant"),
        (lambda text: text.replace("utility: links\n", ""), "x.yaml has no utility"),
        (lambda text: text.replace("panel: full", "panel: whole"), "unknown panel 'whole'"),
        (lambda _: "- a\n- b\n", "x.yaml holds list"),
        (lambda _: "a: [", "x.yaml is not YAML"),
    ],
)
def test_an_invalid_file_is_refused_with_one_sentence(change, sentence: str) -> None:  # type: ignore[no-untyped-def]
    text = (Path(cells_module.__file__).parent / "table2.yaml").read_text()
    with pytest.raises(GraphveilError, match=sentence):
        parse(change(text), "x.yaml")


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


def test_reaudit_audits_all_stored_embeddings(tmp_path: Path) -> None:
    experiment = replace(load_experiment("table2"), peers={})
    selection = Selection(["synthetic"], ["gcn"], ["club"], seeds=1, rounds=1)
    experiment = replace(experiment, datasets=["synthetic"], variants={"club": experiment.variants["club"]})
    run_experiment("table2", experiment, selection, tmp_path, 1)
    (result,), (embeddings,) = (list((tmp_path / "cells").glob(kind)) for kind in ("*.json", "embeddings/*.npz"))
    written, trained = result.stat().st_mtime_ns, embeddings.stat().st_mtime_ns
    before = json.loads(result.read_text())
    run_experiment("table2", experiment, selection, tmp_path, 1)
    assert result.stat().st_mtime_ns == written, "an existing result is not written again"
    run_experiment("table2", experiment, selection, tmp_path, 1, reaudit=True)
    assert result.stat().st_mtime_ns > written
    assert embeddings.stat().st_mtime_ns == trained
    assert json.loads(result.read_text()) == before


def test_an_incomplete_edited_or_foreign_result_is_not_used(tmp_path: Path) -> None:
    write_result(TINY, tmp_path, {"utility": 0.7})
    assert read_result(TINY, tmp_path) is not None
    other = replace(TINY, seed=1)
    assert other.file(tmp_path) != TINY.file(tmp_path)
    assert replace(TINY, rounds=2).key != TINY.key
    text = TINY.file(tmp_path).read_text()
    other.file(tmp_path).write_text(text)
    assert read_result(other, tmp_path) is None
    for torn in (text[: len(text) // 2], text.replace("0.7", "0.8"), "", "[]"):
        TINY.file(tmp_path).write_text(torn)
        assert read_result(TINY, tmp_path) is None


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


def test_the_other_cells_are_finished_if_a_process_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(cell: Cell, folder: Path) -> str | None:
        if cell.seed == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.2)
        write_result(cell, folder, {"utility": 0.5})
        return None

    monkeypatch.setattr(reproduce_module, "run_cell", run)
    seen: list[int] = []
    todo = [replace(TINY, seed=seed) for seed in range(4)]
    failed = run_missing(todo, tmp_path, 2, lambda cell, _: seen.append(cell.seed))
    assert [(cell.seed, "its process died" in fault) for cell, fault in failed] == [(1, True)]
    assert sorted(seen) == [0, 1, 2, 3]
    assert [read_result(cell, tmp_path) is not None for cell in todo] == [True, False, True, True]


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """Cells that were finished before are not run again."""
    few = ["--dataset", "cora", "--encoder", "gcn", "--variant", "club", "--rounds", "1", "--jobs", "1"]
    command = [sys.executable, "-m", "graphveil", "reproduce", "table2", *few, "--out", str(tmp_path)]
    process = subprocess.Popen([*command, "--seeds", "50"], stdout=subprocess.DEVNULL, start_new_session=True)
    finished = tmp_path / "cells"
    deadline = time.monotonic() + 120
    while not (finished.exists() and list(finished.glob("cora*.json"))) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.kill()
    process.wait()
    while processes_of_group(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_of_group(process.pid) == [], "no worker is left"
    before = {file: file.stat().st_mtime_ns for file in finished.glob("cora*.json")}
    assert 0 < len(before) < 50
    subprocess.run([*command, "--seeds", str(len(before))], check=True, stdout=subprocess.DEVNULL)
    after = {file: file.stat().st_mtime_ns for file in finished.glob("cora*.json")}
    kept = [file for file in before if after[file] == before[file]]
    assert kept == list(before)


def test_progress_is_reported_while_other_cells_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(cell: Cell, folder: Path) -> str | None:
        """The second cell ends only after the first has been reported."""
        deadline = time.monotonic() + 60
        while cell.seed == 1 and not (folder / "reported").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        return None if cell.seed == 0 or (folder / "reported").exists() else "the first cell was not reported"

    monkeypatch.setattr(reproduce_module, "run_cell", run)
    todo = [replace(TINY, seed=seed) for seed in range(2)]
    assert run_missing(todo, tmp_path, 2, lambda *_: (tmp_path / "reported").touch()) == []


def test_an_error_inside_a_cell_is_one_sentence(tmp_path: Path) -> None:
    assert "unknown graph 'synthetik'" in str(run_cell(replace(TINY, dataset="synthetik"), tmp_path))
    assert "unknown node head 'nobody'" in str(run_cell(replace(TINY, adversary="nobody"), tmp_path))


def test_cells_that_a_gpu_trains_in_batches_equal_single_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    todo = [replace(TINY, seed=seed, tradeoff=tradeoff, rounds=2) for seed in (0, 1) for tradeoff in (0.5, 1.0)]
    other = replace(TINY, objective="codes", adversary=None, rounds=2)
    assert sorted(len(batch) for batch in batches([*todo, other])) == [1, 4]
    on_gpu = [replace(cell, device="cuda") for cell in [*todo, other]]
    assert on_gpu[0].key != todo[0].key
    assert on_gpu[0].key == replace(on_gpu[0], device="cuda:1").key, "the number of the GPU does not matter"
    _train_on_the_cpu(monkeypatch)
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


def _train_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every device, so that the test runs without a GPU."""
    for module in (code_books, estimator, fitting):
        monkeypatch.setattr(module, "pick_device", lambda _: torch.device("cpu"))


def test_the_rest_of_a_batch_is_trained_if_one_cell_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(batch: list[Cell]) -> list[Trained]:
        if any(cell.seed == 1 for cell in batch):
            raise GraphveilError("diverged")
        return train(batch)

    _train_on_the_cpu(monkeypatch)
    monkeypatch.setattr(reproduce_module, "train", failing)
    todo = [replace(TINY, seed=seed, device="cuda") for seed in range(3)]
    failed = run_missing(todo, tmp_path, 1, ignore_progress)
    assert [(cell.seed, fault) for cell, fault in failed] == [(1, "diverged")]
    assert [read_result(cell, tmp_path) is not None for cell in todo] == [True, False, True]


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


def made_up(secret: str, utility: float, joint: float, fresh: float) -> dict[str, object]:
    found = {
        "joint": joint + 0.1,
        "joint_rounded": joint,
        "fresh": fresh,
        "fresh_attack": "MLP, all",
        "floor": None,
        "history": {"adversary": [0.3], "probe": [None]},
        "map": None,
        "attacks": {Target.of(secret).papers_attacker: fresh - 0.01},
        "chance": 0.3,
        "class_matched": 0.9,
        "balanced": 0.2,
        "equal_classes": None,
        "certificate": None,
        "with_features": None,
        "flags": [],
    }
    kept = {"utility": utility, "utility_chance": 0.5, "history": {"round": [5], "utility": [0.7]}}
    return kept | {"secrets": {secret: found}}


def test_a_table_is_made_from_saved_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(cell: Cell, folder: Path) -> None:
        write_result(cell, folder, made_up("labels", 0.80 + cell.seed / 1000, 0.28, 0.6))

    monkeypatch.setattr(reproduce_module, "run_cell", run)
    counts: list[tuple[int, int]] = []
    selection = Selection(["cora"], ["gcn"], seeds=3)
    table2 = load_experiment("table2")

    def count(done: int, total: int, fault: str | None) -> None:
        counts.append((done, total))

    rows, failed = run_experiment("table2", table2, selection, tmp_path, on_done=count)
    assert failed == []
    assert counts[0] == (0, 15)
    assert counts[-1] == (15, 15)
    by_variant = {row.variant: row for row in rows}
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
    run_experiment("table2", table2, selection, tmp_path, on_done=count)
    assert counts == [(15, 15)]


def test_an_auc_below_one_half_is_inverted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(cell: Cell, folder: Path) -> None:
        write_result(cell, folder, made_up("links", 0.80, 0.1 if cell.seed else 0.9, 0.95))

    monkeypatch.setattr(reproduce_module, "run_cell", run)
    selection = Selection(["cora"], ["gcn"], seeds=3)
    rows, _ = run_experiment("table3", load_experiment("table3"), selection, tmp_path)
    (club,) = (row for row in rows if row.variant == "club")
    assert club.protocol.value == pytest.approx(0.9)
    assert club.verdict == "not reproduced"
    rows, _ = run_experiment("table3", load_experiment("table3"), replace(selection, rounds=1), tmp_path)
    assert {row.verdict for row in rows} == {""}, "a test run is not compared with the paper"


def estimate(value: float, half: float = 0.005) -> Interval:
    return Interval(value, (value - half, value + half))


def a_row(variant: str, utility: Interval, protocol: Interval, paper: tuple[float, float] | None) -> Row:
    return replace(PLAIN, variant=variant, tradeoff=0.5, utility=utility, protocol=protocol, paper=paper)


@pytest.mark.parametrize(
    ("variant", "utility", "protocol", "verdict"),
    [
        ("unprotected", 0.90, 0.73, "better"),
        ("unprotected", 0.885, 0.73, "reproduced"),
        ("unprotected", 0.87, 0.73, "not reproduced"),
        ("unprotected", 0.90, 0.68, "not reproduced"),  # a lower value means a weaker attack
        ("club", 0.78, 0.27, "reproduced"),
        ("club", 0.85, 0.20, "better"),
        ("club", 0.85, 0.33, "not reproduced"),
        ("club", 0.75, 0.20, "not reproduced"),
    ],
)
def test_the_verdict_of_a_cell(variant: str, utility: float, protocol: float, verdict: str) -> None:
    experiment = load_experiment("table2")
    row = a_row(variant, estimate(utility), estimate(protocol), experiment.paper(variant, "cora", "gcn"))
    assert row.verdict == verdict
    assert replace(row, flagged=0.2).verdict == ("reproduced" if verdict == "better" else verdict)
    assert replace(row, utility=Interval(utility), protocol=Interval(protocol)).verdict == "", (
        "one seed has no interval"
    )
    assert replace(row, paper=None).verdict == ""


@pytest.mark.parametrize(
    ("utility", "protocol", "verdict"),
    [
        (estimate(0.95, 0.08), estimate(0.10, 0.10), "better"),  # wide, but better throughout
        (estimate(0.95, 0.08), estimate(0.60, 0.20), "not reproduced"),  # wide, but worse throughout
        (estimate(0.95, 0.08), estimate(0.30, 0.20), ""),  # anything from better to much worse
        (estimate(0.60, 0.08), estimate(0.30, 0.20), "not reproduced"),  # the utility alone decides
        (estimate(0.86, 0.08), estimate(0.10, 0.10), "reproduced"),  # at worst at the margin
        (estimate(0.76, 0.045), estimate(0.10, 0.10), ""),  # beyond the margin, but contains the value of the paper
    ],
)
def test_a_wide_interval_may_still_decide(utility: Interval, protocol: Interval, verdict: str) -> None:
    """The paper prints 79.4 and 28.5."""
    row = a_row("club", utility, protocol, load_experiment("table2").paper("club", "cora", "gcn"))
    assert row.verdict == verdict


def test_intervals_over_seeds_by_hand() -> None:
    """1, 2 and 3 have mean 2 and standard deviation 1; Student's t is 4.303 with two degrees of freedom."""
    found = over_seeds([1.0, 2.0, 3.0])
    assert found.value == 2
    assert found.half == pytest.approx(4.3027 / 3**0.5, abs=1e-3)
    assert over_seeds([0.7]) == Interval(0.7)


def test_one_seed_has_no_interval_in_any_format() -> None:
    one = Interval(0.75)
    row = replace(PLAIN, seeds=1, utility=one, protocol=one, fresh=one, finer=one, utility_chance=0.5)
    for paper in (PLAIN.paper, None):
        rows = [replace(row, paper=paper)]
        assert "±" not in "".join(map(str, (markdown(rows), latex(rows, "T"), brief(rows))))
        (line,) = csv.DictReader(io.StringIO(comma_separated(rows)))
        assert {value for name, value in line.items() if name.endswith(("_low", "_high"))} == {""}
        assert (line["utility"], line["fresh"]) == ("0.75", "0.75")


def test_a_sweep_is_compared_with_chance_levels_and_not_with_a_paper() -> None:
    rows = [replace(PLAIN, variant="codes", tradeoff=tradeoff, paper=None) for tradeoff in (0.5, 1.0)]
    for text in (markdown(rows), latex(rows, "T"), comma_separated(rows), *brief(rows)[0]):
        assert not re.search("paper|verdict|repr|protocol", text)
    assert brief(rows) == (
        ["lambda", "utility (chance)", "adversary", "attack", "chance level"],
        [[tradeoff, "92.0 ± 1.0 (50.0)", "74.0 ± 1.0", "85.0 ± 1.0", "30.0"] for tradeoff in ("0.5", "1")],
    )
    head, _, first, _ = markdown(rows).splitlines()
    cells_of = dict(zip(head.split(" | "), first.split(" | "), strict=True))
    assert (cells_of["utility"], cells_of["utility: chance level"], cells_of["chance level"]) == (
        "92.0 ± 1.0",
        "50.0",
        "30.0",
    )
    line = next(csv.DictReader(io.StringIO(comma_separated(rows))))
    assert (line["adversary"], line["utility_chance"], line["chance"]) == ("0.74", "0.5", "0.3")


def test_table_1_equals_the_paper_except_for_the_number_of_edges(tmp_path: Path) -> None:
    (row,) = table1(tmp_path, ["cora"])
    assert row == ["cora", "2,708", "2,708", "5,429", "5,278", "1,433", "1,433", "7", "7"]
    assert {file.name for file in tmp_path.iterdir()} == {"table1.md", "table1.csv", "table1.tex", "table1.json"}


def test_every_format_has_every_row() -> None:
    experiment: Experiment = load_experiment("table2")
    rows = [
        a_row(name, estimate(0.5), estimate(0.5), experiment.paper(name, "cora", "gcn")) for name in experiment.variants
    ]
    assert markdown(rows).count("\n") == 2 + 5
    assert comma_separated(rows).count("\n") == 1 + 5
    assert latex(rows, "A & B").count(r"\\") == 1 + 5
    assert r"A \& B" in latex(rows, "A & B")
