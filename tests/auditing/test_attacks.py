"""Every attack finds a planted secret, and nothing in noise."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.naive_bayes import GaussianNB
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import learners, links, nodes, propagation
from graphveil.auditing.attacks import Attack, scaled, standardised, whitened
from graphveil.auditing.finding import Finding
from graphveil.auditing.pairs import DISTANCES, MAX_COLUMNS, geometry
from graphveil.auditing.secret import LinkSecret, NodeSecret, class_matched, link_secret, node_secret
from graphveil.auditing.tasks import Task
from graphveil.data.graph import encode_pairs
from graphveil.errors import GraphveilError

NODE_ATTACKS = [attack.name for attack in nodes.panel()]


@pytest.fixture(scope="module")
def coin(town: Data, town_split: gv.Split) -> NodeSecret:
    return node_secret(town, town_split, "coin", 0)


@pytest.fixture(scope="module")
def town_links(town: Data, town_split: gv.Split) -> LinkSecret:
    return link_secret(town, town_split, 0)


LINK_ATTACKS = [*(f"{measure} distance" for measure in DISTANCES), "agreement of predicted labels", "bilinear"]
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
def test_every_node_attack_finds_nothing_in_noise(name: str, coin: NodeSecret) -> None:
    """A 95 % interval misses in 5 % of cases: two of three intervals must cover 0.5."""
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
def test_a_nonlinear_secret_is_found_but_not_by_a_linear_attack(
    plant: Callable[[np.ndarray], np.ndarray], town: Data, town_split: gv.Split
) -> None:
    audit = gv.audit(plant(town.coin.numpy()), town, town_split, "coin")
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
    name: str, town: Data, coin: NodeSecret
) -> None:
    signal = 2.0 * town.coin.numpy()[:, None] - 1 + 0.1 * noise(9, columns=1)
    result = attack_with(find(name, nodes.panel()), with_small_spread(signal), coin)
    assert result.headline.value > (0.75 if "predicted links" in name else 0.85)


def test_few_known_secrets_are_twenty_per_class_and_all_are_all_but_the_test(
    coin: NodeSecret, town_split: gv.Split
) -> None:
    assert np.bincount(coin.known["few"].y).tolist() == [20, 20]
    everything = set(coin.known["all"].index)
    assert everything == set(town_split.attacker_nodes("all").tolist())
    assert not everything & set(coin.test.index)


def test_unknown_values_are_left_out(town: Data, town_split: gv.Split) -> None:
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


def test_few_labels_are_twenty_per_class_in_every_split(town: Data, town_split: gv.Split) -> None:
    assert np.bincount(node_secret(town, town_split, "labels", 0).known["few"].y).tolist() == [20] * 4


def test_a_class_with_one_known_example_raises_no_error(town: Data, town_split: gv.Split) -> None:
    """Folds and samples may lack the class."""
    graph = town.clone()
    graph.rare = torch.zeros(1500, dtype=torch.long)
    graph.rare[town_split.train_nodes[0]] = 1
    audit = gv.audit(noise(1), graph, town_split, "rare")
    assert audit.strongest.headline.value == 1
    assert "too few examples" not in {flag.name for flag in audit.flags} or audit.verdict != "protected"


def test_the_tuning_sample_keeps_rare_classes() -> None:
    y = np.zeros(30_000, dtype=np.int64)
    y[:4], y[4:3004] = 2, 1
    sample = learners._sample(learners.Examples(noise(1, 2, 30_000), y), 6_000, 0)
    counts = np.bincount(sample.y)
    assert counts[2] == 4
    assert counts[1] == pytest.approx(600, abs=1)
    assert len(sample.y) == pytest.approx(6_000, abs=10)


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


def test_a_secret_beside_a_large_offset_is_found(town: Data, town_split: gv.Split) -> None:
    z = noise(1).astype(np.float64)
    z[:, 0] = 1e9 + 10 * town.coin.numpy()
    audit = gv.audit(z, town, town_split, "coin", attacks="quick")
    assert audit.strongest.headline.value > 0.95


def test_pairs_of_very_wide_embeddings_are_described_by_principal_components() -> None:
    pairs = np.array([[0, 1], [2, 3]])
    assert geometry(noise(1, columns=40))(pairs).shape == (2, 5 * 40 + 24)
    assert geometry(noise(1, columns=400))(pairs).shape == (2, 3 * MAX_COLUMNS + 24)


def test_the_row_of_a_known_node_does_not_contain_its_own_class(coin: NodeSecret) -> None:
    """The rows of known nodes are computed from the other half, so a learner cannot copy the answer."""
    rows = propagation.graph_rows(noise(0), coin, coin.known["all"])
    known = coin.known["all"]
    predicted = rows[known.index][:, 1] > rows[known.index][:, 0]
    assert (predicted == known.y).mean() < 0.6


# ----- link secrets ---------------------------------------------------------------------------------------------------


def communities(town: Data) -> np.ndarray:
    """Each node is moved to the mean of its neighbours twice, so linked nodes are close."""
    z = noise(8, columns=16).astype(np.float64)
    source, target = town.edge_index.numpy()
    degree = np.bincount(target, minlength=len(z))[:, None]
    for _ in range(2):
        total = np.zeros_like(z)
        np.add.at(total, target, z[source])
        z = 0.5 * z + 0.5 * total / np.maximum(degree, 1) * 3
    return z


@pytest.mark.parametrize("name", LINK_ATTACKS)
def test_every_link_attack_finds_nothing_in_noise(name: str, town_links: LinkSecret) -> None:
    panel = links.panel(town_links)
    covered = [attack_with(find(name, panel), noise(seed), town_links).headline.covers(0.5) for seed in range(13, 18)]
    assert sum(covered) >= 3


def test_the_names_of_the_panel(town_links: LinkSecret) -> None:
    assert [attack.name for attack in links.panel(town_links)] == LINK_ATTACKS


@pytest.fixture(scope="module")
def islands() -> tuple[Data, gv.Split]:
    """200 islands of six nodes, all linked within: the island of each node determines the links."""
    island = np.repeat(np.arange(200), 6)
    u, v = np.triu_indices(6, 1)
    pairs = np.concatenate([np.stack([u, v]) + 6 * start for start in range(200)], axis=1)
    both = torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1))
    x = torch.from_numpy(noise(1, columns=5, nodes=1200))
    graph = Data(x=x, edge_index=both, y=torch.from_numpy(island % 3))
    return graph, gv.Split.proportional(graph, 0, message_edges="all")


@pytest.mark.parametrize("name", [name for name in LINK_ATTACKS if name != "agreement of predicted labels"])
def test_every_link_attack_finds_planted_links(name: str, islands: tuple[Data, gv.Split]) -> None:
    """The nodes of an island are close. The agreement of classes is coarser, and is tested below."""
    graph, split = islands
    secret = link_secret(graph, split, 0)
    place = np.random.default_rng(0).normal(size=(200, 12))
    place /= np.linalg.norm(place, axis=1, keepdims=True)  # the inner product compares directions
    z = np.repeat(place, 6, axis=0) + 0.02 * noise(2, columns=12, nodes=1200)
    assert attack_with(find(name, links.panel(secret)), z, secret).headline.value > 0.95


@pytest.mark.parametrize("name", ["bilinear", "pair-MLP", "boosted trees on pairs"])
def test_learners_on_pairs_find_links_in_directions_of_small_spread(name: str, islands: tuple[Data, gv.Split]) -> None:
    graph, split = islands
    secret = link_secret(graph, split, 0)
    place = np.repeat(np.random.default_rng(0).normal(size=(200, 6)), 6, axis=0)
    z = with_small_spread(place + 0.02 * noise(2, columns=6, nodes=1200))
    assert attack_with(find(name, links.panel(secret)), z, secret).headline.value > 0.9


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


def test_links_between_distant_nodes_are_found(islands: tuple[Data, gv.Split]) -> None:
    """The two ends of a link point in opposite directions; the sign is chosen on the validation part."""
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
    """The nodes of an island are on a circle: linked nodes are at a few fixed distances."""
    graph, split = islands
    angle = np.tile(np.arange(6), 200) * np.pi / 3
    place = np.random.default_rng(0).normal(size=(200, 2)) * 3
    z = np.repeat(place, 6, axis=0) + np.stack([np.cos(angle), np.sin(angle)], axis=1)
    audit = gv.audit(z, graph, split, "links")
    assert audit.strongest.headline.value > 0.95
    assert audit.excess_with_features is not None
    assert audit.excess_with_features.low > 0.3, "the features are noise"


def test_class_matched_non_links_have_the_classes_of_the_links_and_are_new(town: Data, town_split: gv.Split) -> None:
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
    """In a dense graph the same pair is drawn often."""
    graph = gv.generate(gv.GraphSpec(num_nodes=150, num_edges=2500, num_features=20, num_classes=3), seed=1)
    secret = link_secret(graph, gv.Split.proportional(graph, 0, message_edges="all"), 0)
    assert secret.matched is not None
    parts = (secret.known, secret.val, secret.test, secret.matched.known, secret.matched.val, secret.matched.test)
    codes = [encode_pairs(torch.from_numpy(part.index[:, part.y == 0])) for part in parts]
    every = torch.cat(codes)
    assert len(torch.unique(every)) == len(every)


def test_class_matched_pairs_have_a_model_of_their_own(town: Data, town_split: gv.Split) -> None:
    """Classes predict links, and have ten times the spread of what predicts links within classes."""
    secret = link_secret(town, town_split, 0)
    z = np.concatenate([10 * np.eye(4)[town.y.numpy()], communities(town)], axis=1)
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


def test_any_scikit_learn_classifier_is_an_attack(town: Data, town_split: gv.Split) -> None:
    z = noise(1)
    z[:, 2] += 6 * town.coin.numpy()
    audit = gv.audit(z, town, town_split, "coin", attacks=[GaussianNB()])
    assert {finding.attack for finding in audit.findings} == {"GaussianNB, few", "GaussianNB, all"}
    assert audit.strongest.headline.value > 0.95
    pairs = gv.audit(communities(town), town, town_split, "links", attacks=[GaussianNB()])
    assert pairs.strongest.attack == "GaussianNB on pairs"
    assert pairs.strongest.headline.low > 0.6


@pytest.mark.parametrize(
    ("attacks", "sentence"), [([], "list of attacks is empty"), ("fast", "full, quick"), ([3], "is not an attack")]
)
def test_what_is_not_an_attack_raises_an_error(
    attacks: object, sentence: str, town: Data, town_split: gv.Split
) -> None:
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
