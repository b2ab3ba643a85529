"""A grid that continuous embeddings are rounded to before a release."""

import torch
from torch import Tensor, nn

STEPS = 16
"""The fewest grid steps per standard deviation of a column; values within four deviations then have 7 to 8 bits."""


SMALLEST = 2.0**-120
"""A smaller deviation counts as 0, since float32 has no grid for it."""


class Grid(nn.Module):
    """Rounds each column to multiples of its step, a power of two.

    Of the 24 bits of a float32, a few are enough for the utility. The others can be a hidden channel, which no attack
    would examine.

    Args:
        channels: The number of columns.
    """

    steps: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("steps", torch.ones(channels))

    @classmethod
    def of(cls, z: Tensor) -> "Grid":
        """Build with steps from the deviations of embeddings (n, channels); a constant column has a step of 1."""
        grid, deviation = cls(z.size(-1)), z.double().std(dim=0, correction=0)
        steps = torch.exp2((deviation / STEPS).log2().floor().clamp(-126, 127))
        grid.steps = steps.where(deviation > SMALLEST, 1.0).float()
        return grid

    def forward(self, z: Tensor) -> Tensor:
        rounded: Tensor = (z / self.steps).round() * self.steps
        return rounded + 0.0  # +0.0, since the sign of a zero is a hidden bit
