"""JSON that nobody vouches for: fields are checked as they are asked for, and what is missing is None."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

HUGE = 1e15
"""Beyond this no reading, count or coordinate lies, and drawing would overflow."""


@dataclass(frozen=True)
class Interval:
    """A value and the ends of its 95 % interval, which are the value itself where no interval is known."""

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Fields:
    """A JSON object; whatever is not of the kind that is asked for is a ValueError that names the place."""

    content: dict[str, Any]
    place: str

    @classmethod
    def of(cls, value: object, place: str) -> "Fields":
        if not isinstance(value, dict):
            raise _wrong(place, value, "an object")
        return cls(value, place)

    def text(self, name: str, choices: Sequence[str] = ()) -> str:
        """A text, empty where there is none; one of `choices` if there are any."""
        value = self.content.get(name)
        value = "" if value is None else value
        if not isinstance(value, str) or (choices and value not in choices):
            raise _wrong(self._of(name), value, f"one of {', '.join(map(repr, choices))}" if choices else "a text")
        return value

    def number(self, name: str) -> float | None:
        """A finite number; NaN and infinity count as missing."""
        return _number(self.content.get(name), self._of(name))

    def share(self, name: str) -> float | None:
        """A number from 0 to 1."""
        return _share(self.number(name), self._of(name))

    def reading(self, name: str) -> Interval | None:
        """A share with its interval, as {"value", "low", "high"} or as {"value", "ci"}."""
        return None if (inner := self.inner(name)) is None else inner.as_reading()

    def as_reading(self, any_number: bool = False) -> Interval | None:
        """This object itself as a reading; a difference may be any number."""
        value = self.number("value") if any_number else self.share("value")
        ends = self.numbers("ci") or [self.number("low"), self.number("high")]
        if len(ends) != 2:
            raise _wrong(self._of("ci"), self.content["ci"], "a list of two numbers")
        if value is None:
            return None
        low, high = ends
        if low is None or high is None:
            return Interval(value, value, value)
        return Interval(value, min(low, value), max(high, value))

    def inner(self, name: str) -> "Fields | None":
        """An object within."""
        value = self.content.get(name)
        return None if value is None else Fields.of(value, self._of(name))

    def objects(self, name: str) -> list["Fields"]:
        """A list of objects."""
        return [Fields.of(value, f"{self._of(name)}[{i}]") for i, value in enumerate(self.items(name))]

    def numbers(self, name: str) -> list[float | None]:
        """A list of numbers, some of which may be missing."""
        return [_number(value, f"{self._of(name)}[{i}]") for i, value in enumerate(self.items(name))]

    def shares(self, name: str) -> list[float | None]:
        """A list of shares, some of which may be missing."""
        return [_share(value, f"{self._of(name)}[{i}]") for i, value in enumerate(self.numbers(name))]

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        for i, value in enumerate(self.items(name)):
            if not isinstance(value, str):
                raise _wrong(f"{self._of(name)}[{i}]", value, "a text")
        return self.items(name)

    def items(self, name: str) -> list[Any]:
        """A list of anything, empty where there is none."""
        value = self.content.get(name)
        value = [] if value is None else value
        if not isinstance(value, list):
            raise _wrong(self._of(name), value, "a list")
        return value

    def _of(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name


def _number(value: object, place: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(place, value, "a number")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if abs(value) > HUGE:
        raise _wrong(place, value, f"a number below {HUGE:g}")
    return float(value)


def _share(value: float | None, place: str) -> float | None:
    if value is not None and not -1e-6 <= value <= 1 + 1e-6:
        raise _wrong(place, value, "a share from 0 to 1")
    return value


def _wrong(place: str, value: object, expected: str) -> ValueError:
    try:
        came = repr(value)
    except (ValueError, RecursionError):  # an integer of too many digits, a list of too many lists
        came = f"a {type(value).__name__}"
    came = came if len(came) <= 60 else f"{came[:57]}..."
    return ValueError(f"{place or 'its content'} is {came}, expected {expected}")
