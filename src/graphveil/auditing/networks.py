"""Neural networks as learners: an MLP, and a bilinear model of pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil.auditing.learners import Examples, Fitted, Rows, Stop, clipped_log
from graphveil.auditing.metrics import Array
from graphveil.randomness import global_stream

GPU_MIN_ROWS = 20_000
"""With fewer rows a CPU is faster than a GPU, whose time goes into launching small kernels."""


@dataclass(frozen=True)
class NetworkSetting:
    """Hyperparameters of a network."""

    hidden_channels: int = 64
    dropout: float = 0.0
    weight_decay: float = 1e-4
    lr: float = 5e-3


@dataclass(frozen=True)
class Network:
    """A torch module trained by Adam with early stopping, on a GPU if there is one and enough rows for it.

    Args:
        build: a function from the number of columns, the number of classes and a setting to a module with logits.
        grid: the settings.
        epochs: the largest number of epochs.
        patience: epochs without a lower loss on the held-out rows before training stops.
    """

    build: Callable[[int, int, NetworkSetting], nn.Module]
    grid: Sequence[NetworkSetting]
    epochs: int = 200
    patience: int = 12

    def fit(self, train: Examples, num_classes: int, setting: Any, seed: int, stop: Stop = None) -> Fitted:
        """Fit a network with one setting."""
        use_gpu = len(train.y) >= GPU_MIN_ROWS and torch.cuda.is_available()
        device = torch.device("cuda" if use_gpu else "cpu")
        with global_stream(seed, "attack"):
            module = self.build(train.x.shape[1], num_classes, setting).to(device)
            rounds = self._train(module, train, setting, stop)

        def log_probabilities(x: Rows) -> Array:
            with torch.no_grad():
                parts = [module.eval()(part) for part in torch.from_numpy(x).to(device).split(2**16)]
            return clipped_log(torch.cat(parts).double().softmax(dim=1).cpu().numpy())

        return Fitted(log_probabilities, rounds)

    def _train(self, module: nn.Module, train: Examples, setting: NetworkSetting, stop: Stop) -> int:
        """Train the module, restore its best state and return the number of epochs after which it was best."""
        device = next(module.parameters()).device
        x, y = torch.from_numpy(train.x).to(device), torch.from_numpy(train.y).to(device)
        batch = min(len(y), max(128, 2 ** round(np.log2(max(len(y), 64) / 48))))
        optimizer = torch.optim.Adam(module.parameters(), lr=setting.lr, weight_decay=setting.weight_decay, fused=True)
        held_out = (
            (torch.from_numpy(stop.x).to(device), torch.from_numpy(stop.y).to(device))
            if isinstance(stop, Examples)
            else None
        )
        best, best_loss, best_state = 0, np.inf, module.state_dict()
        for epoch in range(1, (stop if isinstance(stop, int) else self.epochs) + 1):
            module.train()
            for rows in torch.randperm(len(y)).to(device).split(batch):
                optimizer.zero_grad(set_to_none=True)
                F.cross_entropy(module(x[rows]), y[rows]).backward()
                optimizer.step()
            if held_out is None:
                continue
            with torch.no_grad():
                loss = float(F.cross_entropy(module.eval()(held_out[0]), held_out[1]))
            if loss < best_loss:
                best, best_loss = epoch, loss
                best_state = {name: value.clone() for name, value in module.state_dict().items()}
            elif epoch - best >= self.patience:
                break
        if held_out is None:
            return epoch
        module.load_state_dict(best_state)
        return best


def mlp() -> Network:
    """Two hidden layers, tuned over their size, dropout and weight decay."""
    grid = [
        NetworkSetting(),
        NetworkSetting(hidden_channels=128, dropout=0.3, weight_decay=1e-3),
        NetworkSetting(hidden_channels=32, dropout=0.0, weight_decay=1e-2),
    ]
    return Network(_mlp, grid)


def untuned_mlp() -> Network:
    """The MLP with its first setting only, for the quick panel."""
    return Network(_mlp, mlp().grid[:1])


def bilinear() -> Network:
    """a' W b with a symmetric W, for rows that are the rows a and b of both nodes side by side."""
    return Network(lambda columns, *_: _Bilinear(columns // 2), [NetworkSetting(weight_decay=w) for w in (1e-4, 1e-2)])


def _mlp(columns: int, num_classes: int, setting: NetworkSetting) -> nn.Module:
    width = setting.hidden_channels
    return nn.Sequential(
        nn.Linear(columns, width),
        nn.ReLU(),
        nn.Dropout(setting.dropout),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Dropout(setting.dropout),
        nn.Linear(width, num_classes),
    )


class _Bilinear(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(columns) / columns)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, ends: Tensor) -> Tensor:
        a, b = ends.chunk(2, dim=1)
        logit = (a @ (self.weight + self.weight.T) * b).sum(dim=1) + self.bias
        return torch.stack([torch.zeros_like(logit), logit], dim=1)
