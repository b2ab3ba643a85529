"""A classifier that sees features only: what it says of a node says of links no more than features do."""

from torch import Tensor, nn

from graphveil.models.layers import Affine, Dropout, Features, Linear


class Student(nn.Module):
    """Two layers from features to classes, (n, classes) logits."""

    def __init__(self, in_channels: int, hidden_channels: int, num_classes: int, dropout: float = 0.5) -> None:
        super().__init__()
        self.drop_x, self.drop_h = Dropout(dropout), Dropout(dropout)
        self.first = Linear(in_channels, hidden_channels)
        self.second = Affine(hidden_channels, num_classes)

    def forward(self, x: Features) -> Tensor:
        logits: Tensor = self.second(self.drop_h.relu(self.first.shift(self.first(self.drop_x(x)))))
        return logits
