"""Every attack finds a planted secret, and nothing in noise."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import links, nodes
from graphveil.auditing.attacks import Attack, scaled, standardised, whitened
from graphveil.auditing.pairs import DISTANCES
from graphveil.auditing.secret import LinkSecret, NodeSecret, link_secret
from tests.auditing.made import attack_with, find, noise

NODE_ATTACKS = [attack.name for attack in nodes.panel()]


@pytest.fixture(scope="module")
def hamlet_links(hamlet: Data, hamlet_split: gv.Split) -> LinkSecret:
    """Without class-matched pairs, for which the learners would be fitted a second time."""
    return replace(link_secret(hamlet, hamlet_split, 0), matched=None)


LINK_ATTACKS = [*(f"{measure} distance" for measure in DISTANCES), "agreement of predicted labels", "bilinear"]
LINK_ATTACKS += ["pair-MLP", "boosted trees on pairs"]


def finds_nothing_in_noise(attack: Attack, secret: NodeSecret | LinkSecret) -> bool:
    """A 95 % interval misses in 5 % of cases: two of three must cover 0.5; a third is computed if needed."""
    headlines = (attack_with(attack, noise(seed, nodes=500), secret).headline for seed in (13, 14, 15))
    return len(list(islice((one for one in headlines if one.covers(0.5)), 2))) == 2


# ----- node secrets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NODE_ATTACKS)
def test_every_node_attack_finds_a_planted_secret(name: str, hamlet: Data, coin: NodeSecret) -> None:
    z = noise(1, columns=6, nodes=500)
    z[:, 2] += 6 * hamlet.coin.numpy()
    assert attack_with(find(name, nodes.panel()), z, coin).headline.value > 0.95


@pytest.mark.parametrize("name", NODE_ATTACKS)
def test_every_node_attack_finds_nothing_in_noise(name: str, coin: NodeSecret) -> None:
    assert finds_nothing_in_noise(find(name, nodes.panel()), coin)


def with_small_spread(signal: np.ndarray) -> np.ndarray:
    """Embeddings with the signal in directions of a thousandth of the spread, rotated against the columns."""
    large = noise(7, columns=6, nodes=len(signal))
    every = np.concatenate([large, 1e-3 * signal], axis=1)
    rotation, _ = np.linalg.qr(noise(8, columns=every.shape[1], nodes=every.shape[1]).astype(np.float64))
    rows: np.ndarray = every @ rotation
    return rows


@pytest.mark.parametrize("name", [name for name in NODE_ATTACKS if name.endswith("all") and "graph" not in name])
def test_every_node_attack_finds_a_secret_in_directions_of_small_spread(
    name: str, hamlet: Data, coin: NodeSecret
) -> None:
    signal = 2.0 * hamlet.coin.numpy()[:, None] - 1 + 0.1 * noise(9, columns=1, nodes=500)
    result = attack_with(find(name, nodes.panel()), with_small_spread(signal), coin)
    assert result.headline.value > (0.75 if "predicted links" in name else 0.85)


# ----- link secrets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINK_ATTACKS)
def test_every_link_attack_finds_nothing_in_noise(name: str, hamlet_links: LinkSecret) -> None:
    assert finds_nothing_in_noise(find(name, links.panel(hamlet_links)), hamlet_links)


def test_the_names_of_the_panel(hamlet_links: LinkSecret) -> None:
    assert [attack.name for attack in links.panel(hamlet_links)] == LINK_ATTACKS


@pytest.fixture(scope="module")
def island_links(islands: tuple[Data, gv.Split]) -> LinkSecret:
    """Without class-matched pairs, as above."""
    return replace(link_secret(*islands, 0), matched=None)


@pytest.mark.parametrize("name", [name for name in LINK_ATTACKS if name != "agreement of predicted labels"])
def test_every_link_attack_finds_planted_links(name: str, island_links: LinkSecret) -> None:
    """The nodes of an island are close. The agreement of classes is coarser, and is tested below."""
    place = np.random.default_rng(0).normal(size=(40, 12))
    place /= np.linalg.norm(place, axis=1, keepdims=True)  # the inner product compares directions
    z = np.repeat(place, 6, axis=0) + 0.02 * noise(2, columns=12, nodes=240)
    assert attack_with(find(name, links.panel(island_links)), z, island_links).headline.value > 0.95


@pytest.mark.parametrize("name", ["bilinear", "pair-MLP", "boosted trees on pairs"])
def test_learners_on_pairs_find_links_in_directions_of_small_spread(name: str, island_links: LinkSecret) -> None:
    place = np.repeat(np.random.default_rng(0).normal(size=(40, 6)), 6, axis=0)
    z = with_small_spread(place + 0.02 * noise(2, columns=6, nodes=240))
    assert attack_with(find(name, links.panel(island_links)), z, island_links).headline.value > 0.9


# ----- scalings -------------------------------------------------------------------------------------------------------


def test_scalings() -> None:
    x = np.array([[0.0, 10.0, 7.0], [2.0, 30.0, 7.0]])
    np.testing.assert_allclose(standardised(x), [[-1, -1, 0], [1, 1, 0]])
    np.testing.assert_allclose(scaled(x)[:, 1] / scaled(x)[:, 0], [10, 10])
    assert scaled(x).std() == pytest.approx(1, abs=1e-6)
    mixed = noise(1, columns=5) @ noise(2, columns=7, nodes=5)  # seven columns, five directions
    white = whitened(mixed * [1, 1, 1e-3, 1, 1, 1e4, 1])
    np.testing.assert_allclose(white.T @ white / len(white), np.eye(5), atol=1e-4)
    assert whitened(np.ones((4, 3))).shape == (4, 0) or not whitened(np.ones((4, 3))).any()
