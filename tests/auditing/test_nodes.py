"""Attacks on node secrets: nonlinear secrets, rare classes, large offsets, and nodes that were learned from."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import nodes
from graphveil.auditing.attacks import Attack
from graphveil.auditing.secret import NodeSecret
from tests.auditing.made import noise


def xor(coin: np.ndarray) -> np.ndarray:
    z = noise(6, columns=4, nodes=len(coin))
    signs = np.random.default_rng(0).choice([-1, 1], len(coin))
    z[:, 0], z[:, 1] = z[:, 0] * 0.2 + 2 * signs, z[:, 1] * 0.2 + 2 * signs * (2 * coin - 1)
    return z


def ring(coin: np.ndarray) -> np.ndarray:
    z = noise(7, columns=4, nodes=len(coin))
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, len(coin))
    radius = 1 + 2 * coin + 0.1 * np.random.default_rng(1).normal(size=len(coin))
    z[:, 0], z[:, 1] = radius * np.cos(angle), radius * np.sin(angle)
    return z


@pytest.mark.parametrize("plant", [xor, ring])
def test_a_nonlinear_secret_is_found_but_not_by_a_linear_attack(
    plant: Callable[[np.ndarray], np.ndarray], hamlet: Data, hamlet_split: gv.Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [attack for attack in nodes.panel() if attack.name in ("logistic regression, all", "kernel machine, all")]
    linear_and_trees = nodes.with_features(z_columns=4)[:2]
    monkeypatch.setattr(nodes, "panel", lambda: few)
    monkeypatch.setattr(nodes, "with_features", lambda _: linear_and_trees)
    audit = gv.audit(plant(hamlet.coin.numpy()), hamlet, hamlet_split, "coin")
    assert audit.strongest.headline.value > 0.95
    linear = next(finding for finding in audit.findings if finding.attack == "logistic regression, all")
    assert linear.headline.value < 0.65
    assert audit.verdict == "unprotected"
    assert audit.with_features is not None
    assert audit.excess_with_features is not None
    assert audit.excess_with_features.low > 0.3, "z holds the coin and the features do not"


@pytest.mark.usefixtures("weak_networks")
def test_a_class_with_one_known_example_raises_no_error(small: Data, small_split: gv.Split) -> None:
    """Folds and samples may lack the class."""
    graph = small.clone()
    graph.rare = torch.zeros(150, dtype=torch.long)
    graph.rare[small_split.train_nodes[0]] = 1
    audit = gv.audit(noise(1, nodes=150), graph, small_split, "rare")
    assert audit.strongest.headline.value == 1
    assert "too few examples" not in {flag.name for flag in audit.flags} or audit.verdict != "protected"


def test_a_secret_beside_a_large_offset_is_found(town: Data, town_split: gv.Split) -> None:
    z = noise(1).astype(np.float64)
    z[:, 0] = 1e9 + 10 * town.coin.numpy()
    audit = gv.audit(z, town, town_split, "coin", attacks="quick")
    assert audit.strongest.headline.value > 0.95


@pytest.mark.parametrize(
    "attack", [one for one in nodes.panel() if "few secrets" not in one.needs], ids=lambda one: one.name
)
def test_no_attack_answers_for_nodes_that_it_learned_from(attack: Attack, coin: NodeSecret) -> None:
    """On noise, an attack that learned from a node knows its class, and any other is at chance."""
    z = np.random.default_rng(5).standard_normal((coin.num_nodes, 3)).astype(np.float32)
    right = attack(z, coin, 0).val.argmax(axis=1) == coin.val.y
    assert right.mean() < 0.5 + 4 * 0.5 / np.sqrt(len(right))
