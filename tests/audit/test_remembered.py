"""Controls that depend on the graph alone are attacked once."""

from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

import graphveil as gv
from graphveil.audit import nodes
from graphveil.audit.attacks import Answers, Need
from graphveil.audit.learners import Rows
from graphveil.audit.panel import Effort, Task, run
from graphveil.audit.remembered import Remembered
from graphveil.audit.secret import node_secret


class Counting:
    """An attack that says how often it was run."""

    name, cost = "counting", 1.0
    needs: tuple[Need, ...] = ("z", "secrets")
    runs = 0

    def __call__(self, z: Rows, secret: Any, seed: int) -> Answers:
        self.runs += 1
        found: Answers = nodes.quick()[0](z, secret, seed)
        return found


def test_a_control_is_attacked_once_and_the_embeddings_every_time(
    town: Data, town_split: gv.Split, tmp_path: Path
) -> None:
    secret = node_secret(town, town_split, "coin", 0)
    rows = np.random.default_rng(0).normal(size=(1500, 3)).astype(np.float32)
    attack, answers = Counting(), Remembered(tmp_path, "this graph and split")

    def findings(rows: Rows, memory: Remembered = answers) -> list[Answers]:
        tasks = [Task(subject, attack, rows) for subject in ("embeddings", "raw features")]
        return [finding.answers for finding in run(tasks, secret, 0, Effort(), memory)[0]]

    first, second = findings(rows), findings(rows)
    assert attack.runs == 3, "the embeddings twice, the control once"
    assert all((a.test == b.test).all() and (a.val == b.val).all() for a, b in zip(first, second, strict=True))
    findings(rows + 1)
    assert attack.runs == 5, "other rows are another control"
    findings(rows, Remembered(tmp_path, "another split"))
    assert attack.runs == 7
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:-8])
    findings(rows)
    assert attack.runs == 9, "a torn file is not believed"
