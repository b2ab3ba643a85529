"""Every attack finds a planted secret, and nothing in noise."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import controls, links, nodes
from graphveil.auditing.attacks import Attack, scaled, standardised, whitened
from graphveil.auditing.finding import Finding
from graphveil.auditing.pairs import DISTANCES
from graphveil.auditing.secret import LinkSecret, NodeSecret, link_secret
from graphveil.auditing.tasks import Task
from tests.auditing.made import communities, noise

NODE_ATTACKS = [attack.name for attack in nodes.panel()]


@pytest.fixture(scope="module")
def hamlet_links(hamlet: Data, hamlet_split: gv.Split) -> LinkSecret:
    """Without class-matched pairs, for which the learners would be fitted a second time."""
    return replace(link_secret(hamlet, hamlet_split, 0), matched=None)


LINK_ATTACKS = [*(f"{measure} distance" for measure in DISTANCES), "agreement of predicted labels", "bilinear"]
LINK_ATTACKS += ["pair-MLP", "boosted trees on pairs"]


def find(name: str, panel: list[Attack]) -> Attack:
    return next(attack for attack in panel if attack.name == name)


def attack_with(attack: Attack, z: np.ndarray, secret: NodeSecret | LinkSecret) -> Finding:
    return Task("embeddings", attack, z.astype(np.float32))(secret, seed=0)


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
    assert audit.verdict == "leaks"
    assert audit.with_features is not None
    assert audit.excess_with_features is not None
    assert audit.excess_with_features.low > 0.3, "z holds the coin and the features do not"


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


@pytest.mark.usefixtures("weak_networks")
def test_a_class_with_one_known_example_raises_no_error(small: Data, small_split: gv.Split) -> None:
    """Folds and samples may lack the class."""
    graph = small.clone()
    graph.rare = torch.zeros(150, dtype=torch.long)
    graph.rare[small_split.train_nodes[0]] = 1
    audit = gv.audit(noise(1, nodes=150), graph, small_split, "rare")
    assert audit.strongest.headline.value == 1
    assert "too few examples" not in {flag.name for flag in audit.flags} or audit.verdict != "protected"


@pytest.mark.parametrize("factor", [1e-30, 1e-12, 1e25])
def test_the_scale_of_z_changes_nothing(factor: float, hamlet: Data, hamlet_split: gv.Split) -> None:
    z = communities(hamlet)
    for kind in ("cosine", "Euclidean", "Canberra"):
        one, other = (
            gv.audit(each, hamlet, hamlet_split, "links", attacks=[links.Distance(kind)]).strongest.headline.value
            for each in (z, z * factor)
        )
        assert one == pytest.approx(other, abs=1e-3)


def test_a_secret_beside_a_large_offset_is_found(town: Data, town_split: gv.Split) -> None:
    z = noise(1).astype(np.float64)
    z[:, 0] = 1e9 + 10 * town.coin.numpy()
    audit = gv.audit(z, town, town_split, "coin", attacks="quick")
    assert audit.strongest.headline.value > 0.95


# ----- link secrets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINK_ATTACKS)
def test_every_link_attack_finds_nothing_in_noise(name: str, hamlet_links: LinkSecret) -> None:
    assert finds_nothing_in_noise(find(name, links.panel(hamlet_links)), hamlet_links)


def test_the_names_of_the_panel(hamlet_links: LinkSecret) -> None:
    assert [attack.name for attack in links.panel(hamlet_links)] == LINK_ATTACKS


@pytest.fixture(scope="module")
def islands() -> tuple[Data, gv.Split]:
    """40 islands of six nodes, all linked within: the island of each node determines the links."""
    island = np.repeat(np.arange(40), 6)
    u, v = np.triu_indices(6, 1)
    pairs = np.concatenate([np.stack([u, v]) + 6 * start for start in range(40)], axis=1)
    both = torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1))
    x = torch.from_numpy(noise(1, columns=5, nodes=240))
    graph = Data(x=x, edge_index=both, y=torch.from_numpy(island % 3))
    return graph, gv.Split.proportional(graph, 0, message_edges="all")


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


def test_agreement_of_predicted_labels_finds_classes_that_are_links() -> None:
    """There are links only within 40 classes."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 30)
    u = random.integers(0, 1200, 6000)
    v = 30 * y[u] + random.integers(0, 30, 6000)
    graph = Data(x=torch.ones(1200, 2), edge_index=torch.from_numpy(np.stack([u, v])), y=torch.from_numpy(y))
    split = gv.Split.proportional(graph, 0, message_edges="all")
    secret = link_secret(graph, split, 0)
    z = np.eye(40)[y] + 0.05 * noise(1, columns=40, nodes=1200)
    result = attack_with(find("agreement of predicted labels", links.panel(secret)), z, secret)
    assert result.headline.value > 0.95


