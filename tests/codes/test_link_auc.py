"""The AUC of the best attack on links against brute force, and the coverage of its limit."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from graphveil.codes import link_certificate
from tests.codes.made import all_pairs, brute_auc, pair_ids, random_links, random_release


@pytest.mark.parametrize("seed", range(10))
def test_the_link_auc_is_that_of_the_best_score_over_all_pairs(seed: int) -> None:
    codes, y, links = random_release(seed)
    y[:2] = -1
    pairs, linked = all_pairs(len(codes), links)
    code_pair = pair_ids(codes, codes, pairs)
    certificate = link_certificate(codes, links, y)
    assert certificate.auc == pytest.approx(brute_auc(code_pair, linked, np.ones(len(linked))), abs=1e-12)
    random = np.random.default_rng(seed)
    for _ in range(20):  # no other score of two codes is better
        assert roc_auc_score(linked, random.random(code_pair.max() + 1)[code_pair]) <= certificate.auc + 1e-12

    known = (y[pairs] >= 0).all(axis=0)
    pairs, linked, code_pair = pairs[:, known], linked[known], code_pair[known]
    class_pair = pair_ids(y, y, pairs)
    share = np.array([linked[class_pair == k].sum() / max(1, (~linked[class_pair == k]).sum()) for k in range(20)])
    weights = np.where(linked, 1.0, share[class_pair])
    assert certificate.class_matched_auc == pytest.approx(brute_auc(code_pair, linked, weights), abs=1e-12)
    both = codes * 3 + y
    within = brute_auc(pair_ids(both, both, pairs), linked, weights)
    assert certificate.within_class_auc == pytest.approx(within, abs=1e-12)
    assert certificate.class_matched_auc is not None
    assert within >= certificate.class_matched_auc


def test_codes_that_are_the_classes_reveal_nothing_beyond_them() -> None:
    _, y, links = random_release(3)
    certificate = link_certificate(y, links, y)
    assert certificate.class_matched_auc == pytest.approx(0.5)
    assert certificate.within_class_auc == pytest.approx(0.5)
    assert certificate.auc > 0.5


def test_the_auc_by_chance_is_that_of_unrelated_codes() -> None:
    random = np.random.default_rng(0)
    links = random_links(random, 120, 0.03)
    aucs = [link_certificate(random.integers(0, 12, 120), links[:, :]).auc for _ in range(30)]
    certificate = link_certificate(np.repeat(np.arange(12), 10), links)
    assert certificate.auc_by_chance == pytest.approx(np.mean(aucs), abs=0.02)
    assert certificate.auc_by_chance > 0.6


@pytest.mark.parametrize(("num_nodes", "calibrated"), [(80, 1.0), (150, 0.3)])
def test_coverage_of_the_link_limit(num_nodes: int, calibrated: float) -> None:
    """Nodes draw a code, and pairs a link with a probability by their codes; the true best AUC is known."""
    random = np.random.default_rng(3)
    share = np.array([0.5, 0.3, 0.2])
    rate = np.array([[0.3, 0.05, 0.1], [0.05, 0.2, 0.02], [0.1, 0.02, 0.15]])
    law = np.outer(share, share)
    truth = brute_auc(
        np.tile(np.arange(9), 2),
        np.repeat([True, False], 9),
        np.concatenate([(law * rate).ravel(), (law * (1 - rate)).ravel()]),
    )
    held = []
    for _ in range(100):
        codes = random.choice(3, num_nodes, p=share)
        pairs = np.stack(np.triu_indices(num_nodes, 1))
        pairs = pairs[:, random.random(pairs.shape[1]) < rate[codes[pairs[0]], codes[pairs[1]]]]
        chosen = np.flatnonzero(random.random(pairs.shape[1]) < calibrated)
        result = link_certificate(codes, pairs, calibration=chosen).calibration
        assert result is not None
        held.append(result.auc_limit >= truth)
    assert np.mean(held) >= 0.93
