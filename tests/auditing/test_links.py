"""Attacks on links: of any scale and at any distance, by classes and beyond them."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import links, panel
from graphveil.auditing.secret import link_secret
from tests.auditing.made import attack_with, communities, find, noise


@pytest.mark.parametrize("factor", [1e-30, 1e-12, 1e25])
def test_the_scale_of_z_changes_nothing(factor: float, hamlet: Data, hamlet_split: gv.Split) -> None:
    z = communities(hamlet)
    for kind in ("cosine", "Euclidean", "Canberra"):
        one, other = (
            gv.audit(each, hamlet, hamlet_split, "links", attacks=[links.Distance(kind)]).strongest.headline.value
            for each in (z, z * factor)
        )
        assert one == pytest.approx(other, abs=1e-3)


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
    monkeypatch.setattr(panel, "known_link_tasks", lambda *_: [])
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
