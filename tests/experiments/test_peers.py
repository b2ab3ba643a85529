"""Peers in Figure 3: the guarantees of their noise, and their cells."""

import csv
import importlib.util
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scipy.stats import norm
from torch_geometric.data import Data

import graphveil as gv
from graphveil import cli
from graphveil.errors import GraphveilError
from graphveil.experiments import reproduce as reproduce_module
from graphveil.experiments.cells import Cell, read_result
from graphveil.experiments.gap import SENSITIVITY, noise_scale
from graphveil.experiments.peers import PEERS, Task, keep_probability, missing_extra, randomised_response, release
from graphveil.experiments.reproduce import Selection, cells, run_cell, run_experiments, select
from graphveil.experiments.spec import Experiment, load_experiment, parse
from graphveil.models.grid import Grid
from graphveil.reporting import report
from graphveil.reporting.parts import MISSING
from tests.experiments.made import made_up, write_result
from tests.reporting import made
from tests.reporting.conftest import parse as parse_page

needs_accountant = pytest.mark.skipif(
    importlib.util.find_spec("dp_accounting") is None, reason="needs the extra [peers]"
)
# the dependencies of dp-accounting raise DeprecationWarning
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def no_accountant(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "dp_accounting" else find_spec(name, *rest)
    )


# ----- noisy aggregation ----------------------------------------------------------------------------------------------


@needs_accountant
def test_the_noise_has_the_given_privacy_loss() -> None:
    from dp_accounting import GaussianDpEvent
    from dp_accounting.pld import PLDAccountant

    hops, delta = 2, 1e-5
    scales = [noise_scale(epsilon, delta, hops) for epsilon in (1, 2, 4, 8)]
    assert scales == sorted(scales, reverse=True)
    assert noise_scale(2, delta, 1) < noise_scale(2, delta, 2), "a second hop needs more noise"
    for epsilon, scale in zip((1, 2, 4, 8), scales, strict=True):
        accountant = PLDAccountant()
        for _ in range(hops):
            accountant.compose(GaussianDpEvent(scale / SENSITIVITY))
        assert accountant.get_epsilon(delta) == pytest.approx(epsilon, rel=0.01)
        assert accountant.get_epsilon(delta) <= epsilon + 1e-6
        # Balle and Wang (2018), Theorem 8; two Gaussian sums are one with the noise divided by sqrt(2)
        mu = math.sqrt(hops) * SENSITIVITY / scale
        exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert exact == pytest.approx(delta, rel=0.01)


@needs_accountant
def test_noisy_aggregation_is_above_chance_on_cora_and_repeats() -> None:
    graph = gv.load("cora")
    split = gv.Split.paper(graph, seed=100, message_edges="all")
    first = release("gap", graph, split, 8, 100, Task(rounds=60))
    assert first.z.shape == (2708, 7)
    assert first.z.dtype == torch.float32
    assert first.z.sum(dim=1).allclose(torch.ones(2708), atol=0.1)  # rounded
    assert first.z.equal(Grid.of(first.z)(first.z))
    assert first.score.utility > first.score.utility_chance + 0.1
    again = release("gap-class", graph, split, 8, 100, Task(rounds=60))
    assert (again.z.argmax(dim=1) == first.z.argmax(dim=1)).float().mean() > 0.95  # rounding makes some classes equal
    assert again.z.sum(dim=1).eq(1).all()
    assert again.z.unique().tolist() == [0, 1]


# ----- randomised response --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1, 2, 4, 8])
def test_randomised_response_keeps_the_stated_share(epsilon: float) -> None:
    num_classes, count = 7, 200_000
    classes = torch.randint(num_classes, (count,), generator=torch.Generator().manual_seed(0))
    found = randomised_response(classes, num_classes, epsilon, seed=100)
    keep = keep_probability(epsilon, num_classes)
    other = (1 - keep) / (num_classes - 1)
    assert keep / other == pytest.approx(math.exp(epsilon)), "the likelihood ratio that epsilon bounds"
    shifts = torch.bincount((found - classes) % num_classes, minlength=num_classes).double() / count
    for share, expected in zip(shifts.tolist(), [keep] + [other] * (num_classes - 1), strict=True):
        assert abs(share - expected) < 5 * math.sqrt(expected * (1 - expected) / count)
    assert found.equal(randomised_response(classes, num_classes, epsilon, seed=100))
    assert not found.equal(randomised_response(classes, num_classes, epsilon, seed=101))


