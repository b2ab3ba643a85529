"""The verdict of an audit: its grade by size, and its evidence by intervals."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from msgspec import structs
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import Audit, Context, Utility, links
from graphveil.auditing.attacks import UNPROTECTED
from graphveil.auditing.result import NO_ORIGIN
from graphveil.auditing.secret import NodeSecret
from graphveil.auditing.show import rows
from tests.auditing.made import USEFUL, finding, noise, secret_of, sentences


@pytest.fixture(scope="module")
def large() -> NodeSecret:
    """A coin of 60,000 nodes, 20,000 of which are tested."""
    return secret_of(np.arange(60_000) % 2, np.arange(20_000))


def test_another_attack_is_a_reason_if_it_is_significant_after_correction(secret: NodeSecret) -> None:
    """With 750 test nodes and 20 attacks, significance starts 5.5 points above chance: 3.02 standard errors of 1.83."""
    chosen = [finding(secret, f"at chance {number}", 0.6, 0.5) for number in range(19)]
    assert len(secret.test.y) == 750
    controls = {UNPROTECTED: [finding(secret, "a", 0.9, 0.9)]}
    for above, verdict in ((0.045, "protected"), (0.065, "traces")):
        other = finding(secret, "other", 0.5, secret.chance + above)
        audit = Audit(secret, [*chosen, other], controls, context=USEFUL)
        assert audit.strongest.headline.value == pytest.approx(0.5, abs=1e-3)
        assert audit.verdict == verdict
        accuracy = [sentence for sentence in sentences(audit) if ": accuracy" in sentence]
        assert [sentence.split(":")[0] for sentence in accuracy] == (["other"] if verdict == "traces" else [])
        corrected = ", significant after a correction for 20 attacks (Bonferroni)"
        assert all(sentence.endswith(corrected) for sentence in accuracy)


@pytest.mark.parametrize(
    ("value", "unprotected", "verdict"),
    [
        (0.5, None, "protected"),
        (0.545, None, "flagged"),  # 9 % of the way from 50 to 100, but perhaps more of that to an encoder
        (0.535, 0.9, "traces"),  # 9 % of the way from 50 to 90
        (0.57, None, "leaks"),
        (0.87, None, "leaks"),
        (0.89, None, "unprotected"),
        (0.56, 0.9, "leaks"),  # 15 % of the way from 50 to 90
        (0.545, 0.6, "leaks"),  # the shortest way is 20 points
        (0.7, 0.75, "unprotected"),
    ],
)
def test_the_size_decides_the_grade(large: NodeSecret, value: float, unprotected: float | None, verdict: str) -> None:
    controls = {} if unprotected is None else {UNPROTECTED: [finding(large, "a", unprotected, unprotected)]}
    audit = Audit(large, [finding(large, "a", value, value)], controls, context=USEFUL)
    assert audit.verdict == verdict
    way = max((unprotected or 1.0) - 0.5, 0.2)
    assert audit.scale.size == pytest.approx((value - 0.5) / way, abs=2e-3)
    assert audit.scale.ci[0] < audit.scale.size < audit.scale.ci[1]
    if audit.reasons:
        assert sentences(audit)[0] == f"a: accuracy {audit.strongest.headline} is above its reference, 50.0"
        assert sentences(audit)[0] in str(audit).replace("\n", " ")


def test_more_test_nodes_do_not_turn_traces_into_an_alarm(secret: NodeSecret, large: NodeSecret) -> None:
    """A value 2 points above chance is not significant with 750 nodes; with 20,000 it is, and still called traces."""
    small, big = (
        Audit(one, [finding(one, "a", 0.52, 0.52)], {UNPROTECTED: [finding(one, "a", 0.9, 0.9)]}, context=USEFUL)
        for one in (secret, large)
    )
    assert (small.verdict, big.verdict) == ("protected", "traces")


def test_flags_rule_out_protected_and_traces(large: NodeSecret) -> None:
    for value in (0.5, 0.545):
        audit = Audit(large, [finding(large, "a", value, value)], {}, context=USEFUL)
        assert replace(audit, origin=structs.replace(NO_ORIGIN, panel="quick")).verdict == "flagged"


def test_the_utility_is_beside_the_leak(secret: NodeSecret) -> None:
    kept = Context(utility=Utility("links", 0.824, 0.5, 1000, unprotected=0.929))
    text = str(Audit(secret, [finding(secret, "a", 0.5, 0.5)], {}, context=kept))
    assert "links: AUC 82.4 (unprotected 92.9, chance 50.0)" in text


def test_a_higher_value_that_is_not_the_headline_is_explained(secret: NodeSecret) -> None:
    chosen, other = finding(secret, "chosen", 0.6, 0.5), finding(secret, "lucky", 0.5, 0.53)
    audit, alone = (Audit(secret, found, {}, context=USEFUL) for found in ([chosen, other], [chosen]))
    why = "the headline is chosen without the test part, since the best of many test values is too high"
    assert audit.higher == f"lucky has a higher accuracy, {other.headline}; {why}"
    assert audit.record().higher == audit.higher
    assert ("highest value", audit.higher) in rows(audit)
    assert (alone.higher, alone.record().higher) == (None, None)
    assert "highest value" not in str(alone)


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
    assert any("balanced accuracy" in sentence for sentence in sentences(audit))


def test_an_audit_with_flags_can_leak(secret: NodeSecret) -> None:
    assert Audit(secret, [finding(secret, "a", 0.8, 0.8)], {}).verdict == "leaks"


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
