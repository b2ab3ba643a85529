"""Many modules of one kind as one: every weight stacked along a leading dimension of runs.

A module can be stacked if its class says `batched = True`: its `forward` then works on (runs, n, channels) with weights
(runs, ...) as it does without the runs, draws only from `graphveil.models.layers.Dropout`, and reads nothing back from
a GPU on its way.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd


def is_batched(module: nn.Module) -> bool:
    """Whether the class itself, not a parent of it, says that it can be stacked, and nothing in it says otherwise.

    A module that wraps an encoder can be stacked if the encoder can.
    """
    promised = vars(type(module)).get("batched", False) is True
    own_dropout = any(isinstance(part, _DropoutNd) for part in module.modules())
    wrapped = getattr(module, "encoder", None)
    inner = is_batched(wrapped) if isinstance(wrapped, nn.Module) else True
    return promised and inner and not own_dropout and not list(module.buffers())


def stack(modules: Sequence[nn.Module]) -> nn.Module:
    """One module that computes what all of `modules` do; a single one is given back as it is."""
    if len(modules) == 1:
        return modules[0]
    stacked = deepcopy(modules[0])
    for name, _ in modules[0].named_parameters():
        owner, _, leaf = name.rpartition(".")
        weights = torch.stack([module.get_parameter(name).detach() for module in modules])
        setattr(stacked.get_submodule(owner), leaf, nn.Parameter(weights))
    return stacked


def load_parts(modules: Mapping[str, nn.Module], state: Mapping[str, Tensor]) -> None:
    """Put weights called `part.weight` back into the modules called `part`."""
    for part, module in modules.items():
        prefix = f"{part}."
        module.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})


def of_run(state: dict[str, Tensor], run: int, runs: int) -> dict[str, Tensor]:
    """The weights of one run among `runs` stacked ones."""
    return state if runs == 1 else {name: value[run] for name, value in state.items()}
