"""Attacks on controls that depend on the graph alone run once."""

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import nodes, panel
from graphveil.auditing.attacks import Answers, Attack, Need
from graphveil.auditing.cache import AnswerCache, CachedAnswers
from graphveil.auditing.learners import Rows
from graphveil.auditing.secret import NodeSecret, Secret, node_secret
from graphveil.auditing.tasks import Effort, Task, run
from graphveil.files import write_tensors


class Counting:
    """An attack that counts its runs."""

    name, cost = "counting", 1.0
    needs: tuple[Need, ...] = ("z", "secrets")
    runs = 0

    def __call__(self, z: Rows, secret: Any, seed: int) -> Answers:
        self.runs += 1
        answers: Answers = nodes.quick()[0](z, secret, seed)
        return answers


def test_a_control_is_attacked_once_and_the_embeddings_every_time(
    town: Data, town_split: gv.Split, tmp_path: Path
) -> None:
    secret = node_secret(town, town_split, "coin", 0)
    rows = np.random.default_rng(0).normal(size=(1500, 3)).astype(np.float32)
    attack, ours = Counting(), AnswerCache(tmp_path, "this graph and split")

    def findings(rows: Rows, cache: AnswerCache = ours) -> list[Answers]:
        tasks = [Task(subject, attack, rows) for subject in ("embeddings", "raw features")]
        return [finding.answers for finding in run(tasks, secret, 0, Effort(), cache)[0]]

    first, second = findings(rows), findings(rows)
    assert attack.runs == 3, "the embeddings twice, the control once"
    assert all((a.test == b.test).all() and (a.val == b.val).all() for a, b in zip(first, second, strict=True))
    findings(rows + 1)
    assert attack.runs == 5, "other rows are another control"
    findings(rows, AnswerCache(tmp_path, "another split"))
    assert attack.runs == 7
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:-8])
    findings(rows)
    assert attack.runs == 9, "a truncated file is not used"
    fewer = {"val": torch.zeros(3, 2), "test": torch.zeros(3, 2)}
    for file in tmp_path.iterdir():
        write_tensors(file, fewer, {"seconds": "1.5"})
    findings(rows)
    assert attack.runs == 11, "nor is a file with the wrong number of answers"
    for file in tmp_path.iterdir():
        write_tensors(file, load_file(file), {"seconds": "nan"})
    findings(rows)
    assert attack.runs == 13, "nor is one without its seconds"


def test_cached_answers_keep_the_seconds_of_the_attack(town: Data, town_split: gv.Split, tmp_path: Path) -> None:
    secret, rows = node_secret(town, town_split, "coin", 0), np.ones((1500, 3), dtype=np.float32)
    tasks, cache = [Task("raw features", Counting(), rows)], AnswerCache(tmp_path, "this graph and split")
    (first,), _ = run(tasks, secret, 0, Effort(), cache)
    (again,), _ = run(tasks, secret, 0, Effort(), cache)
    assert again.seconds == first.seconds > 0


def test_a_full_disk_does_not_end_the_audit(
    town: Data, town_split: gv.Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    secret, rows = node_secret(town, town_split, "coin", 0), np.ones((1500, 3), dtype=np.float32)
    monkeypatch.setattr("os.fsync", full)
    findings, dropped = run([Task("raw features", Counting(), rows)], secret, 0, Effort(), AnswerCache(tmp_path, "a"))
    assert ([finding.attack for finding in findings], dropped) == (["counting"], [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("weak_networks")
def test_the_cache_of_a_full_audit_depends_on_secret_split_and_seed(
    small: Data, small_split: gv.Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = []

    class Noting(AnswerCache):
        def read(self, subject: str, attack: Attack, rows: Rows, secret: Secret) -> CachedAnswers | None:
            keys.append(self.about)
            return super().read(subject, attack, rows, secret)

    def few(*_: object) -> list[Attack]:
        return [one for one in nodes.panel() if one.name == "boosted trees, all"]

    monkeypatch.setattr(panel, "AnswerCache", Noting)
    monkeypatch.setattr(panel, "resolve_panel", few)
    monkeypatch.setattr(panel, "holding_features", lambda *_: [])
    z, other = np.random.default_rng(0).normal(size=(150, 3)), gv.Split.proportional(small, 3)
    for split, name, seed in (
        (small_split, "secret", 0),
        (small_split, "labels", 0),
        (other, "secret", 0),
        (other, "secret", 1),
    ):
        gv.audit(z, small, split, name, seed=seed, effort=Effort(cache=tmp_path))
    assert len(set(keys)) == 4
    before = len(keys)
    gv.audit(z, small, small_split, "secret", [LogisticRegression()], effort=Effort(cache=tmp_path))
    assert len(keys) == before, "attacks of the caller are not cached: their names do not identify them"


@pytest.mark.parametrize("changed", [{"seed": 1}, {"secret": "labels"}, {"attacks": "full"}], ids=str)
def test_kept_answers_of_another_audit_are_not_used(
    changed: dict[str, Any], small: Data, small_split: gv.Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = list[str]()

    def attack(task: Task, secret: NodeSecret, seed: int) -> Answers:
        ran.append(task.title)
        return Answers(*(np.zeros((len(part.y), secret.num_classes)) for part in (secret.val, secret.test)))

    def attacks_of(**settings: Any) -> set[str]:
        ran.clear()
        gv.audit(z, small, small_split, **settings, effort=Effort(unfinished=tmp_path))
        return {*ran}

    monkeypatch.setattr(Task, "_attack", attack)
    z, first = np.random.default_rng(0).normal(size=(150, 3)), {"secret": "secret", "attacks": "quick", "seed": 0}
    in_both = {one.name for one in nodes.quick()} & {one.name for one in nodes.panel()}
    assert in_both <= attacks_of(**first)
    assert attacks_of(**first) == set(), "the answers of the same audit are used"
    before = {*tmp_path.iterdir()}
    assert in_both <= attacks_of(**first | changed)
    assert len(in_both) >= 3
    assert len({*tmp_path.iterdir()} - before) == len(ran), "every attack has a file of its own"
