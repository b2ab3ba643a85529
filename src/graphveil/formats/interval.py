"""A value with its 95 % interval."""

from graphveil.formats.record import Number, Record, Share


class Interval(Record, frozen=True):
    """A value and its 95 % confidence interval.

    Args:
        value: an accuracy, an AUC, a difference of two of them, or nats.
        ci: the lower and the upper limit; None if there is no interval, such as for a single seed.
    """

    value: Number
    ci: tuple[Number, Number] | None = None

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"

    @property
    def low(self) -> float:
        """The lower limit; without an interval, the value."""
        return self.value if self.ci is None else self.ci[0]

    @property
    def high(self) -> float:
        """The upper limit; without an interval, the value."""
        return self.value if self.ci is None else self.ci[1]

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def covers(self, value: float) -> bool:
        """Whether `value` lies in the interval."""
        return self.low <= value <= self.high


class ShareInterval(Interval, frozen=True):
    """An interval whose value is a share, from 0 to 1; its limits may lie outside."""

    value: Share
    ci: tuple[Number, Number] | None = None
