"""Two-sided: every attack finds what was planted, and nothing in noise."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.naive_bayes import GaussianNB
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import learners, links, nodes
from graphveil.auditing.attacks import Attack, scaled, standardised, whitened
from graphveil.auditing.finding import Finding
from graphveil.auditing.panel import Task
from graphveil.auditing.secret import LinkSecret, NodeSecret, class_matched, link_secret, node_secret
from graphveil.data.graph import encode_pairs
from graphveil.errors import GraphveilError

NODE_ATTACKS = [attack.name for attack in nodes.panel()]


@pytest.fixture(scope="module")
def coin(town: Data, town_split: gv.Split) -> NodeSecret:
    return node_secret(town, town_split, "coin", 0)


@pytest.fixture(scope="module")
def town_links(town: Data, town_split: gv.Split) -> LinkSecret:
    return link_secret(town, town_split, 0)


LINK_ATTACKS = [*(f"{measure} distance" for measure in links.DISTANCES), "agreement of predicted labels", "bilinear"]
LINK_ATTACKS += ["pair-MLP", "boosted trees on pairs"]


def find(name: str, panel: list[Attack]) -> Attack:
    return next(attack for attack in panel if attack.name == name)


def noise(seed: int, columns: int = 8, nodes: int = 1500) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(nodes, columns)).astype(np.float32)


def attack_with(attack: Attack, z: np.ndarray, secret: NodeSecret | LinkSecret) -> Finding:
    return Task("embeddings", attack, z.astype(np.float32))(secret, seed=0)


# ----- node secrets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NODE_ATTACKS)
def test_every_node_attack_finds_a_planted_secret(name: str, town: Data, coin: NodeSecret) -> None:
    z = noise(1)
    z[:, 2] += 6 * town.coin.numpy()
    assert attack_with(find(name, nodes.panel()), z, coin).headline.value > 0.95


@pytest.mark.parametrize("name", NODE_ATTACKS)
def test_every_node_attack_reads_nothing_in_noise(name: str, coin: NodeSecret) -> None:
    """An interval misses once in twenty by design: two of three noises must be covered."""
    covered = [attack_with(find(name, nodes.panel()), noise(seed), coin).headline.covers(0.5) for seed in (13, 14, 15)]
    assert sum(covered) >= 2


def xor(coin: np.ndarray) -> np.ndarray:
    z = noise(6, columns=4)
    signs = np.random.default_rng(0).choice([-1, 1], len(coin))
    z[:, 0], z[:, 1] = z[:, 0] * 0.2 + 2 * signs, z[:, 1] * 0.2 + 2 * signs * (2 * coin - 1)
    return z


def ring(coin: np.ndarray) -> np.ndarray:
    z = noise(7, columns=4)
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, len(coin))
    radius = 1 + 2 * coin + 0.1 * np.random.default_rng(1).normal(size=len(coin))
    z[:, 0], z[:, 1] = radius * np.cos(angle), radius * np.sin(angle)
    return z


@pytest.mark.parametrize("plant", [xor, ring])
def test_a_bent_secret_is_found_though_not_by_a_straight_reader(
    plant: Callable[[np.ndarray], np.ndarray], town: Data, town_split: gv.Split
) -> None:
    found = gv.audit(plant(town.coin.numpy()), town, town_split, "coin")
    assert found.strongest.headline.value > 0.95
    straight = next(finding for finding in found.findings if finding.attack == "logistic regression, all")
    assert straight.headline.value < 0.65
    assert found.verdict == "leaks"
    assert found.with_features is not None
    assert found.excess_with_features is not None
    assert found.excess_with_features.low > 0.3, "z holds the coin and the features do not"


def under_noise(told: np.ndarray) -> np.ndarray:
    """Embeddings that vary a thousand times as much in other directions, none of which is a column's own."""
    loud = noise(7, columns=6, nodes=len(told))
    every = np.concatenate([loud, 1e-3 * told], axis=1)
    turned, _ = np.linalg.qr(noise(8, columns=every.shape[1], nodes=every.shape[1]).astype(np.float64))
    rows: np.ndarray = every @ turned
    return rows


