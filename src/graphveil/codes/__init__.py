"""Discrete releases: count tables, certificates of what codes reveal, and merging of codes.

A certificate is the best possible attack on codes, computed from counts. `class_certificate` is for a class of the
nodes and `link_certificate` for their links. `joint` combines the codes of two releases into one code, whose
certificate covers both. `NOT_COVERED` lists what no certificate covers.
"""

from graphveil.codes.classes import class_certificate
from graphveil.codes.links import link_certificate
from graphveil.codes.merge import ClassCounts, LinkCounts, Merging, merge
from graphveil.codes.tables import class_table, code_sizes, distinct_codes, joint, link_table, pair_table
from graphveil.codes.words import NOT_COVERED
from graphveil.formats.certificate import Certificate, ClassCertificate, LinkCertificate

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
