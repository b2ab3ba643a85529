"""Players (modules with their optimisers), and named streams of random numbers."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from graphveil.models.layers import Dropout, Features
from graphveil.models.sparse import Adjacency
from graphveil.models.stack import is_batched
from graphveil.processes import ALONE, Processes
from graphveil.randomness import Noise, stream


class Streams:
    """Random numbers of a batch of runs by name and step; `clock` holds the present step.

    Args:
        seeds: The seeds of the runs.
        steps: The number of steps.
        device: The device.
        processes: The processes that share the examples of each step.
    """

    def __init__(self, seeds: Sequence[int], steps: int, device: torch.device, processes: Processes = ALONE) -> None:
        self.seeds, self.steps, self.processes = list(seeds), steps, processes
        self.clock = torch.zeros(1, dtype=torch.long, device=device)

    def __call__(self, name: str) -> Noise:
        """Return the random numbers called `name`."""
        return Noise(self.seeds, name, self.steps, self.clock)

    def reseed(self, name: str) -> None:
        """Seed torch's global generator for this step; custom modules draw from it."""
        torch.manual_seed(stream(self.seeds[0], name, int(self.clock)))


class Player:
    """A module with its optimiser; its dropout draws from streams named after the player.

    If several processes share the examples, gradients are summed over them, and each has its own dropout.

    Args:
        name: The name of the player.
        module: The module.
        streams: The random numbers of the training.
        lr: The learning rate.
        clip: The largest gradient norm.
        weight_decay: The weight decay.
    """

    def __init__(
        self, name: str, module: nn.Module, streams: Streams, lr: float, clip: float, weight_decay: float = 0.0
    ) -> None:
        self.name, self.module, self.runs, self.clip = name, module, len(streams.seeds), clip
        self._processes = streams.processes
        of_process = "" if self._processes.is_first else f"process-{self._processes.rank}/"
        self.parameters = list(module.parameters())
        on_gpu = any(parameter.is_cuda for parameter in self.parameters)
        self.optimizer: torch.optim.Optimizer = torch.optim.Adam(
            self.parameters, lr=lr, weight_decay=weight_decay, fused=True, capturable=on_gpu
        )
        for place, part in module.named_modules():
            if isinstance(part, Dropout):
                part.noise = streams(f"{of_process}{name}/{place}")

    @property
    def is_batched(self) -> bool:
        """Whether the module draws only from its streams and works on a batch of runs."""
        return is_batched(self.module)

    def step(self) -> Tensor:
        """Clip the gradient of each run, step, and clear the gradients; returns the norms before clipping, (runs,)."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        self._processes.add(gradients)
        norms = [torch.linalg.vector_norm(gradient.reshape(self.runs, -1), dim=1) for gradient in gradients]
        norm: Tensor = torch.linalg.vector_norm(torch.stack(norms), dim=0)
        shrink = (self.clip / (norm + 1e-6)).clamp_(max=1)
        for gradient in gradients:
            gradient.mul_(shrink.view(-1, *[1] * (gradient.dim() - 1)) if self.runs > 1 else shrink.squeeze())
        self.optimizer.step()
        self.optimizer.zero_grad()
        return norm


def embed(encoder: nn.Module, x: Features, adjacency: Adjacency) -> Tensor:
    """Return z of an encoder, without gradients and without dropout."""
    encoder.eval()
    with torch.no_grad():
        z: Tensor = encoder(x, adjacency)
    encoder.train()
    return z