def test_without_noise_rr_is_the_unprotected_class(small: Data) -> None:
    split, task = gv.Split.proportional(small, seed=1, message_edges="all"), Task(rounds=10)
    plain = release("rr", small, split, 60, 1, task)
    assert set(plain.z.sum(dim=1).tolist()) == {1.0}
    recipe = gv.Veil("labels", "links").recipe.but(rounds=10, warmup=0)
    veil = gv.Veil("labels", "links", tradeoff=1.0, recipe=recipe, seed=1, device="cpu").fit(small, split)
    assert plain.z.argmax(dim=1).equal(veil.codes(small, split))
    assert plain.score.utility == veil.score(small, split).utility


# ----- as cells of an experiment --------------------------------------------------------------------------------------


@pytest.fixture
def figure3() -> Experiment:
    """On a small graph, with peers only."""
    whole = load_experiment("figure3")
    return replace(whole, datasets=["synthetic"], variants={}, peers={"gap": [1], "rr": [2, 8]})


def test_figure_3_has_every_peer_once_for_any_selection_of_encoders() -> None:
    groups = cells(load_experiment("figure3"), Selection(["cora"], ["gat", "hgcn"], seeds=2), "cuda")
    peers = {key: group for key, group in groups.items() if key[0] in PEERS}
    assert list(peers) == [
        (name, "cora", encoder, epsilon)
        for name, encoder in (("gap", "mlp"), ("gap-class", "mlp"), ("rr", "gcn"))
        for epsilon in (1, 2, 4, 8)
    ]
    assert {cell.device for group in peers.values() for cell in group} == {"cpu"}
    assert len({cell.key for group in peers.values() for cell in group}) == 24
    chosen = select({"figure3": load_experiment("figure3")}, Selection(variants=["rr"]))["figure3"]
    assert (list(chosen.variants), list(chosen.peers)) == ([], ["rr"])
    with pytest.raises(GraphveilError, match=r"unknown peer of x.yaml 'gab'.*Did you mean 'gap'"):
        parse(
            (Path(cli.__file__).parents[1] / "experiments/figure3.yaml").read_text().replace("gap:", "gab:"), "x.yaml"
        )


