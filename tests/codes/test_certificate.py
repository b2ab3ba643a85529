"""Certificates against brute force, and the coverage of their statements about other nodes."""

import json
from itertools import product

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score, roc_auc_score

from graphveil.codes.certificate import NOT_COVERED, LinkCertificate, class_certificate, joint, link_certificate
from graphveil.codes.measures import accuracy_limit, balanced_limit
from graphveil.codes.tables import Floats, Integers
from graphveil.errors import GraphveilError
from tests.codes.made import random_links, random_release

CODES = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
Y = np.array([0, 0, 0, 1, 1, 1, 0, 1, 0, 1])


def test_class_certificate_by_hand() -> None:
    """Codes by classes: (3, 1), (1, 2), (1, 2)."""
    certificate = class_certificate(CODES, Y, strata={"half": np.array([0] * 5 + [1] * 5)}, secret="labels")
    assert (
        certificate.nodes,
        certificate.known,
        certificate.codes,
        certificate.classes,
        certificate.smallest_code,
    ) == (10, 10, 3, 2, 3)
    assert certificate.majority == 0.5
    assert certificate.accuracy == 0.7
    assert certificate.balanced_accuracy == pytest.approx((3 / 5 + 2 / 5 + 2 / 5) / 2)
    assert certificate.maximal_leakage == pytest.approx(np.log(7 / 5))
    assert certificate.information == pytest.approx(mutual_info_score(CODES, Y), abs=1e-12)
    assert certificate.entropy == pytest.approx(np.log(2))
    assert certificate.bits_per_node == pytest.approx(np.log2(3))
    assert (
        certificate.worst.code,
        certificate.worst.likely_class,
        certificate.worst.share,
        certificate.worst.nodes,
    ) == (0, 0, 0.75, 4)
    assert certificate.calibration is None
    low, high = certificate.strata  # (3, 1), (0, 1) and (1, 1), (1, 2)
    assert (low.nodes, low.share, low.majority, low.accuracy) == (5, 0.5, 0.6, 0.8)
    assert (high.nodes, high.share, high.majority, high.accuracy) == (5, 0.5, 0.6, 0.6)


def test_sentences() -> None:
    calibrated = class_certificate(CODES, Y, calibration=np.arange(10), secret="labels")
    assert calibrated.sentence.startswith(
        "An attacker who sees only the released codes, with any method, predicts the label of at most 70.0 % of these"
        " 10 nodes correctly; the chance level is 50.0 %. For nodes like these, with 95 % confidence, the share is at"
        " most 91.3 %"
    )
    assert dict(calibrated.rows)["worst code"].startswith("75.0 % of the 4 nodes with code 0 are of class 0.")
    assert "no calibration nodes" in class_certificate(CODES, Y).sentence
    assert len(NOT_COVERED) == 7


def test_a_limit_in_a_sentence_is_rounded_up() -> None:
    certificate = class_certificate(np.zeros(3, dtype=np.int64), np.array([0, 1, 1]))
    assert certificate.accuracy == pytest.approx(2 / 3)
    assert "at most 66.7 % of these 3" in certificate.sentence
    assert "at most 33.4 %" in class_certificate(np.zeros(3, dtype=np.int64), np.array([0, 1, 2])).sentence


@pytest.mark.parametrize("seed", range(10))
def test_no_rule_from_code_to_class_beats_the_best_accuracy(seed: int) -> None:
    codes, y, _ = random_release(seed, num_nodes=25, num_codes=4)
    y[:3] = -1
    certificate = class_certificate(codes, y)
    known, classes = y >= 0, np.unique(y[y >= 0])
    rules = [np.array(rule)[codes[known]] == y[known] for rule in product(range(3), repeat=4)]
    assert certificate.accuracy == pytest.approx(max(hits.mean() for hits in rules), abs=1e-12)
    balanced = [np.mean([hits[y[known] == c].mean() for c in classes]) for hits in rules]
    assert certificate.balanced_accuracy == pytest.approx(max(balanced), abs=1e-12)
    assert certificate.known == 22


def test_values_by_chance_are_means_over_permutations() -> None:
    random = np.random.default_rng(0)
    codes, y = random.integers(0, 20, 100), random.integers(0, 3, 100)
    certificate = class_certificate(codes, y)
    shuffled = [class_certificate(codes, random.permutation(y)) for _ in range(100)]
    assert certificate.accuracy_by_chance == pytest.approx(np.mean([s.accuracy for s in shuffled]), abs=0.01)
    assert certificate.information_by_chance == pytest.approx(np.mean([s.information for s in shuffled]), abs=0.02)
    assert certificate.accuracy_by_chance > certificate.majority + 0.1  # many cells overfit noise


