"""A classifier of features only: its predictions reveal no more about links than the features do."""

from torch import Tensor, nn

from graphveil.models.layers import Affine, Dropout, Features, Linear


class Student(nn.Module):
    """Two layers from features (n, in_channels) to logits (n, classes).

    Args:
        in_channels: The number of features.
        hidden_channels: The hidden width.
        num_classes: The number of classes.
        dropout: The dropout of features and hidden units.
    """

    def __init__(self, in_channels: int, hidden_channels: int, num_classes: int, dropout: float = 0.5) -> None:
        super().__init__()
        self.drop_x, self.drop_h = Dropout(dropout), Dropout(dropout)
        self.first = Linear(in_channels, hidden_channels)
        self.second = Affine(hidden_channels, num_classes)

    def forward(self, x: Features) -> Tensor:
        logits: Tensor = self.second(self.drop_h.relu(self.first(self.drop_x(x)), self.first.bias))
        return logits