@pytest.mark.usefixtures("no_accountant", "one_process")
def test_a_peer_without_its_package_is_skipped(
    figure3: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(cell: Cell, folder: Path) -> None:
        write_result(cell, folder, made_up("links", 0.7, 0.6, 0.6 + cell.seed / 100))

    def count(done: int, total: int, fault: str | None) -> None:
        assert fault is None
        counts.append((done, total))

    monkeypatch.setattr(reproduce_module, "run_cell", run)
    counts: list[tuple[int, int]] = []
    rows, failed = run_experiments({"figure3": figure3}, Selection(seeds=2), tmp_path, on_done=count)
    assert failed == []
    assert (counts[0], counts[-1]) == ((0, 4), (4, 4))
    assert [(row.variant, row.encoder, row.tradeoff, row.epsilon) for row in rows["figure3"]] == [
        ("rr", "gcn", None, 2),
        ("rr", "gcn", None, 8),
    ]
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").glob("[!.]*.json")}
    assert [file.name.rsplit("-", 1)[0] for file in sorted(files)] == [
        f"synthetic-gcn-labels-rr-epsilon-{epsilon}-{seed}" for epsilon in (2, 8) for seed in (0, 1)
    ]
    counts.clear()
    assert run_experiments({"figure3": figure3}, Selection(seeds=2), tmp_path, on_done=count)[0] == rows
    assert counts == [(4, 4)], "finished cells are not run again"
    assert {file: file.stat().st_mtime_ns for file in files} == files
    assert "| rr | synthetic | gcn | epsilon 8 | 2 | 70.0 |" in (tmp_path / "figure3.md").read_text()
    assert "lambda or epsilon" in (tmp_path / "figure3.md").read_text()
    assert "rr & synthetic & gcn & epsilon 8 & 2" in (tmp_path / "figure3.tex").read_text()
    lines = list(csv.DictReader((tmp_path / "figure3.csv").read_text().splitlines()))
    assert [(line["lambda"], line["epsilon"]) for line in lines] == [("", "2"), ("", "8")]
    assert [row["epsilon"] for row in json.loads((tmp_path / "figure3.json").read_text())["rows"]] == [2, 8]


def test_a_cell_of_a_peer_is_audited(figure3: Experiment, tmp_path: Path) -> None:
    cell = cells(figure3, Selection(seeds=2, rounds=2))["rr", "synthetic", "gcn", 8][1]
    assert run_cell(cell, tmp_path) is None
    result = read_result(cell, tmp_path)
    assert result is not None
    assert result.cell["epsilon"] == 8
    assert result.secrets["links"].attacks.keys() >= {"table of distinct rows", "cosine distance"}
    assert result.utility > 0
    assert str(cell) == "synthetic gcn rr epsilon 8 seed 1"


@pytest.mark.usefixtures("no_accountant")
def test_saved_results_are_shown_without_the_package(figure3: Experiment, tmp_path: Path) -> None:
    (cell,) = cells(figure3, Selection(seeds=1))["gap", "synthetic", "mlp", 1]
    write_result(cell, tmp_path / "cells", made_up("links", 0.7, 0.6, 0.65))
    only_gap = replace(figure3, peers={"gap": [1, 2]})
    rows, failed = run_experiments({"figure3": only_gap}, Selection(seeds=1), tmp_path)
    assert failed == []
    assert [(row.variant, row.epsilon, row.fresh.value) for row in rows["figure3"]] == [("gap", 1, 0.65)]


@pytest.mark.usefixtures("no_accountant")
def test_the_command_names_skipped_peers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert missing_extra(["rr"]) is None
    monkeypatch.setenv("COLUMNS", "200")
    few = ["--variant", "gap", "--dataset", "cora", "--seeds", "1", "--rounds", "1", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", ["graphveil", "reproduce", "figure3", *few, "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as left:
        cli.run()
    assert not left.value.code
    assert (
        "figure3: skipped, because dp-accounting is not installed: gap; install the extra peers (in the clone: pip"
        " install -c constraints.txt '.[peers]')." in " ".join(capsys.readouterr().out.split())
    )


def test_the_report_marks_peers_by_epsilon(tmp_path: Path) -> None:
    content = made.experiment("figure3", [0.0, 0.5, 1.0], ["codes", "rr"])
    for number, row in enumerate(content["rows"]):
        row["paper"], row["verdict"] = None, ""
        if row["variant"] == "rr":
            row.update(tradeoff=None, epsilon=2 ** (number % 3 + 1), encoder="gcn", map=None)
            row["history"] = {name: [] for name in ("round", "utility", "adversary", "probe")}
    made.write(tmp_path / "experiments" / "figure3.json", content)
    report(tmp_path / "experiments", tmp_path / "report.html")
    page = parse_page(tmp_path / "report.html")
    (chart,) = [one for one in page.all("figure") if "Utility against leak" in one.text]
    titles = [one.text for one in chart.all("title")]
    assert any(title.startswith("rr · gcn · ε 8: links") for title in titles)
    assert any(title.startswith("codes · gcn · λ 0.5: links") for title in titles)
    assert "λ or ε" in chart.text
    assert sum("Trade-off curves" in one.text for one in page.all("figure")) == 1, "peers have no trade-off"
    assert f"λ {MISSING}" not in page.text
