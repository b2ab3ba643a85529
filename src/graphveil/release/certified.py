"""The values of a certificate that a release states.

The card names neither the worst code nor its class, because this would show attackers which nodes to attack.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from graphveil.formats.certificate import Certificate, ClassCertificate, LinkCertificate
from graphveil.target import CHANCE_AUC


@dataclass(frozen=True)
class Bound:
    """The value of the best possible attack that sees only codes.

    Args:
        name: what is bounded, such as "accuracy".
        value: the exact value of the best attack on this release.
        chance: the chance level.
        beyond: the upper bound for other nodes, or None.
        limited: whether `--max-leak` applies to it.
    """

    name: str
    value: float
    chance: float
    beyond: float | None = None
    limited: bool = False


@dataclass(frozen=True)
class Certified:
    """What codes can reveal about one secret.

    Args:
        sentence: the certificate in words.
        bounds: the headline first.
        secret: the name of the secret.
        confidence: the confidence of the bounds for other nodes.
        codes: the number of codes in use.
        smallest_code: the number of nodes with the rarest code.
        bits: the information that the code of a node can reveal about any secret, in bits.
    """

    secret: str
    sentence: str
    bounds: Sequence[Bound]
    confidence: float
    codes: int
    smallest_code: int
    bits: float

    def above(self, limit: float) -> list[Bound]:
        """The bounds that `--max-leak` applies to and that are above it."""
        return [bound for bound in self.bounds if bound.limited and bound.value > limit]


def certified(certificate: Certificate) -> Certified:
    """The values of a certificate that the card states."""
    return Certified(
        secret=certificate.secret,
        sentence=certificate.sentence,
        bounds=_link_bounds(certificate) if isinstance(certificate, LinkCertificate) else _class_bounds(certificate),
        confidence=certificate.confidence,
        codes=certificate.codes,
        smallest_code=certificate.smallest_code,
        bits=certificate.bits_per_node,
    )


def _class_bounds(one: ClassCertificate) -> list[Bound]:
    limits = (
        (None, None) if one.calibration is None else (one.calibration.accuracy_limit, one.calibration.balanced_limit)
    )
    return [
        Bound("accuracy", one.accuracy, one.majority, limits[0], limited=True),
        Bound("balanced accuracy", one.balanced_accuracy, one.balanced_guessing, limits[1], limited=True),
        *(
            Bound(f"accuracy among the nodes with {stratum.column} {stratum.value}", stratum.accuracy, stratum.majority)
            for stratum in one.strata
        ),
        Bound("accuracy among the nodes with one code (worst code)", one.worst.share, one.majority),
    ]


def _link_bounds(one: LinkCertificate) -> list[Bound]:
    limit = None if one.calibration is None else one.calibration.auc_limit
    bounds = [Bound("AUC", one.auc, CHANCE_AUC, limit, limited=True)]
    if one.class_matched_auc is not None:
        bounds.append(Bound("class-matched AUC", one.class_matched_auc, CHANCE_AUC, limited=True))
    if one.within_class_auc is not None:
        bounds.append(Bound("class-matched AUC for attackers who know the classes", one.within_class_auc, CHANCE_AUC))
    return bounds
