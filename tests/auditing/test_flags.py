"""What rules out *protected*."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from msgspec import structs
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import Answers, Audit, Context, Utility, links
from graphveil.auditing.result import NO_ORIGIN
from graphveil.auditing.secret import NodeSecret
from tests.auditing.made import USEFUL, finding, noise


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
        "attacks skipped": Audit(secret, [chance], {}, dropped=["MLP"], context=USEFUL),
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


def test_a_class_with_few_test_examples_is_flagged(town: Data, town_split: gv.Split) -> None:
    graph = town.clone()
    graph.ill = torch.zeros(1500, dtype=torch.long)
    graph.ill[::80] = 1
    audit = gv.audit(noise(3), graph, town_split, "ill", attacks="quick", context=USEFUL)
    assert any("one class" in flag.sentence for flag in audit.flags if flag.name == "too few examples")


def test_an_auc_of_exactly_one_half_is_flagged(town: Data, town_split: gv.Split) -> None:
    z = np.zeros((1500, 2))
    z[:3] = 1  # not constant, but no test pair shows it
    audit = gv.audit(z, town, town_split, "links", attacks=[links.Distance("Euclidean")], context=Context(joint=0.5))
    assert "joint AUC of exactly 50 %" in names(audit)
    tied = replace(
        audit.findings[0], answers=Answers(*(np.zeros(len(part.y)) for part in (audit.secret.val, audit.secret.test)))
    )
    assert "AUC of exactly 50 %" in names(Audit(audit.secret, [tied], {}))


@pytest.mark.parametrize("secret", ["coin", "links"])
def test_one_row_for_all_nodes_is_flagged_as_collapsed(secret: str, town: Data, town_split: gv.Split) -> None:
    audit = gv.audit(np.ones((1500, 3)), town, town_split, secret, attacks="quick")
    assert "collapsed" in [flag.name for flag in audit.flags]
    assert audit.verdict == "flagged"
    assert audit.certificate is not None
    assert audit.certificate.bound == pytest.approx(audit.secret.chance, abs=1e-9), "nothing is learned from one row"
