"""What a call of the program gives back."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


Program = Callable[..., Done]