@pytest.mark.parametrize("name", [name for name in NODE_ATTACKS if name.endswith("all") and "graph" not in name])
def test_every_node_attack_looks_into_directions_that_hardly_vary(name: str, town: Data, coin: NodeSecret) -> None:
    told = 2.0 * town.coin.numpy()[:, None] - 1 + 0.1 * noise(9, columns=1)
    found = attack_with(find(name, nodes.panel()), under_noise(told), coin)
    assert found.headline.value > (0.75 if "predicted links" in name else 0.85)


def test_few_knows_twenty_a_class_and_all_knows_all_but_the_test(coin: NodeSecret, town_split: gv.Split) -> None:
    assert np.bincount(coin.known["few"].y).tolist() == [20, 20]
    everything = set(coin.known["all"].index)
    assert everything == set(town_split.attacker_nodes("all").tolist())
    assert not everything & set(coin.test.index)


def test_unknown_values_are_no_class(town: Data, town_split: gv.Split) -> None:
    holes = town.clone()
    holes.coin[::3] = -1
    secret = node_secret(holes, town_split, "coin", 0)
    for part in (secret.known["few"], secret.known["all"], secret.val, secret.test):
        assert (part.index % 3 != 0).all()
        assert set(part.y) <= {0, 1}


def test_nodes_without_a_label_count_as_known_if_their_attribute_is(town: Data, town_split: gv.Split) -> None:
    graph = town.clone()
    graph.y[::2] = -1
    split = gv.Split.proportional(graph, 0)
    secret = node_secret(graph, split, "coin", 0)
    assert len(secret.known["all"].y) == 1500 - len(split.test_nodes)


def test_labels_few_are_twenty_a_class_whatever_the_split(town: Data, town_split: gv.Split) -> None:
    assert np.bincount(node_secret(town, town_split, "labels", 0).known["few"].y).tolist() == [20] * 4


def test_one_known_example_of_a_class_is_enough_to_go_on(town: Data, town_split: gv.Split) -> None:
    """And with few of it among many rows, every fold and sample may lack it."""
    graph = town.clone()
    graph.rare = torch.zeros(1500, dtype=torch.long)
    graph.rare[town_split.train_nodes[0]] = 1
    found = gv.audit(noise(1), graph, town_split, "rare")
    assert found.strongest.headline.value == 1
    assert "too few examples" not in {flag.name for flag in found.flags} or found.verdict != "protected"


def test_the_sample_that_is_tuned_on_keeps_rare_classes() -> None:
    y = np.zeros(30_000, dtype=np.int64)
    y[:4], y[4:3004] = 2, 1
    some = learners._some(learners.Taught(noise(1, 2, 30_000), y), 6_000, 0)
    counts = np.bincount(some.y)
    assert counts[2] == 4
    assert counts[1] == pytest.approx(600, abs=1)
    assert len(some.y) == pytest.approx(6_000, abs=10)


def test_a_float_attribute_with_nan_is_read_as_unknown(town: Data, town_split: gv.Split) -> None:
    graph = town.clone()
    graph.coin = graph.coin.float()
    graph.coin[::4] = torch.nan
    secret = node_secret(graph, town_split, "coin", 0)
    assert (secret.test.index % 4 != 0).all()
    graph.coin[1] = 0.5
    with pytest.raises(GraphveilError, match="bin or encode"):
        node_secret(graph, town_split, "coin", 0)


@pytest.mark.parametrize("factor", [1e-30, 1e-12, 1e25])
def test_the_scale_of_z_changes_nothing(factor: float, town: Data, town_split: gv.Split) -> None:
    z = communities(town)
    for kind in ("cosine", "Euclidean", "Canberra"):
        one, other = (
            gv.audit(each, town, town_split, "links", attacks=[links.Distance(kind)]).strongest.headline.value
            for each in (z, z * factor)
        )
        assert one == pytest.approx(other, abs=1e-3)


