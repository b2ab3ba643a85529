"""graphveil: node embeddings that are useful for one task and hide another, and an audit of what still leaks."""

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
    from graphveil.experiments.sweep import sweep
    from graphveil.experiments.tune import Tuned, tune
    from graphveil.release.export import Release, export
    from graphveil.reporting import report
    from graphveil.runs.embed import Embedded, embed
    from graphveil.runs.protect import Run
    from graphveil.runs.verbs import protect
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
    "protect": "graphveil.runs.verbs",
    "Run": "graphveil.runs.protect",
    "embed": "graphveil.runs.embed",
    "Embedded": "graphveil.runs.embed",
    "export": "graphveil.release.export",
    "Release": "graphveil.release.export",
    "sweep": "graphveil.experiments.sweep",
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
    "Embedded",
    "Finding",
    "GraphSpec",
    "GraphveilError",
    "LeakError",
    "ReadOptions",
    "Recipe",
    "Release",
    "Run",
    "Score",
    "Search",
    "Split",
    "Tuned",
    "Veil",
    "audit",
    "certify",
    "embed",
    "export",
    "fit_together",
    "generate",
    "load",
    "protect",
    "read_graph",
    "report",
    "sweep",
    "tune",
]


def __getattr__(name: str) -> "Any":
    """Import torch and PyG only when something that needs them is asked for."""
    import importlib  # noqa: PLC0415

    if name not in _HOMES:
        raise AttributeError(f"module 'graphveil' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
