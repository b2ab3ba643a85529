"""The forecast of a certificate, against the certificates that classes drawn at random have."""

import numpy as np

from graphveil.codes import class_table
from graphveil.data import UNKNOWN
from graphveil.experiments.forecast import forecast


def test_a_forecast_is_seldom_exceeded_by_chance_and_is_not_far_above_it() -> None:
    """Codes of 1,000 nodes of known class, merged until they reveal nothing about these, and of 1,000 others."""
    random, excess = np.random.default_rng(5), []
    known = np.arange(1000)
    for seed in range(60):
        codes = np.concatenate([known % 10, random.integers(0, 10, 1000)])
        y = np.concatenate([known // 10 % 2, random.integers(0, 2, 1000)])
        chance = float(np.bincount(y).max() / len(y))
        certificate = float(class_table(codes, y, 10, 2).max(axis=1).sum() / len(y))
        seen = np.where(np.arange(2000) < 1000, y, UNKNOWN)
        excess.append(certificate - forecast(codes, seen, chance, seed))
    assert sum(value > 0 for value in excess) <= 6, "nominally 2 of 60"
    assert -0.017 < np.mean(excess) < 0


def test_a_forecast_with_the_chance_level_of_the_known_nodes_alone_is_often_exceeded() -> None:
    """So `chance` is that of all nodes: the certificate and the limit are compared with it."""
    random, above = np.random.default_rng(7), {"all": 0, "known": 0}
    for seed in range(60):
        codes, y = random.integers(0, 15, 1600), (random.random(1600) < 0.3).astype(np.int64)
        certificate = float(class_table(codes, y, 15, 2).max(axis=1).sum() / 1600)
        seen = np.where(np.arange(1600) < 600, y, UNKNOWN)
        for name, part in (("all", y), ("known", y[:600])):
            above[name] += certificate > forecast(codes, seen, float(np.bincount(part).max() / len(part)), seed)
    assert above["all"] <= 6
    assert above["known"] >= 15


def test_noise_of_the_known_classes_is_not_repeated_but_a_leak_is() -> None:
    """Codes reveal nothing, or the class of 70 % of the nodes; half of 1,000 classes are known."""
    random, above = np.random.default_rng(9), dict[float, list[float]]()
    for leak in (0.0, 0.2):
        values = above.setdefault(leak, [])
        for seed in range(40):
            codes = random.integers(0, 8, 1000)
            y = (random.random(1000) < 0.5 + leak * (codes % 2 * 2 - 1)).astype(np.int64)
            table = class_table(codes, y, 8, 2)
            chance = float(table.sum(axis=0).max() / 1000)
            certificate = float(table.max(axis=1).sum() / 1000)
            values.append(forecast(codes, np.where(np.arange(1000) < 500, y, UNKNOWN), chance, seed) - certificate)
    assert 0 < np.mean(above[0.0]) < 0.03, "a prior of 30 nodes is 0.040 above"
    assert 0 < np.mean(above[0.2]) < 0.03, "with 30 nodes it is 0.003 below"


def test_a_code_for_all_nodes_reveals_nothing() -> None:
    y = np.repeat([0, 1, UNKNOWN], [30, 20, 50])
    assert forecast(np.zeros(100, dtype=np.int64), y, 0.6, 0) == 0.6


def test_known_classes_count_as_they_are() -> None:
    y = np.arange(100) % 2
    assert forecast(y, y, 0.5, 0) == 1.0, "no node is sampled"
    assert forecast(np.arange(100) // 50, y, 0.5, 0) == 0.5
