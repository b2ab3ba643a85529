"""Measure what any embedding leaks: fresh attackers, controls, floors, intervals.

Nothing here knows how embeddings are made, so that anybody's can be audited. The entry point is `graphveil.audit`.
"""

from graphveil.auditing.attacks import Answers, Attack
from graphveil.auditing.embeddings import read_embeddings
from graphveil.auditing.finding import Finding
from graphveil.auditing.panel import Effort, audit
from graphveil.auditing.result import Audit, Context, Utility
from graphveil.auditing.secret import LinkSecret, NodeSecret, Queries
from graphveil.formats import Interval
from graphveil.formats.audit import Flag

__all__ = [
    "Answers",
    "Attack",
    "Audit",
    "Context",
    "Effort",
    "Finding",
    "Flag",
    "Interval",
    "LinkSecret",
    "NodeSecret",
    "Queries",
    "Utility",
    "audit",
    "read_embeddings",
]
