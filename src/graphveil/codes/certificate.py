"""Certificates of a discrete release: the best possible attack on its codes, computed from counts.

`class_certificate` is for a class of the nodes and `link_certificate` for their links. `joint` combines the codes of
two releases into one code, whose certificate covers both. `NOT_COVERED` lists what no certificate covers.
"""

from graphveil.codes.classes import class_certificate
from graphveil.codes.links import link_certificate
from graphveil.codes.tables import joint
from graphveil.codes.words import NOT_COVERED
from graphveil.formats.certificate import (
    Certificate,
    ClassCalibration,
    ClassCertificate,
    LinkCalibration,
    LinkCertificate,
    Stratum,
    WorstCode,
)

__all__ = [
    "NOT_COVERED",
    "Certificate",
    "ClassCalibration",
    "ClassCertificate",
    "LinkCalibration",
    "LinkCertificate",
    "Stratum",
    "WorstCode",
    "class_certificate",
    "joint",
    "link_certificate",
]
