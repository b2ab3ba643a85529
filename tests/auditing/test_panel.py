"""Panels: attacks of the caller, and input that is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import Answers, Context, Effort, links, nodes
from graphveil.auditing.attacks import CLASSES_AND_FEATURES
from graphveil.auditing.finding import ENSEMBLE
from graphveil.auditing.panel import early_attacks
from graphveil.auditing.secret import Secret, link_secret
from graphveil.auditing.tasks import Task
from graphveil.errors import GraphveilError
from tests.auditing.made import communities, noise


def test_any_scikit_learn_classifier_is_an_attack(town: Data, town_split: gv.Split) -> None:
    z = noise(1)
    z[:, 2] += 6 * town.coin.numpy()
    audit = gv.audit(z, town, town_split, "coin", attacks=[GaussianNB()])
    assert {finding.attack for finding in audit.findings} == {"GaussianNB, few", "GaussianNB, all"}
    assert audit.strongest.headline.value > 0.95
    pairs = gv.audit(communities(town), town, town_split, "links", attacks=[GaussianNB()])
    assert pairs.strongest.attack == "GaussianNB on pairs"
    assert pairs.strongest.headline.low > 0.6


@pytest.mark.parametrize(
    ("attacks", "sentence"), [([], "list of attacks is empty"), ("fast", "full, quick"), ([3], "is not an attack")]
)
def test_what_is_not_an_attack_raises_an_error(
    attacks: object, sentence: str, town: Data, town_split: gv.Split
) -> None:
    with pytest.raises(GraphveilError, match=sentence):
        gv.audit(noise(1), town, town_split, "coin", attacks=attacks)  # type: ignore[arg-type]
    with pytest.raises(GraphveilError, match="two attacks are called 'GaussianNB, few'"):
        gv.audit(noise(1), town, town_split, "coin", attacks=[GaussianNB(), GaussianNB()])


def test_an_attack_of_the_caller_need_not_answer_matched_pairs(town: Data, town_split: gv.Split) -> None:
    class Own:
        name, needs, cost = "own", ("z",), 1.0

        def __init__(self, shape: int) -> None:
            self.shape = shape

        def __call__(self, z: np.ndarray, secret: Any, seed: int) -> Answers:  # noqa: ARG002
            return Answers(np.arange(len(secret.val.y), dtype=float), np.arange(self.shape, dtype=float))

    count = 2 * town_split.test_links.size(1)
    audit = gv.audit(noise(1), town, town_split, "links", attacks=[Own(count)])
    assert audit.class_matched is None
    assert "class_matched_auc" not in audit.to_dict()["attacks"][0]["metrics"]
    with pytest.raises(GraphveilError, match=f"attack 'own' returned float64 of shape .3,. as test: expected.*{count}"):
        gv.audit(noise(1), town, town_split, "links", attacks=[Own(3)])


@pytest.mark.parametrize("secret", ["coin", "links"])
def test_attacks_that_ran_early_are_not_run_again(
    secret: str, town: Data, town_split: gv.Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    z, ran = communities(town), list[str]()
    expected = gv.audit(z, town, town_split, secret, "quick").to_dict()
    run = Task._attack

    def attack(task: Task, secret: Secret, seed: int) -> Answers:
        ran.append(task.title)
        return run(task, secret, seed)

    monkeypatch.setattr(Task, "_attack", attack)
    effort = Effort(unfinished=tmp_path)
    for early in early_attacks(z, town, town_split, secret, "quick", 0, Context(), effort):
        early()
    assert sorted(ran) == sorted(found["attack"] for found in expected["attacks"] if found["attack"] != ENSEMBLE)
    ran.clear()
    audit = gv.audit(z, town, town_split, secret, "quick", effort=effort).to_dict()
    assert ran == []
    for record in (audit, expected):
        for found in record["attacks"]:
            found["seconds"] = 0
    assert audit == expected
    in_time = replace(effort, time_budget=100.0)
    assert early_attacks(z, town, town_split, secret, "quick", 0, Context(), in_time) == [], "it may skip attacks"


def test_early_attacks_are_all_but_those_on_known_links_and_on_encoders(
    town: Data, town_split: gv.Split, tmp_path: Path
) -> None:
    z, effort = communities(town), Effort(unfinished=tmp_path)
    early = early_attacks(z, town, town_split, "links", None, 0, Context(), effort)
    tasks: list[Task] = [one.func.__self__ for one in early]  # type: ignore[attr-defined]
    assert {task.subject for task in tasks} == {"embeddings", "raw features", CLASSES_AND_FEATURES}
    assert not any("known links" in task.attack.needs for task in tasks)
    assert any("features" in task.attack.needs for task in tasks)
    costs = [task.attack.cost for task in tasks]
    assert costs == sorted(costs, reverse=True), "the longest first, so that all processes end at about the same time"


def test_panels_are_in_order_of_cost(town: Data, town_split: gv.Split) -> None:

    for panel in (nodes.panel(), links.panel(link_secret(town, town_split, 0))):
        costs = [attack.cost for attack in panel]
        assert costs == sorted(costs)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda z: z[:-1], "1499 rows and the graph has 1500 nodes"),
        (lambda z: z[:, 0], r"shape \(1500,\)"),
        (lambda z: z[:, :0], r"shape \(1500, 0\)"),
        (lambda z: np.where(np.arange(1500)[:, None] == 3, np.nan, z), "nan in row 3, column 0"),
        (lambda z: np.where(np.arange(1500)[:, None] == 3, np.inf, z), "inf in row 3, column 0"),
        (lambda z: z.astype(str), "expected numbers"),
    ],
)
def test_invalid_embeddings_raise_an_error(spoil, sentence: str, town: Data, town_split: gv.Split) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(GraphveilError, match=sentence):
        gv.audit(spoil(noise(1).astype(np.float64)), town, town_split, "coin", attacks="quick")


def test_invalid_secrets_raise_an_error(town: Data, town_split: gv.Split) -> None:
    bad = town.clone()
    bad.empty, bad.one = bad.coin * 0 - 1, bad.coin * 0
    for name, sentence in (
        ("gender", "the graph has no 'gender'"),
        ("empty", "no value in the test part"),
        ("one", "only one class"),
        ("x", "one class for each"),
    ):
        with pytest.raises(GraphveilError, match=sentence):
            gv.audit(noise(1), bad, town_split, name)
    with pytest.raises(GraphveilError, match="the split is for 1500 nodes"):
        gv.audit(noise(1), gv.load("karate"), town_split, "labels")