def test_a_secret_beside_a_large_number_is_seen(town: Data, town_split: gv.Split) -> None:
    z = noise(1).astype(np.float64)
    z[:, 0] = 1e9 + 10 * town.coin.numpy()
    found = gv.audit(z, town, town_split, "coin", attacks="quick")
    assert found.strongest.headline.value > 0.95


def test_very_wide_embeddings_are_described_by_their_main_directions() -> None:
    pairs = np.array([[0, 1], [2, 3]])
    assert links.geometry(noise(1, columns=40))(pairs).shape == (2, 5 * 40 + 24)
    assert links.geometry(noise(1, columns=400))(pairs).shape == (2, 3 * links.WIDE + 24)


def test_the_graph_network_does_not_find_a_known_node_s_own_answer_in_its_row(coin: NodeSecret) -> None:
    """Rows of known nodes are made from the other half, so learning from them is not learning to copy."""
    rows = nodes.graph_rows(noise(0), coin, coin.known["all"])
    known = coin.known["all"]
    says = rows[known.index][:, 1] > rows[known.index][:, 0]
    assert (says == known.y).mean() < 0.6


# ----- link secrets ---------------------------------------------------------------------------------------------------


def communities(town: Data) -> np.ndarray:
    """Each node near its neighbours' mean, over and over: linked nodes end up close."""
    z = noise(8, columns=16).astype(np.float64)
    source, target = town.edge_index.numpy()
    degree = np.bincount(target, minlength=len(z))[:, None]
    for _ in range(2):
        total = np.zeros_like(z)
        np.add.at(total, target, z[source])
        z = 0.5 * z + 0.5 * total / np.maximum(degree, 1) * 3
    return z


@pytest.mark.parametrize("name", LINK_ATTACKS)
def test_every_link_attack_reads_nothing_in_noise(name: str, town_links: LinkSecret) -> None:
    panel = links.panel(town_links)
    covered = [attack_with(find(name, panel), noise(seed), town_links).headline.covers(0.5) for seed in range(13, 18)]
    assert sum(covered) >= 3


def test_the_names_of_the_panel(town_links: LinkSecret) -> None:
    assert [attack.name for attack in links.panel(town_links)] == LINK_ATTACKS


@pytest.fixture(scope="module")
def islands() -> tuple[Data, gv.Split]:
    """Two hundred islands of six, all linked within: whoever knows the island knows the links."""
    island = np.repeat(np.arange(200), 6)
    u, v = np.triu_indices(6, 1)
    pairs = np.concatenate([np.stack([u, v]) + 6 * start for start in range(200)], axis=1)
    both = torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1))
    x = torch.from_numpy(noise(1, columns=5, nodes=1200))
    graph = Data(x=x, edge_index=both, y=torch.from_numpy(island % 3))
    return graph, gv.Split.proportional(graph, 0, message_edges="all")


@pytest.mark.parametrize("name", [name for name in LINK_ATTACKS if name != "agreement of predicted labels"])
def test_every_link_attack_finds_planted_links(name: str, islands: tuple[Data, gv.Split]) -> None:
    """An island's nodes share a place; every attack but the agreement of classes, which is coarser, tells them."""
    graph, split = islands
    secret = link_secret(graph, split, 0)
    place = np.random.default_rng(0).normal(size=(200, 12))
    place /= np.linalg.norm(place, axis=1, keepdims=True)  # the inner product compares directions
    z = np.repeat(place, 6, axis=0) + 0.02 * noise(2, columns=12, nodes=1200)
    assert attack_with(find(name, links.panel(secret)), z, secret).headline.value > 0.95


