"""The record of a certificate: of a class or of links."""

from graphveil.formats.audit import AuditRecord
from graphveil.formats.certificate import ClassCertificate, LinkCertificate
from graphveil.formats.store import parse
from tests.formats import made


def test_the_certificate_is_of_its_kind() -> None:
    for secret, kind in (("labels", ClassCertificate), ("links", LinkCertificate)):
        record = parse(made.audit() | {"certificate": made.certificate(secret)}, AuditRecord)
        assert isinstance(record.certificate, kind)
        assert record.certificate.secret == secret
        assert len(record.certificate.rows) > 5
