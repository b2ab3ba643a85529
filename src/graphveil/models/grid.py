"""A grid for continuous embeddings: what lies below it is not released."""

import torch
from torch import Tensor, nn

STEPS = 16
"""Steps to a column's deviation, at the least; four deviations to either side then take 7 to 8 bits."""


SMALLEST = 2.0**-120
"""A deviation below this is none: float32 has no steps for it."""


class Grid(nn.Module):
    """Rounds each column to whole multiples of its step, a power of two.

    A float32 has 24 bits, of which a use needs a few. In the others a secret can hide where no attack would look.
    """

    steps: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("steps", torch.ones(channels))

    @classmethod
    def of(cls, z: Tensor) -> "Grid":
        """With steps from the deviations of embeddings, (n, channels); a column that never changes has steps of 1."""
        grid, deviation = cls(z.size(-1)), z.double().std(dim=0, correction=0)
        steps = torch.exp2((deviation / STEPS).log2().floor().clamp(-126, 127))
        grid.steps = steps.where(deviation > SMALLEST, 1.0).float()
        return grid

    def forward(self, z: Tensor) -> Tensor:
        rounded: Tensor = (z / self.steps).round() * self.steps
        return rounded + 0.0  # the sign of a zero is a bit too
