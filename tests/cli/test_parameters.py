"""Options that several verbs share are declared once, and appear in the signature of each verb."""

import inspect
from typing import Any

from graphveil.cli.parameters import with_parameters


def verb(graph: str, reading: dict[str, Any], seed: int = 3) -> None:
    """Do something."""


def test_a_verb_gets_further_parameters_and_loses_replaced_ones() -> None:
    called: dict[str, Any] = {}
    run = with_parameters(verb, lambda **given: called.update(given), {"quiet": (bool, False)}, replaced=["reading"])
    found = inspect.signature(run).parameters
    assert {name: one.default for name, one in found.items()} == {"graph": inspect._empty, "seed": 3, "quiet": False}
    assert {name: one.annotation for name, one in found.items()} == {"graph": str, "seed": int, "quiet": bool}
    assert (run.__name__, run.__doc__) == ("verb", "Do something.")
    run(graph="town", quiet=True)
    assert called == {"graph": "town", "quiet": True}
    assert list(inspect.signature(verb).parameters) == ["graph", "reading", "seed"], "the verb itself is unchanged"