@pytest.mark.parametrize(
    ("num_codes", "num_classes", "nodes", "signal"),
    [(2, 2, 100, 0.5), (30, 2, 300, 0.1), (5, 4, 60, 0.9), (50, 7, 1000, 0.05)],
)
def test_coverage_of_the_limits_for_other_nodes(num_codes: int, num_classes: int, nodes: int, signal: float) -> None:
    """The true best accuracies are known from the joint distribution that the nodes are drawn from."""
    random = np.random.default_rng(7)
    noise = random.dirichlet(np.ones(num_classes), num_codes)
    given = (1 - signal) * noise + signal * np.eye(num_classes)[np.arange(num_codes) % num_classes]
    law = random.dirichlet(np.full(num_codes, 5.0))[:, None] * given
    best = law.max(axis=1).sum()
    balanced = (law / law.sum(axis=0)).max(axis=1).sum() / num_classes
    tables = random.multinomial(nodes, law.ravel(), 400).reshape(400, num_codes, num_classes)
    assert np.mean([accuracy_limit(table) >= best for table in tables]) >= 0.93
    assert np.mean([balanced_limit(table) >= balanced for table in tables]) >= 0.93


def test_the_accuracy_limit_is_tight_for_a_clear_best_rule() -> None:
    tables = np.random.default_rng(0).multinomial(200, [0.7, 0.2, 0.1], 2000)[:, None]
    assert np.mean([accuracy_limit(table) >= 0.7 for table in tables]) == pytest.approx(0.96, abs=0.015)


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


def test_link_certificate_by_hand() -> None:
    """Codes 0, 0, 1, 1 and links 0-1, 1-2: pairs {0, 0}: 1 of 1, {0, 1}: 1 of 4, {1, 1}: 0 of 1."""
    certificate = link_certificate(np.array([0, 0, 1, 1]), np.array([[0, 1], [1, 2]]))
    assert (certificate.nodes, certificate.links, certificate.nonlinks, certificate.codes) == (4, 2, 4, 2)
    assert certificate.auc == pytest.approx((4 + (1 + 3 / 2)) / (2 * 4))
    assert certificate.information == pytest.approx((np.log(0.5 / (1 / 6)) + np.log(0.5 / (4 / 6))) / 2)
    assert certificate.class_matched_auc is None
    assert certificate.calibration is None  # two links are too few


@pytest.mark.parametrize("seed", range(10))
def test_the_link_auc_is_that_of_the_best_score_over_all_pairs(seed: int) -> None:
    codes, y, links = random_release(seed)
    y[:2] = -1
    pairs, linked = _all_pairs(len(codes), links)
    code_pair = _ids(codes, codes, pairs)
    certificate = link_certificate(codes, links, y)
    assert certificate.auc == pytest.approx(_brute_auc(code_pair, linked, np.ones(len(linked))), abs=1e-12)
    random = np.random.default_rng(seed)
    for _ in range(20):  # no other score of two codes is better
        assert roc_auc_score(linked, random.random(code_pair.max() + 1)[code_pair]) <= certificate.auc + 1e-12

    known = (y[pairs] >= 0).all(axis=0)
    pairs, linked, code_pair = pairs[:, known], linked[known], code_pair[known]
    class_pair = _ids(y, y, pairs)
    share = np.array([linked[class_pair == k].sum() / max(1, (~linked[class_pair == k]).sum()) for k in range(20)])
    weights = np.where(linked, 1.0, share[class_pair])
    assert certificate.class_matched_auc == pytest.approx(_brute_auc(code_pair, linked, weights), abs=1e-12)
    both = codes * 3 + y
    within = _brute_auc(_ids(both, both, pairs), linked, weights)
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
    truth = _brute_auc(
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
        (lambda: link_certificate(CODES[:2], np.array([[0], [1]])), "every two nodes are linked"),
    ],
)
def test_what_has_no_certificate_raises_an_error(call: "object", sentence: str) -> None:
    assert callable(call)
    with pytest.raises(GraphveilError, match=sentence):
        call()


def _binomial(count: int, hits: int, share: float) -> float:
    from math import comb

    return comb(count, hits) * share**hits * (1 - share) ** (count - hits)


def _all_pairs(num_nodes: int, links: Integers) -> tuple[Integers, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
    """Every pair of nodes, (2, pairs), and whether it is a link."""
    pairs = np.stack(np.triu_indices(num_nodes, 1))
    linked = np.isin(pairs[0] * num_nodes + pairs[1], links[0] * num_nodes + links[1])
    return pairs, linked


def _ids(one: Integers, other: Integers, pairs: Integers) -> Integers:
    """One number for the two unordered values of each pair."""
    low, high = np.minimum(one[pairs[0]], other[pairs[1]]), np.maximum(one[pairs[0]], other[pairs[1]])
    return np.unique(low * 1000 + high, return_inverse=True)[1]


def _brute_auc(cell: Integers, linked: "np.ndarray[tuple[int], np.dtype[np.bool_]]", weights: Floats) -> float:
    """scikit-learn's AUC of the share of links in each cell."""
    links = np.bincount(cell, weights=weights * linked)
    score = links / np.maximum(np.bincount(cell, weights=weights), 1e-300)
    return float(roc_auc_score(linked, score.round(12)[cell], sample_weight=weights))