def test_links_between_distant_nodes_are_found() -> None:
    """The two ends of a link point in opposite directions; the sign is chosen on the validation part."""
    random = np.random.default_rng(3)
    side = np.arange(200) % 2
    u, v = random.integers(0, 200, (2, 2000))
    keep = side[u] != side[v]
    graph = Data(x=torch.ones(200, 2), edge_index=torch.from_numpy(np.stack([u, v])[:, keep]), y=torch.from_numpy(side))
    split = gv.Split.proportional(graph, 0, message_edges="all")
    z = np.stack([2.0 * side - 1, np.ones(200)], axis=1) + 0.05 * noise(4, columns=2, nodes=200)
    secret = link_secret(graph, split, 0)
    cosine = attack_with(links.Distance("cosine"), z, secret)
    assert cosine.headline.low > 0.7
    assert gv.audit(z, graph, split, "links", attacks="quick").strongest.headline.low > 0.7


def test_a_secret_in_the_distance_of_pairs_is_found(
    islands: tuple[Data, gv.Split], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nodes of an island are on a circle: linked nodes are at a few fixed distances. Trees are enough to see it."""
    graph, split = islands
    angle = np.tile(np.arange(6), 40) * np.pi / 3
    place = np.random.default_rng(0).normal(size=(40, 2)) * 3
    z = np.repeat(place, 6, axis=0) + np.stack([np.cos(angle), np.sin(angle)], axis=1)
    trees = links.panel(link_secret(graph, split, 0))[-1:]
    beside_features = links.with_features()[-1:]
    monkeypatch.setattr(links, "panel", lambda _: trees)
    monkeypatch.setattr(links, "on_encoders", lambda: trees)
    monkeypatch.setattr(links, "with_features", lambda: beside_features)
    monkeypatch.setattr(controls, "known_links", lambda *_: [])
    audit = gv.audit(z, graph, split, "links")
    assert audit.strongest.headline.value > 0.95
    assert audit.excess_with_features is not None
    assert audit.excess_with_features.low > 0.3, "the features are noise"


def test_class_matched_pairs_have_a_model_of_their_own(hamlet: Data, hamlet_split: gv.Split) -> None:
    """Classes predict links, and have ten times the spread of what predicts links within classes."""
    secret = link_secret(hamlet, hamlet_split, 0)
    z = np.concatenate([10 * np.eye(4)[hamlet.y.numpy()], communities(hamlet)], axis=1)
    finding = attack_with(find("pair-MLP", links.panel(secret)), z, secret)
    assert finding.matched is not None
    assert finding.matched.low > 0.7


def test_classes_alone_have_a_class_matched_auc_of_one_half(town: Data, town_split: gv.Split) -> None:
    z = np.eye(4)[town.y.numpy()]
    audit = gv.audit(z, town, town_split, "links", attacks=[links.Distance("cosine")])
    assert audit.floor is not None
    assert audit.strongest.headline.value <= audit.floor.value + 1e-9, "comparing classes is not better than the floor"
    assert audit.floor.value < audit.strongest.headline.value + 0.05
    assert audit.class_matched is not None
    assert audit.class_matched.matched is not None
    assert audit.class_matched.matched.value == 0.5


# ----- attacks of the caller, and scalings ----------------------------------------------------------------------------


def test_scalings() -> None:
    x = np.array([[0.0, 10.0, 7.0], [2.0, 30.0, 7.0]])
    np.testing.assert_allclose(standardised(x), [[-1, -1, 0], [1, 1, 0]])
    np.testing.assert_allclose(scaled(x)[:, 1] / scaled(x)[:, 0], [10, 10])
    assert scaled(x).std() == pytest.approx(1, abs=1e-6)
    mixed = noise(1, columns=5) @ noise(2, columns=7, nodes=5)  # seven columns, five directions
    white = whitened(mixed * [1, 1, 1e-3, 1, 1, 1e4, 1])
    np.testing.assert_allclose(white.T @ white / len(white), np.eye(5), atol=1e-4)
    assert whitened(np.ones((4, 3))).shape == (4, 0) or not whitened(np.ones((4, 3))).any()
