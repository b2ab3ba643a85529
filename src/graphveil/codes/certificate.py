"""Certificates of a discrete release: what anybody can learn from its codes, counted and not attacked.

`class_certificate` is for a class of the nodes and `link_certificate` for their links. `joint` makes one code of the
codes of two releases, so that the certificate of the joint code covers both. `NOT_COVERED` says what no certificate
covers.
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
