"""Tell the truth about what any embedding leaks: fresh attackers, controls, floors, intervals.

Nothing here knows how embeddings are made, so that anybody's can be audited. `graphveil.audit(z, graph, split)` is the
way in, and `graphveil.audit` is this room too: it can be called.
"""

import sys
from types import ModuleType

from graphveil.audit.attacks import Answers, Attack
from graphveil.audit.embeddings import read_embeddings
from graphveil.audit.finding import Finding
from graphveil.audit.metrics import Estimate
from graphveil.audit.panel import Effort, audit
from graphveil.audit.result import Audit, Context, Flag, Utility
from graphveil.audit.secret import Asked, LinkSecret, NodeSecret

__all__ = [
    "Answers",
    "Asked",
    "Attack",
    "Audit",
    "Context",
    "Effort",
    "Estimate",
    "Finding",
    "Flag",
    "LinkSecret",
    "NodeSecret",
    "Utility",
    "audit",
    "read_embeddings",
]


class _Room(ModuleType):
    __call__ = staticmethod(audit)


sys.modules[__name__].__class__ = _Room
