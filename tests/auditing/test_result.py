"""What an audit derives from raw answers: the strongest attack, flags, the verdict, files."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import Answers, Audit, Context, Finding
from graphveil.auditing.finding import ensemble
from graphveil.auditing.secret import NodeSecret
from graphveil.errors import GraphveilError
from graphveil.files import is_sealed
from tests.auditing.made import USEFUL, finding, noise


def test_the_strongest_attack_is_chosen_on_validation_and_reported_on_test(secret: NodeSecret) -> None:
    weak, strong = finding(secret, "weak", 0.6, 0.9), finding(secret, "strong", 0.8, 0.7)
    audit = Audit(secret, [weak, strong], {}, context=USEFUL)
    assert audit.strongest is strong
    assert audit.strongest.headline.value == pytest.approx(0.7, abs=1e-3)
    assert [attack["attack"] for attack in audit.to_dict()["attacks"]] == ["weak", "strong"]


def test_attackers_with_the_public_graph_are_reported_apart(secret: NodeSecret) -> None:
    z, graph = finding(secret, "z", 0.5, 0.5), replace(finding(secret, "gnn", 0.9, 0.9), needs=("z", "graph"))
    alone = replace(finding(secret, "alone", 0.85, 0.85), subject="public graph", needs=("graph",))
    audit = Audit(secret, [z, graph], {"public graph": [alone]}, context=USEFUL)
    assert audit.strongest is z
    assert audit.with_graph is graph
    assert audit.to_dict()["with_public_graph"]["excess"]["value"] == pytest.approx(0.05, abs=2e-3)
    assert audit.verdict == "leaks", "z adds five points to the public graph"
    assert [reason.sentence.split(":")[0] for reason in audit.reasons] == ["gnn"]


def test_the_ensemble_is_chosen_within_the_interval_of_the_best_attack(secret: NodeSecret) -> None:
    """The best validation value of many attacks is partly luck: here the attack is at chance level on the test part."""
    best, combined = finding(secret, "best", 0.72, 0.52), finding(secret, "ensemble", 0.70, 0.68)
    clear = finding(secret, "clear", 0.85, 0.84)
    assert best.validation.half / 2 < 0.02 < best.validation.half, "more than one standard error, and less than two"
    assert Audit(secret, [best, combined], {}).strongest is combined
    assert Audit(secret, [best, combined, clear], {}).strongest is clear


def test_the_joint_adversary_and_the_strongest_attack(secret: NodeSecret) -> None:
    audit = Audit(secret, [finding(secret, "a", 0.8, 0.8)], {}, context=Context(joint=0.55))
    assert audit.gap == pytest.approx(0.25, abs=1e-3)
    assert audit.to_dict()["joint_adversary"]["value"] == 0.55
    assert "55.0; the strongest attack is 25.0 points above it" in str(audit)


def test_an_ensemble_is_better_than_each_of_its_attacks(secret: NodeSecret) -> None:
    """The attacks have independent errors."""
    random = np.random.default_rng(0)

    def one(name: str) -> Finding:
        def answers(y: np.ndarray) -> np.ndarray:
            return np.stack([np.zeros(len(y)), 2.0 * (2 * y - 1) + 2 * random.normal(size=len(y))], axis=1)

        raw = Answers(answers(secret.val.y), answers(secret.test.y))
        return Finding("embeddings", name, ("z",), secret, raw, 0.1)

    alone = [one(name) for name in "abcd"]
    (combined,) = ensemble(alone)
    assert combined.headline.value > max(finding.headline.value for finding in alone)


def test_a_weak_attack_does_not_weaken_the_ensemble(secret: NodeSecret) -> None:
    strong, weak = finding(secret, "strong", 0.9, 0.9), finding(secret, "weak", 0.6, 0.6)
    (both,) = ensemble([weak, strong])
    assert both.headline.value >= strong.headline.value - 0.01
    assert both.validation.value >= strong.validation.value - 0.01
    assert ensemble([strong]) == [], "one attack is not an ensemble"
    assert ensemble([]) == []


def test_the_files_of_an_audit(town: Data, town_split: gv.Split, tmp_path: Path) -> None:
    z = noise(1)
    z[:, 0] += 4 * town.coin.numpy()
    audit = gv.audit(z, town, town_split, "coin", attacks="quick")
    audit.save(tmp_path / "a" / "audit.json")
    written = json.loads((tmp_path / "a" / "audit.json").read_text())
    for key in (
        "schema",
        "secret",
        "strongest",
        "attacks",
        "controls",
        "floor",
        "joint_adversary",
        "mutual_information",
    ):
        assert key in written
    assert set(written["strongest"]) == {"attack", "metric", "value", "ci", "upper"}
    assert set(written["attacks"][0]["metrics"]) == {"accuracy", "balanced_accuracy", "macro_f1", "gain"}
    assert written["origin"]["panel"] == "quick"
    raw = (tmp_path / "a" / "audit.answers.safetensors").read_bytes()
    assert hashlib.sha256(raw).hexdigest() == written["answers_sha256"]
    assert is_sealed(written)
    assert not is_sealed(written | {"verdict": "protected"})
    answers = safetensors.numpy.load(raw)["embeddings/MLP, all/test"]
    right = (answers.argmax(axis=1) == audit.secret.test.y).mean()
    mlp = next(attack for attack in written["attacks"] if attack["attack"] == "MLP, all")
    assert right == pytest.approx(mlp["value"], abs=1e-12), "metrics can be computed from the raw answers"
    assert sorted(file.name for file in (tmp_path / "a").iterdir()) == ["audit.answers.safetensors", "audit.json"]


@pytest.mark.parametrize("name", ["folder", "link", ""])
def test_an_audit_that_cannot_be_written_leaves_no_answers(secret: NodeSecret, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    audit = Audit(secret, [finding(secret, "a", 0.7, 0.7)], {}, context=USEFUL)
    with pytest.raises(GraphveilError, match="cannot"):
        audit.save(tmp_path / name if name else Path())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "link"]
