"""Many runs of one configuration as one batched problem.

A GPU is idle most of the time while one small graph trains. Here the runs' weights are stacked and their graphs are one
block-diagonal graph, so that all of them go through the one loop of `graphveil.training.loop` at once.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from torch import nn
from torch_geometric.data import Data

from graphveil.data import Split
from graphveil.errors import DivergedError, GraphveilError
from graphveil.models.codes import CodeShape
from graphveil.models.stack import is_batched
from graphveil.training.history import numbered
from graphveil.training.loop import Training
from graphveil.veil import Veil, diverged, finish, start


def fit_together(
    veils: Sequence[Veil],
    graph: Data,
    splits: Sequence[Split],
    on_round: Callable[[Training], None] | None = None,
) -> None:
    """Fit many veils as one batched problem: on a GPU, ten small runs take little longer than one.

    Each has its own split, seed, trade-off and end, and comes out as `fit` would leave it, up to the order of sums.

    Args:
        veils: alike in all but `seed` and `tradeoff`.
        splits: one for each.
    """
    if len(veils) != len(splits):
        raise GraphveilError(f"{len(veils)} veils came with {len(splits)} splits: give one split for each veil.")
    if any(_shared_config(veil) != _shared_config(veils[0]) for veil in veils):
        raise GraphveilError("the veils differ in more than seed and tradeoff: fit those that are alike together.")
    faults = []
    for batch in _batches(veils, graph, splits):
        members = [veils[number] for number in batch]
        own = [splits[number] for number in batch]
        training = start(members, graph, own)
        with suppress(DivergedError):  # of a batch of one; it is in the record too
            finish(members, training, graph, own, on_round)
        for number, veil in enumerate(members):
            wrong = diverged(training, number, len(members))
            faults += [f"seed {veil.seed}, tradeoff {veil.tradeoff}: {fault}" for fault in wrong[:1]]
    if faults:
        raise DivergedError(f"{len(faults)} of {len(veils)} runs diverged; the others are fitted. {' '.join(faults)}")


def _shared_config(veil: Veil) -> dict[str, Any]:
    """What all veils of a batch must have in common."""
    specs = (veil.encoder, veil.recipe.head, veil.adversary.head)
    instances = [id(spec) for spec in specs if isinstance(spec, nn.Module)]  # two of a class may be set up differently
    return veil.config() | {"seed": None, "tradeoff": None, "device": veil.device, "instances": instances}


def _batches(veils: Sequence[Veil], graph: Data, splits: Sequence[Split]) -> list[list[int]]:
    """Which runs are stacked: those whose parts are of the same sizes, and only modules that can be stacked.

    Unknown classes may fall differently into the parts of two splits; such runs train in batches of their own, and
    with modules of the caller's own that cannot be stacked, every run does.
    """
    if not veils:
        return []
    first = veils[0]
    parts = ("utility", *(numbered("adversary", number) for number in range(len(first.secrets))))
    first.in_channels_, first.classes_ = graph.x.size(1), dict.fromkeys(parts, 2)
    first.code_shape_ = CodeShape(2, 2)  # any will do: only whether the modules can be stacked is asked
    modules = first._build().values()
    if not all(is_batched(module) for module in modules):
        return [[number] for number in range(len(veils))]
    batches: dict[tuple[int, ...], list[int]] = {}
    for number, split in enumerate(splits):
        batches.setdefault(split.sizes(graph, (first.utility, *first.secrets)), []).append(number)
    return list(batches.values())
