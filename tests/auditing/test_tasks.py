"""Running attacks: any number of processes, and a time budget."""

from pathlib import Path

import numpy as np
import pytest
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import Effort, nodes
from graphveil.auditing.cache import AnswerCache
from graphveil.auditing.secret import node_secret
from graphveil.auditing.tasks import Task, run
from tests.auditing.made import noise


@pytest.mark.usefixtures("forked_pool")
def test_the_same_seed_gives_the_same_audit_with_any_number_of_processes(small: Data, small_split: gv.Split) -> None:
    panel = [
        attack for attack in nodes.panel() if attack.name in ("MLP, all", "boosted trees, all", "kernel machine, all")
    ]
    one, again, two = (
        gv.audit(noise(1, nodes=150), small, small_split, "secret", attacks=panel, effort=Effort(jobs=jobs))
        for jobs in (1, 1, 2)
    )
    for first, second, third in zip(one.findings, again.findings, two.findings, strict=True):
        np.testing.assert_array_equal(first.answers.test, second.answers.test)
        np.testing.assert_array_equal(first.answers.test, third.answers.test)


def test_a_time_budget_keeps_cheap_attacks_and_names_the_others(town: Data, town_split: gv.Split) -> None:
    seen: list[str] = []
    effort = Effort(time_budget=0.0, on_attack=lambda name, done, total: seen.append(name))  # noqa: ARG005
    audit = gv.audit(noise(1), town, town_split, "links", effort=effort)
    assert [finding.attack for finding in audit.findings] == seen == ["cosine distance"]
    assert "boosted trees on pairs" in audit.dropped
    assert "attacks skipped" in {flag.name for flag in audit.flags}


def test_a_time_budget_skips_no_attack_whose_answers_are_cached(
    town: Data, town_split: gv.Split, tmp_path: Path
) -> None:
    secret, cache = node_secret(town, town_split, "coin", 0), AnswerCache(tmp_path, "this audit", subjects=None)
    first, second, third = (Task("embeddings", attack, noise(1)) for attack in nodes.quick()[:3])
    run([second], secret, 0, Effort(), cache)
    findings, dropped = run([first, second, third], secret, 0, Effort(time_budget=0.0), cache)
    assert [finding.attack for finding in findings] == [first.attack.name, second.attack.name]
    assert dropped == [third.title]
