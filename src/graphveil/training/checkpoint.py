"""Checkpoints: the whole state of a training in one safetensors file.

Every random stream is a function of the seed and the round, so the state consists of weights, optimisers, history and
the best state. On the CPU, a run that is killed and resumed ends with the same bytes as an uninterrupted one. A run
whose checkpoint is damaged starts over, with the same result.
"""

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from graphveil.errors import GraphveilError
from graphveil.files import write_tensors
from graphveil.training.history import Record, Round
from graphveil.training.loop import Training
from graphveil.training.players import Player

log = logging.getLogger(__name__)


def save_checkpoint(training: Training, path: Path, fingerprint: str) -> None:
    """Write the state of a training.

    Args:
        training: The training, whose losses are recorded up to its present round.
        path: The file.
        fingerprint: A digest of the configuration, the graph and the split.
    """
    tensors = {f"now/{k}": v for k, v in training.state().items()}
    tensors |= {f"best/{k}": v for k, v in training.best.items()}
    tensors |= {f"optimizer/{p.name}/{k}": v for p in training.method.players for k, v in _optimizer_state(p).items()}
    for run, record in enumerate(training.records):
        rows = [list(past.row().values()) for past in record.history]
        tensors[f"history/{run}"] = torch.tensor(rows, dtype=torch.float64)
    summary = [(record.best_round, record.best_score, record.finished) for record in training.records]
    tensors["records"] = torch.tensor(summary, dtype=torch.float64)
    tensors["round"] = torch.tensor(training.round)
    write_tensors(path, tensors, {"fingerprint": fingerprint, "sha256": _digest(tensors, fingerprint)})


def load_checkpoint(training: Training, path: Path, fingerprint: str, copy: Path | None = None) -> None:
    """Restore a training from its checkpoint; if the checkpoint is damaged, the training starts over.

    Args:
        training: The training.
        path: The file, which messages name.
        fingerprint: A digest of the configuration, the graph and the split.
        copy: A copy of the file, to be read in its place.
    """
    tensors = _read(path, fingerprint, copy or path)
    if tensors is None:
        if training.method.streams.processes.is_first:
            log.warning("%s is damaged: the run starts over.", path)
        return
    training.load_state({k.removeprefix("now/"): v for k, v in tensors.items() if k.startswith("now/")})
    device = next(iter(training.best.values())).device
    training.best = {k.removeprefix("best/"): v.to(device) for k, v in tensors.items() if k.startswith("best/")}
    for player in training.method.players:
        _load_optimizer(player, tensors)
    training.round = int(tensors["round"])
    training.records = []
    for run, (best_round, best_score, finished) in enumerate(tensors["records"].tolist()):
        history = [Round.of(row) for row in tensors[f"history/{run}"].tolist()]
        training.records.append(Record(history, int(best_round), best_score, bool(finished)))


def _read(path: Path, fingerprint: str, copy: Path) -> dict[str, Tensor] | None:
    """The tensors of a checkpoint, or None if it is damaged."""
    try:
        with safe_open(copy, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except SafetensorError:
        return None
    except OSError as error:
        raise GraphveilError(f"{path} cannot be read as a checkpoint ({error}): start the run over.") from error
    written_for = metadata.get("fingerprint", "")
    if metadata.get("sha256") != _digest(tensors, written_for):
        return None
    if written_for != fingerprint:
        raise GraphveilError(
            f"{path} was written by a run with another configuration, graph or split: resume with the same options, or"
            " start over in another folder."
        )
    return tensors


def _digest(tensors: Mapping[str, Tensor], fingerprint: str) -> str:
    sha = hashlib.sha256(fingerprint.encode())
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        sha.update(f"{name}:{tuple(value.shape)}:{value.dtype}".encode())
        sha.update(value.numpy().tobytes())
    return sha.hexdigest()


def _optimizer_state(player: Player) -> dict[str, Tensor]:
    state = player.optimizer.state_dict()["state"]
    return {f"{index}/{name}": value for index, values in state.items() for name, value in values.items()}


def _load_optimizer(player: Player, tensors: dict[str, Tensor]) -> None:
    prefix = f"optimizer/{player.name}/"
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith(prefix):
            index, name = key.removeprefix(prefix).split("/")
            state.setdefault(int(index), {})[name] = value
    groups = player.optimizer.state_dict()["param_groups"]
    player.optimizer.load_state_dict({"state": state, "param_groups": groups})
