"""Targets: which pairs links are trained against, and the metric of each."""

from itertools import pairwise

import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch_geometric.data import Data

import graphveil as gv
from graphveil.randomness import Noise
from graphveil.training.targets import Links, auc, chance_level, metric_value, utility_target
from tests.data.splits.made import codes


def test_training_nonlinks_hit_nothing_that_is_linked_or_held_out(split: gv.Split) -> None:
    target = Links([split], torch.device("cpu"))
    clock = torch.zeros(1, dtype=torch.long)
    noise = Noise([0], "nonlinks", 5, clock)
    seen = []
    for number in range(5):
        clock.fill_(number)
        examples = target.train(noise)
        nonlinks = codes(examples.index[:, examples.y == 0])
        assert not nonlinks & set(split.taken_pairs.tolist())
        assert examples.y.sum() * 2 == examples.y.numel()
        seen.append(nonlinks)
    assert all(a != b for a, b in pairwise(seen)), "they are drawn anew each round"


def test_the_auc_of_each_run_is_that_of_scikit_learn_with_ties() -> None:
    random = torch.Generator().manual_seed(0)
    score = torch.randint(5, (3, 80), generator=random).double()
    y = torch.arange(80).expand(3, -1) % 2
    expected = [roc_auc_score(y[run], score[run]) for run in range(3)]
    assert auc(score, y).tolist() == pytest.approx(expected, abs=1e-12)


def test_the_chance_level_is_one_half_or_the_share_of_the_largest_class(small: Data, small_split: gv.Split) -> None:
    cpu = torch.device("cpu")
    links, labels = (utility_target(name, small, [small_split], cpu) for name in ("links", "labels"))
    assert float(chance_level(links, links.test)) == 0.5
    largest = small.y[small_split.test_nodes].bincount().max() / len(small_split.test_nodes)
    assert float(chance_level(labels, labels.test)) == pytest.approx(float(largest))


def test_a_value_that_is_not_finite_has_no_metric(small: Data, small_split: gv.Split) -> None:
    labels = utility_target("labels", small, [small_split], torch.device("cpu"))
    scores = torch.eye(3)[labels.test.y]
    assert float(metric_value(labels, scores, labels.test.y)) == 1
    scores[0, 0] = torch.inf
    assert metric_value(labels, scores, labels.test.y).isnan()
