"""Stack modules of one class into one, with a leading dimension of runs for every weight.

A module can be stacked if its class has `batched = True`: its `forward` then also works on (runs, n, channels) with
weights (runs, ...), draws random numbers only in `graphveil.models.layers.Dropout`, and copies nothing from a GPU.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd


def is_batched(module: nn.Module) -> bool:
    """Return whether a module can be stacked.

    Its own class, and not only a parent class, must have `batched = True`. It must have neither buffers nor torch's
    dropout, and an encoder that it wraps must be batched too.
    """
    promised = vars(type(module)).get("batched", False) is True
    own_dropout = any(isinstance(part, _DropoutNd) for part in module.modules())
    wrapped = getattr(module, "encoder", None)
    inner = is_batched(wrapped) if isinstance(wrapped, nn.Module) else True
    return promised and inner and not own_dropout and not list(module.buffers())


def stack(modules: Sequence[nn.Module]) -> nn.Module:
    """Return one module that computes what all of `modules` compute; a single module is returned unchanged."""
    if len(modules) == 1:
        return modules[0]
    stacked = deepcopy(modules[0])
    for name, _ in modules[0].named_parameters():
        owner, _, leaf = name.rpartition(".")
        weights = torch.stack([module.get_parameter(name).detach() for module in modules])
        setattr(stacked.get_submodule(owner), leaf, nn.Parameter(weights))
    return stacked


def load_parts(modules: Mapping[str, nn.Module], state: Mapping[str, Tensor]) -> None:
    """Load weights called `part.weight` into the modules called `part`."""
    for part, module in modules.items():
        prefix = f"{part}."
        module.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})


def of_run(state: dict[str, Tensor], run: int, runs: int) -> dict[str, Tensor]:
    """Return the weights of one run among `runs` stacked ones."""
    return state if runs == 1 else {name: value[run] for name, value in state.items()}
