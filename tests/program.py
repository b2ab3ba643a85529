"""The type of the fixture that calls the program, and what a call gives back."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


CommandLine = Callable[..., Done]
