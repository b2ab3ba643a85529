"""Discrete releases: count tables, certificates of what codes reveal, and merging of codes."""

from graphveil.codes.certificate import (
    NOT_COVERED,
    Certificate,
    ClassCertificate,
    LinkCertificate,
    class_certificate,
    joint,
    link_certificate,
)
from graphveil.codes.merge import ClassCounts, LinkCounts, Merging, merge
from graphveil.codes.tables import class_table, code_sizes, distinct_codes, link_table, pair_table

__all__ = [
    "NOT_COVERED",
    "Certificate",
    "ClassCertificate",
    "ClassCounts",
    "LinkCertificate",
    "LinkCounts",
    "Merging",
    "class_certificate",
    "class_table",
    "code_sizes",
    "distinct_codes",
    "joint",
    "link_certificate",
    "link_table",
    "merge",
    "pair_table",
]
