"""Partitions of a graph with few links between them, one for each process of a training.

The neighbourhoods of nodes in one partition overlap more than those of random nodes, so a process that works on its own
partition reads and computes fewer rows for a mini-batch.
"""

import logging
from importlib.util import find_spec

import torch
from torch import Tensor

from graphveil.data.sampler import Neighbours
from graphveil.processes import Processes

log = logging.getLogger(__name__)


def partition_of_nodes(neighbours: Neighbours, processes: Processes) -> Tensor | None:
    """Return the process that each node belongs to, (num_nodes,) int32; None without pymetis.

    The first process computes it and sends it to the others. The partitions have about the same number of nodes.

    Args:
        neighbours: The graph.
        processes: The processes of the training.
    """
    part = torch.full((neighbours.num_nodes,), -1, dtype=torch.int32)
    if processes.is_first and find_spec("pymetis"):
        part = _partition(neighbours, processes.size)
    part = processes.of_first(part)
    if len(part) and part[0] < 0:
        log.info("pymetis is not installed: the graph is not partitioned, so each process reads more nodes in a round.")
        return None
    return part


def _partition(neighbours: Neighbours, count: int) -> Tensor:
    import pymetis  # noqa: PLC0415 - an extra

    adjacency = pymetis.CSRAdjacency(neighbours.start.numpy(), neighbours.node.long().numpy())
    return torch.as_tensor(pymetis.part_graph(count, adjacency).vertex_part, dtype=torch.int32)
