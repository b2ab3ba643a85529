"""`graphveil demo`, on a small graph in place of Cora, with short trainings and the quick panel."""

import json
from pathlib import Path
from typing import Any

import pytest
from torch_geometric.data import Data

import graphveil as gv
from graphveil import auditing
from graphveil.training.recipes import default_recipe
from tests.cheap import untuned_regression
from tests.program import CommandLine

SHORT = {"rounds": 6, "hidden_channels": 8, "out_channels": 4, "evaluate_every": 3}


def test_the_demo_trains_audits_and_reports(
    graph: Data, tmp_path: Path, graphveil: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, full = list[str](), auditing.audit

    def load(name: str) -> Data:
        loaded.append(name)
        return graph

    def short_recipe(*setting: Any) -> gv.Recipe:
        return default_recipe(*setting).but(**SHORT)

    def quick_audit(*arguments: Any) -> auditing.Audit:
        z, graph, split, secret, attacks, *rest = arguments
        assert attacks is None, "the demo runs the full panel"
        return full(z, graph, split, secret, "quick", *rest)

    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setattr("graphveil.auditing.classifiers.logistic_regression", untuned_regression)
    monkeypatch.setattr("graphveil.data.load", load)
    monkeypatch.setattr("graphveil.veil.estimator.default_recipe", short_recipe)
    monkeypatch.setattr("graphveil.auditing.audit", quick_audit)
    done = graphveil("demo", "--out", str(tmp_path / "demo"))
    assert done.returncode == 0, done.stderr
    assert loaded == ["cora"]
    for words in ("unprotected", "protected", "The attack is the majority class per code", "Audit of labels: "):
        assert words in done.stdout
    record = json.loads((tmp_path / "demo" / "audit.json").read_text())
    assert record["secret"] == "labels"
    assert list(record["controls"])[-1] == "unprotected encoder"
    assert record["joint_adversary"] is None, "codes train none"
    assert record["utility"]["unprotected"] is not None
    assert f"report written to {tmp_path / 'demo' / 'report.html'}" in done.stdout
    assert "labels" in (tmp_path / "demo" / "report.html").read_text()
