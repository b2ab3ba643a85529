"""The values of a certificate that a release states, from the plain form in which an audit stores it.

The card names neither the worst code nor its class, because this would show attackers which nodes to attack.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from graphveil.reporting.checks import Fields


@dataclass(frozen=True)
class Bound:
    """The value of the best possible attack that sees only codes.

    Args:
        name: what is bounded, such as "accuracy".
        value: the exact value of the best attack on this release.
        guessing: the chance level.
        beyond: the upper bound for nodes like these, or None.
        limited: whether `--max-leak` applies to it.
    """

    name: str
    value: float
    guessing: float
    beyond: float | None = None
    limited: bool = False


@dataclass(frozen=True)
class Certified:
    """What codes can reveal about one secret.

    Args:
        sentence: the certificate in words.
        bounds: the headline first.
        secret: the name of the secret.
        confidence: the confidence of the bounds for nodes like these.
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


def read_certificate(fields: Fields, secret: str) -> Certified:
    """Read the plain form of a certificate, with its sentence.

    Raises:
        ValueError: says what is wrong with the content.
    """
    if fields.text("secret") != secret:
        raise ValueError(f"{fields.place} is for {fields.text('secret')[:80]!r}")
    sentence = fields.text("sentence")
    if not sentence:
        raise ValueError(f"{fields.place}.sentence is missing")
    return Certified(
        secret=secret,
        sentence=sentence,
        bounds=_link_bounds(fields) if secret == "links" else _class_bounds(fields),
        confidence=_share(fields, "confidence"),
        codes=_count(fields, "codes"),
        smallest_code=_count(fields, "smallest_code"),
        bits=_number(fields, "bits_per_node"),
    )


def _class_bounds(fields: Fields) -> list[Bound]:
    calibration = fields.inner("calibration")
    worst = fields.inner("worst") or Fields({}, f"{fields.place}.worst")
    majority = _share(fields, "majority")
    return [
        Bound("accuracy", _share(fields, "accuracy"), majority, _limit(calibration, "accuracy_limit"), limited=True),
        Bound(
            "balanced accuracy",
            _share(fields, "balanced_accuracy"),
            _share(fields, "balanced_guessing"),
            _limit(calibration, "balanced_limit"),
            limited=True,
        ),
        *(
            Bound(
                f"accuracy among the nodes with {stratum.text('column')} {_count(stratum, 'value')}",
                _share(stratum, "accuracy"),
                _share(stratum, "majority"),
            )
            for stratum in fields.objects("strata")
        ),
        Bound("accuracy among the nodes with one code (worst code)", _share(worst, "share"), majority),
    ]


def _link_bounds(fields: Fields) -> list[Bound]:
    bounds = [Bound("AUC", _share(fields, "auc"), 0.5, _limit(fields.inner("calibration"), "auc_limit"), limited=True)]
    if (matched := fields.share("class_matched_auc")) is not None:
        bounds.append(Bound("class-matched AUC", matched, 0.5, limited=True))
    if (within := fields.share("within_class_auc")) is not None:
        bounds.append(Bound("class-matched AUC for attackers who know the classes", within, 0.5))
    return bounds


def _limit(calibration: Fields | None, name: str) -> float | None:
    return None if calibration is None else _share(calibration, name)


def _number(fields: Fields, name: str) -> float:
    if (value := fields.number(name)) is None:
        raise ValueError(f"{fields.place}.{name} is missing")
    return value


def _share(fields: Fields, name: str) -> float:
    _number(fields, name)
    value = fields.share(name)
    assert value is not None
    return value


def _count(fields: Fields, name: str) -> int:
    return int(_number(fields, name))
