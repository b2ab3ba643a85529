"""Measure what any embedding reveals: attacks, controls, floors, certificates, intervals.

This package does not know how embeddings are made, so that embeddings from any method can be audited. The entry point
is `graphveil.audit`.
"""

from graphveil.auditing.attacks import Answers, Attack
from graphveil.auditing.context import Context, Utility
from graphveil.auditing.embeddings import read_embeddings
from graphveil.auditing.finding import Finding
from graphveil.auditing.panel import audit
from graphveil.auditing.result import Audit
from graphveil.auditing.secret import LinkSecret, NodeSecret, Queries
from graphveil.auditing.tasks import Effort
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