@pytest.mark.parametrize("name", ["bilinear", "pair-MLP", "boosted trees on pairs"])
def test_readers_of_pairs_look_into_directions_that_hardly_vary(name: str, islands: tuple[Data, gv.Split]) -> None:
    graph, split = islands
    secret = link_secret(graph, split, 0)
    place = np.repeat(np.random.default_rng(0).normal(size=(200, 6)), 6, axis=0)
    z = under_noise(place + 0.02 * noise(2, columns=6, nodes=1200))
    assert attack_with(find(name, links.panel(secret)), z, secret).headline.value > 0.9


def test_agreement_of_predicted_labels_finds_classes_that_are_links() -> None:
    """Links only within forty classes: agreeing is being linked, but for chance."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 30)
    u = random.integers(0, 1200, 6000)
    v = 30 * y[u] + random.integers(0, 30, 6000)
    graph = Data(x=torch.ones(1200, 2), edge_index=torch.from_numpy(np.stack([u, v])), y=torch.from_numpy(y))
    split = gv.Split.proportional(graph, 0, message_edges="all")
    secret = link_secret(graph, split, 0)
    z = np.eye(40)[y] + 0.05 * noise(1, columns=40, nodes=1200)
    found = attack_with(find("agreement of predicted labels", links.panel(secret)), z, secret)
    assert found.headline.value > 0.95


def test_links_that_are_far_instead_of_near_are_found_too(islands: tuple[Data, gv.Split]) -> None:
    """Anti-correlated: the two ends of a link point away from each other; the sign is chosen on the validation part."""
    random = np.random.default_rng(3)
    side = np.arange(1200) % 2
    u, v = random.integers(0, 1200, (2, 12000))
    keep = side[u] != side[v]
    graph = Data(
        x=torch.ones(1200, 2), edge_index=torch.from_numpy(np.stack([u, v])[:, keep]), y=torch.from_numpy(side)
    )
    split = gv.Split.proportional(graph, 0, message_edges="all")
    z = np.stack([2.0 * side - 1, np.ones(1200)], axis=1) + 0.05 * noise(4, columns=2, nodes=1200)
    secret = link_secret(graph, split, 0)
    cosine = attack_with(links.Distance("cosine"), z, secret)
    assert cosine.headline.low > 0.7
    assert gv.audit(z, graph, split, "links", attacks="quick").strongest.headline.low > 0.7


def test_a_secret_in_the_distance_of_pairs_is_found(islands: tuple[Data, gv.Split]) -> None:
    """Linked nodes lie on opposite ends of their island's circle: neither near nor far, but at one distance."""
    graph, split = islands
    angle = np.tile(np.arange(6), 200) * np.pi / 3
    place = np.random.default_rng(0).normal(size=(200, 2)) * 3
    z = np.repeat(place, 6, axis=0) + np.stack([np.cos(angle), np.sin(angle)], axis=1)
    found = gv.audit(z, graph, split, "links")
    assert found.strongest.headline.value > 0.95
    assert found.excess_with_features is not None
    assert found.excess_with_features.low > 0.3, "the features are noise"


