"""The base classes of all records, and the numbers that they hold.

Every number is finite and has a range, so that no later computation or drawing overflows. JSON has neither NaN nor
infinity; a number that may be missing is `None`.
"""

import json
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta, Struct, to_builtins

Number = Annotated[float, Meta(ge=-1e15, le=1e15)]
Share = Annotated[float, Meta(ge=-1e-6, le=1 + 1e-6)]
"""A number from 0 to 1, with room for rounding errors."""
Count = Annotated[int, Meta(ge=0, le=10**15)]
Text = Annotated[str, Meta(min_length=1)]
"""A text that is not empty."""


class Record(Struct, frozen=True):
    """An object within a file."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, as they stand in the file."""
        plain: dict[str, Any] = json.loads(json.dumps(to_builtins(self, enc_hook=_item)))  # tuples become lists
        return plain


class File(Record, frozen=True):
    """A whole file; `SCHEMA` is its name and version."""

    SCHEMA: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, as they stand in the file, with the schema."""
        return {"schema": self.SCHEMA, **super().to_dict()}


def _item(value: object) -> Any:
    """A NumPy scalar as a plain number."""
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"a {type(value).__name__} cannot be written as JSON")
