"""The verdict of an audit, and the reasons for leaks."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import Audit, Context, Utility, links
from graphveil.auditing.secret import NodeSecret
from tests.auditing.made import USEFUL, finding, noise


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


def test_an_audit_with_flags_can_leak(secret: NodeSecret) -> None:
    assert Audit(secret, [finding(secret, "a", 0.9, 0.9)], {}).verdict == "leaks"


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