def test_class_matched_non_links_have_the_links_classes_and_are_new(town: Data, town_split: gv.Split) -> None:
    y, taken = town.y.numpy(), town_split.taken_pairs
    matched = class_matched(town_split.test_links.numpy(), y, taken, seed=0)
    assert matched is not None
    kinds = np.sort(y[matched.index], axis=0)
    assert (matched.y[: len(matched.y) // 2] == 1).all()
    of_links, of_nonlinks = np.split(kinds, 2, axis=1)
    np.testing.assert_array_equal(of_links, of_nonlinks)
    codes = encode_pairs(torch.from_numpy(matched.index[:, matched.y == 0])).numpy()
    assert not np.isin(codes, taken.numpy()).any()
    assert len(np.unique(codes)) == len(codes)


def test_no_pair_is_in_two_parts() -> None:
    """A dense graph, where pairs drawn at random meet again."""
    graph = gv.generate(gv.GraphSpec(num_nodes=150, num_edges=2500, num_features=20, num_classes=3), seed=1)
    secret = link_secret(graph, gv.Split.proportional(graph, 0, message_edges="all"), 0)
    assert secret.matched is not None
    parts = (secret.known, secret.val, secret.test, secret.matched.known, secret.matched.val, secret.matched.test)
    codes = [encode_pairs(torch.from_numpy(part.index[:, part.y == 0])) for part in parts]
    together = torch.cat(codes)
    assert len(torch.unique(together)) == len(together)


def test_a_model_of_its_own_answers_for_matched_pairs(town: Data, town_split: gv.Split) -> None:
    """Links within a class are told by one column, and between all by another that is ten times as loud."""
    secret = link_secret(town, town_split, 0)
    z = np.concatenate([10 * np.eye(4)[town.y.numpy()], communities(town)], axis=1)
    finding = attack_with(find("pair-MLP", links.panel(secret)), z, secret)
    assert finding.matched is not None
    assert finding.matched.low > 0.7


def test_classes_alone_tell_nothing_once_they_are_matched(town: Data, town_split: gv.Split) -> None:
    z = np.eye(4)[town.y.numpy()]
    found = gv.audit(z, town, town_split, "links", attacks=[links.Distance("cosine")])
    assert found.floor is not None
    assert found.strongest.headline.value <= found.floor.value + 1e-9, "comparing classes reads no more than the floor"
    assert found.floor.value < found.strongest.headline.value + 0.05
    assert found.class_matched is not None
    assert found.class_matched.matched is not None
    assert found.class_matched.matched.value == 0.5


# ----- what attacks are made of ---------------------------------------------------------------------------------------


def test_any_scikit_learn_classifier_becomes_an_attack(town: Data, town_split: gv.Split) -> None:
    z = noise(1)
    z[:, 2] += 6 * town.coin.numpy()
    found = gv.audit(z, town, town_split, "coin", attacks=[GaussianNB()])
    assert {finding.attack for finding in found.findings} == {"GaussianNB, few", "GaussianNB, all"}
    assert found.strongest.headline.value > 0.95
    pairs = gv.audit(communities(town), town, town_split, "links", attacks=[GaussianNB()])
    assert pairs.strongest.attack == "GaussianNB on pairs"
    assert pairs.strongest.headline.low > 0.6


@pytest.mark.parametrize(("attacks", "sentence"), [([], "no attack"), ("fast", "full, quick"), ([3], "is no attack")])
def test_what_is_no_attack_is_refused(attacks: object, sentence: str, town: Data, town_split: gv.Split) -> None:
    with pytest.raises(GraphveilError, match=sentence):
        gv.audit(noise(1), town, town_split, "coin", attacks=attacks)  # type: ignore[arg-type]
    with pytest.raises(GraphveilError, match="two attacks are called 'GaussianNB, few'"):
        gv.audit(noise(1), town, town_split, "coin", attacks=[GaussianNB(), GaussianNB()])


def test_scalings() -> None:
    x = np.array([[0.0, 10.0, 7.0], [2.0, 30.0, 7.0]])
    np.testing.assert_allclose(standardised(x), [[-1, -1, 0], [1, 1, 0]])
    np.testing.assert_allclose(scaled(x)[:, 1] / scaled(x)[:, 0], [10, 10])
    assert scaled(x).std() == pytest.approx(1, abs=1e-6)
    mixed = noise(1, columns=5) @ noise(2, columns=7, nodes=5)  # seven columns, five directions
    white = whitened(mixed * [1, 1, 1e-3, 1, 1, 1e4, 1])
    np.testing.assert_allclose(white.T @ white / len(white), np.eye(5), atol=1e-4)
    assert whitened(np.ones((4, 3))).shape == (4, 0) or not whitened(np.ones((4, 3))).any()
