"""Partitions of a graph: few links between them, the same for every process, and none without pymetis."""

from pathlib import Path

import pytest
import torch

from graphveil.data import partition
from graphveil.data.partition import partition_of_nodes
from graphveil.data.sampler import Neighbours
from graphveil.processes import Processes
from tests.forked import Forks
from tests.together import run_together

TWO_CLIQUES = """
import torch
from graphveil.data.partition import partition_of_nodes
from graphveil.data.sampler import Neighbours
even = torch.combinations(torch.arange(0, 40, 2)).T
pairs = torch.cat([even, even + 1, torch.tensor([[0], [1]])], dim=1)
neighbours = Neighbours.of(pairs.sort(dim=0).values, 40)
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pymetis.*")
def test_two_cliques_are_two_partitions_and_every_process_has_them(forks: Forks, tmp_path: Path) -> None:
    pytest.importorskip("pymetis")
    code = TWO_CLIQUES + "from graphveil.processes import current\n"
    code += "print(partition_of_nodes(neighbours, current()).tolist())"
    first, other = run_together(forks, code, tmp_path)
    assert first == other
    part = torch.tensor(eval(first))
    assert part[::2].unique().numel() == part[1::2].unique().numel() == 1
    assert part[0] != part[1]


def test_without_pymetis_there_are_no_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "find_spec", lambda _: None)
    neighbours = Neighbours.of(torch.tensor([[0], [1]]), 2)
    assert partition_of_nodes(neighbours, Processes()) is None
