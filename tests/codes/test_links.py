"""The certificate of links by hand, and what its sentence states."""

import numpy as np
import pytest

from graphveil.codes import link_certificate
from tests.codes.made import random_release


def test_link_certificate_by_hand() -> None:
    """Codes 0, 0, 1, 1 and links 0-1, 1-2: pairs {0, 0}: 1 of 1, {0, 1}: 1 of 4, {1, 1}: 0 of 1."""
    certificate = link_certificate(np.array([0, 0, 1, 1]), np.array([[0, 1], [1, 2]]))
    assert (certificate.nodes, certificate.links, certificate.nonlinks, certificate.codes) == (4, 2, 4, 2)
    assert certificate.auc == pytest.approx((4 + (1 + 3 / 2)) / (2 * 4))
    assert certificate.information == pytest.approx((np.log(0.5 / (1 / 6)) + np.log(0.5 / (4 / 6))) / 2)
    assert certificate.class_matched_auc is None
    assert certificate.calibration is None  # two links are too few


def test_many_links_are_sampled_as_the_sentence_states(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, _, links = random_release(4, num_nodes=150)
    full = link_certificate(codes, links)
    monkeypatch.setattr("graphveil.codes.link_auc.MAX_RESAMPLED_LINKS", 1500)
    sampled = link_certificate(codes, links)
    assert full.calibration is not None
    assert sampled.calibration is not None
    assert sampled.calibration.resampled_links == 1500
    assert sampled.calibration.auc == full.calibration.auc == full.auc
    assert sampled.calibration.auc_limit == pytest.approx(full.calibration.auc_limit, abs=0.02)
    assert "resampled with 1,500 links" in sampled.sentence
    assert "resampled" not in full.sentence
