"""graphveil: node embeddings that keep one task and hide another, and an account of what still leaks."""

import os
import sys

# GNU OpenMP reads this when torch is imported. Without it, threads spin so long while they wait that a run was 15 times
# slower on a machine with other work.
THREADS_SPIN = "torch" in sys.modules and not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & set(os.environ)
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

TYPE_CHECKING = False  # as in typing, whose import would be the longest time before Ctrl-C is answered
if TYPE_CHECKING:
    from typing import Any

    from graphveil.auditing import Audit, Finding, audit
    from graphveil.auditing.certify import certify
    from graphveil.data import GraphSpec, ReadOptions, Split, generate, load, read_graph
    from graphveil.errors import DivergedError, GraphveilError, LeakError
    from graphveil.experiments.candidates import Search
    from graphveil.experiments.tune import Tuned, tune
    from graphveil.reporting import report
    from graphveil.training.recipes import Adversary, Recipe
    from graphveil.training.score import Score
    from graphveil.veil import Veil, fit_together

__version__ = "0.1.0"

_HOMES = {
    "audit": "graphveil.auditing",
    "Audit": "graphveil.auditing",
    "Finding": "graphveil.auditing",
    "certify": "graphveil.auditing.certify",
    "report": "graphveil.reporting",
    "tune": "graphveil.experiments.tune",
    "Tuned": "graphveil.experiments.tune",
    "Search": "graphveil.experiments.candidates",
    "load": "graphveil.data",
    "generate": "graphveil.data",
    "GraphSpec": "graphveil.data",
    "Split": "graphveil.data",
    "ReadOptions": "graphveil.data",
    "read_graph": "graphveil.data",
    "Veil": "graphveil.veil",
    "fit_together": "graphveil.veil",
    "Score": "graphveil.training.score",
    "Adversary": "graphveil.training.recipes",
    "Recipe": "graphveil.training.recipes",
    "GraphveilError": "graphveil.errors",
    "LeakError": "graphveil.errors",
    "DivergedError": "graphveil.errors",
}

__all__ = [
    "Adversary",
    "Audit",
    "DivergedError",
    "Finding",
    "GraphSpec",
    "GraphveilError",
    "LeakError",
    "ReadOptions",
    "Recipe",
    "Score",
    "Search",
    "Split",
    "Tuned",
    "Veil",
    "audit",
    "certify",
    "fit_together",
    "generate",
    "load",
    "read_graph",
    "report",
    "tune",
]


def __getattr__(name: str) -> "Any":
    """Import torch and PyG only when something that needs them is asked for."""
    import importlib  # noqa: PLC0415

    if name not in _HOMES:
        raise AttributeError(f"module 'graphveil' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
