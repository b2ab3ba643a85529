"""Certificates against brute force, and the coverage of their statements about other nodes."""

import json

import numpy as np
import pytest

from graphveil.codes import NOT_COVERED, LinkCertificate, class_certificate, joint, link_certificate
from graphveil.codes.measures import accuracy_limit, balanced_limit
from graphveil.errors import GraphveilError
from tests.codes.made import CODES, Y, random_release


def test_sentences() -> None:
    calibrated = class_certificate(CODES, Y, calibration=np.arange(10), secret="labels")
    assert calibrated.sentence.startswith(
        "An attacker who sees only the released codes, with any method, predicts the label of at most 70.0 % of these"
        " 10 nodes correctly; the chance level is 50.0 %. For nodes like these, with 95 % confidence, the share is at"
        " most 91.3 %"
    )
    assert dict(calibrated.rows)["worst code"].startswith(
        "75.0 % of the 4 known nodes with code 0 have labels = class 0."
    )
    named = class_certificate(CODES, Y, secret="gender", names=["f", "m"])
    assert dict(named.rows)["worst code"].startswith("75.0 % of the 4 known nodes with code 0 have gender = f.")
    assert "no calibration nodes" in class_certificate(CODES, Y).sentence
    assert len(NOT_COVERED) == 7


def test_a_limit_in_a_sentence_is_rounded_up() -> None:
    certificate = class_certificate(np.zeros(3, dtype=np.int64), np.array([0, 1, 1]))
    assert certificate.accuracy == pytest.approx(2 / 3)
    assert "at most 66.7 % of these 3" in certificate.sentence
    assert "at most 33.4 %" in class_certificate(np.zeros(3, dtype=np.int64), np.array([0, 1, 2])).sentence


def test_limits_by_hand() -> None:
    table = np.array([[8, 2], [1, 9]])  # 17 of 20, of 9 and 11
    below = sum(_binomial(20, k, accuracy_limit(table)) for k in range(18))
    assert below == pytest.approx(0.05, abs=1e-9)
    margin = np.sqrt(np.log(20) / 2 * (1 / 9 + 1 / 11)) / 2
    assert balanced_limit(table) == pytest.approx(min(1, (8 / 9 + 9 / 11) / 2 + margin))
    large = 1000 * np.array([[8, 2, 0], [1, 9, 0]])  # no node of the third class: its recall may be 1
    margin = np.sqrt(np.log(20) / 2 * (1 / 9000 + 1 / 11000)) / 3
    assert balanced_limit(large) == pytest.approx((8 / 9 + 9 / 11 + 1) / 3 + margin)
    assert accuracy_limit(np.array([[5, 0]])) == 1.0


# ----- links ----------------------------------------------------------------------------------------------------------


# ----- both -----------------------------------------------------------------------------------------------------------


def test_certificates_are_json_and_deterministic() -> None:
    codes, y, links = random_release(5)
    calibration = np.arange(20)
    for certificate in (
        class_certificate(codes, y, calibration, {"half": (np.arange(40) >= 20).astype(np.int64)}),
        link_certificate(codes, links, y, calibration),
    ):
        assert json.loads(json.dumps(certificate.to_dict(), allow_nan=False)) == certificate.to_dict()
        assert certificate.calibration is not None
        assert all(name and sentence.endswith(".") for name, sentence in certificate.rows)
        assert certificate == (
            link_certificate(codes, links, y, calibration)
            if isinstance(certificate, LinkCertificate)
            else class_certificate(codes, y, calibration, {"half": (np.arange(40) >= 20).astype(np.int64)})
        )


def test_the_joint_code_of_two_releases() -> None:
    """The second code is the first XOR the class: both together reveal the class, and neither does alone."""
    first, y = np.tile([0, 1], 20), np.tile([0, 0, 1, 1], 10)
    second = first ^ y
    assert class_certificate(first, y).accuracy == class_certificate(second, y).accuracy == 0.5
    assert class_certificate(joint(first, second), y).accuracy == 1.0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: class_certificate(CODES, np.full(10, -1), secret="age"), "'age' is known for none of the 10 nodes"),
        (lambda: class_certificate(CODES, Y[:4]), "one of each per node"),
        (lambda: class_certificate(CODES, Y, strata={"a": Y[:4]}), "column 'a' has shape"),
        (lambda: class_certificate(CODES + 10**7, Y), "cells: release fewer codes"),
        (lambda: link_certificate(CODES, np.zeros((2, 0), dtype=np.int64)), "at least one link"),
        (lambda: link_certificate(CODES, np.array([[1], [0]])), "u < v"),
        (lambda: link_certificate(CODES, np.array([[0], [10]])), "nodes 0 to 9"),
        (lambda: link_certificate(CODES, np.array([[0, 0], [1, 1]])), "1 links occur twice"),
        (lambda: link_certificate(CODES[:2], np.array([[0], [1]])), "all pairs of nodes are linked"),
    ],
)
def test_what_has_no_certificate_raises_an_error(call: "object", sentence: str) -> None:
    assert callable(call)
    with pytest.raises(GraphveilError, match=sentence):
        call()


def _binomial(count: int, hits: int, share: float) -> float:
    from math import comb

    return comb(count, hits) * share**hits * (1 - share) ** (count - hits)
