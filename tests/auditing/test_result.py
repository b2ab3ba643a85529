"""What an audit derives from raw answers: the strongest attack, flags, the verdict, files."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch
from msgspec import structs
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import Answers, Audit, Context, Finding, Utility, links
from graphveil.auditing.finding import ensemble
from graphveil.auditing.result import NO_ORIGIN
from graphveil.auditing.secret import NodeSecret, node_secret
from graphveil.errors import GraphveilError
from graphveil.files import is_sealed
from tests.auditing.made import noise

USEFUL = Context(utility=Utility("links", 0.9, 0.5, 1000))


@pytest.fixture(scope="module")
def secret(town: Data, town_split: gv.Split) -> NodeSecret:
    return node_secret(town, town_split, "coin", 0)


def finding(secret: NodeSecret, name: str, val: float, test: float) -> Finding:
    """A finding that is right on the first `val` and `test` shares of both parts."""

    def answers(y: np.ndarray, right: float) -> np.ndarray:
        predicted = np.where(np.arange(len(y)) < right * len(y), y, 1 - y)
        return np.log(0.01 + 0.98 * np.eye(2)[predicted])

    raw = Answers(answers(secret.val.y, val), answers(secret.test.y, test))
    return Finding("embeddings", name, ("z", "secrets"), secret, raw, 0.1)


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
    assert [sentence.split(":")[0] for sentence in audit.leak_reasons] == ["gnn"]


def test_another_attack_is_a_reason_if_it_is_significant_after_correction(secret: NodeSecret) -> None:
    """With 750 test nodes and 20 attacks, significance starts 5.5 points above chance: 3.02 standard errors of 1.83."""
    chosen = [finding(secret, f"at chance {number}", 0.6, 0.5) for number in range(19)]
    assert len(secret.test.y) == 750
    for above, verdict in ((0.045, "protected"), (0.065, "leaks")):
        audit = Audit(secret, [*chosen, finding(secret, "other", 0.5, secret.chance + above)], {}, context=USEFUL)
        assert audit.strongest.headline.value == pytest.approx(0.5, abs=1e-3)
        assert audit.verdict == verdict
        accuracy = [sentence for sentence in audit.leak_reasons if ": accuracy" in sentence]
        assert [sentence.split(":")[0] for sentence in accuracy] == (["other"] if verdict == "leaks" else [])
        assert all(sentence.endswith(", significant for the best of 20 attacks (Bonferroni)") for sentence in accuracy)


def test_the_verdict(secret: NodeSecret) -> None:
    audit = Audit(secret, [finding(secret, "a", 0.7, 0.7)], {}, context=USEFUL)
    assert audit.verdict == "leaks"
    assert audit.leak_reasons[0] == f"a: accuracy {audit.strongest.headline} is above {100 * secret.chance:.1f}"
    assert audit.leak_reasons[0] in str(audit).replace("\n", " ")
    assert Audit(secret, [finding(secret, "a", 0.5, 0.5)], {}, context=USEFUL).verdict == "protected"


def test_a_leak_of_a_rare_class_that_the_accuracy_does_not_show(town: Data, town_split: gv.Split) -> None:
    """90 % of the nodes have class 0, and the others differ slightly: no attack beats the chance level."""
    graph = town.clone()
    random = np.random.default_rng(0)
    rare = random.random(1500) < 0.1
    graph.ill = torch.from_numpy(rare.astype(np.int64))
    z = noise(1)
    z[:, 0] += 0.8 * rare
    audit = gv.audit(z, graph, town_split, "ill", attacks="quick", context=USEFUL)
    assert audit.strongest.headline.low <= audit.secret.chance
    assert audit.most_balanced is not None
    assert audit.most_balanced.balanced.low > 0.5
    assert audit.verdict == "leaks"
    assert any("balanced accuracy" in sentence for sentence in audit.leak_reasons)


def names(audit: Audit) -> set[str]:
    return {flag.name for flag in audit.flags}


def test_every_flag_rules_out_protected(town: Data, town_split: gv.Split, secret: NodeSecret) -> None:
    chance = finding(secret, "a", 0.5, 0.5)
    constant = replace(
        chance, answers=Answers(*(np.tile(np.log([0.6, 0.4]), (len(part.y), 1)) for part in (secret.val, secret.test)))
    )
    few = replace(secret, test=replace(secret.test, index=secret.test.index[:100], y=secret.test.y[:100]))
    useless = Context(utility=Utility("links", 0.51, 0.5, 1000))
    z = noise(0)
    z[:, 3] = 7
    z[:, 5] = -2 * z[:, 1]
    shaped = gv.audit(z, town, town_split, "coin", attacks="quick")
    cases = {
        "constant prediction": Audit(secret, [constant], {}, context=USEFUL),
        "utility at chance": Audit(secret, [chance], {}, context=useless),
        "too few examples": Audit(few, [finding(few, "a", 0.5, 0.5)], {}, context=USEFUL),
        "attacks dropped": Audit(secret, [chance], {}, dropped=["MLP"], context=USEFUL),
        "dead dimensions": shaped,
        "duplicated dimensions": shaped,
    }
    quick = structs.replace(NO_ORIGIN, panel="quick")
    cases |= {
        "utility unknown": Audit(secret, [chance], {}),
        "not the full panel": Audit(secret, [chance], {}, context=USEFUL, origin=quick),
    }
    for name, audit in cases.items():
        assert name in names(audit), name
        assert audit.verdict == "flagged"


def test_an_audit_with_flags_can_leak(secret: NodeSecret) -> None:
    assert Audit(secret, [finding(secret, "a", 0.9, 0.9)], {}).verdict == "leaks"


def test_a_class_with_few_test_examples_is_flagged(town: Data, town_split: gv.Split) -> None:
    graph = town.clone()
    graph.ill = torch.zeros(1500, dtype=torch.long)
    graph.ill[::80] = 1
    audit = gv.audit(noise(3), graph, town_split, "ill", attacks="quick", context=USEFUL)
    assert any("one class" in flag.sentence for flag in audit.flags if flag.name == "too few examples")


def test_a_class_matched_auc_above_chance_is_a_leak(town: Data, town_split: gv.Split) -> None:
    """Linked nodes are close, independently of their classes."""
    source, target = town.edge_index.numpy()
    z = noise(1, columns=30).astype(np.float64)
    total = np.zeros_like(z)
    np.add.at(total, target, z[source])
    context = Context(utility=Utility("labels", 0.8, 0.3, 500))
    audit = gv.audit(z + total, town, town_split, "links", attacks=[links.Distance("cosine")], context=context)
    assert audit.class_matched is not None
    assert audit.class_matched.matched is not None
    assert audit.class_matched.matched.low > 0.5
    assert audit.verdict == "leaks"


def test_the_ensemble_is_chosen_within_a_standard_error(secret: NodeSecret) -> None:
    best, combined = finding(secret, "best", 0.71, 0.6), finding(secret, "ensemble", 0.70, 0.68)
    clear = finding(secret, "clear", 0.85, 0.84)
    assert Audit(secret, [best, combined], {}).strongest is combined
    assert Audit(secret, [best, combined, clear], {}).strongest is clear


def test_an_auc_of_exactly_one_half_is_flagged(town: Data, town_split: gv.Split) -> None:
    z = np.zeros((1500, 2))
    z[:3] = 1  # not constant, but no test pair shows it
    audit = gv.audit(z, town, town_split, "links", attacks=[links.Distance("Euclidean")], context=Context(joint=0.5))
    assert "joint AUC of exactly .5" in names(audit)
    tied = replace(
        audit.findings[0], answers=Answers(*(np.zeros(len(part.y)) for part in (audit.secret.val, audit.secret.test)))
    )
    assert "AUC of exactly .5" in names(Audit(audit.secret, [tied], {}))


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


@pytest.mark.parametrize("secret", ["coin", "links"])
def test_one_row_for_all_nodes_is_flagged_as_collapsed(secret: str, town: Data, town_split: gv.Split) -> None:
    audit = gv.audit(np.ones((1500, 3)), town, town_split, secret, attacks="quick")
    assert "collapsed" in [flag.name for flag in audit.flags]
    assert audit.verdict == "flagged"
    assert audit.certificate is None
