import pytest
import torch

import graphveil as gv
from graphveil.data import digest


def test_sizes_are_those_of_the_spec_and_features_stay_sparse() -> None:
    graph = gv.generate(gv.GraphSpec(num_nodes=500, num_edges=2000, num_features=90, num_classes=3), seed=1)
    assert graph.edge_index.shape == (2, 4000)
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.shape == (500, 90)
    assert graph.y.unique().tolist() == [0, 1, 2]
    assert graph.secret.unique().tolist() == [0, 1]
    loops = graph.edge_index[0] == graph.edge_index[1]
    assert not loops.any()
    assert graph.edge_index.unique(dim=1).size(1) == 4000


def test_links_prefer_their_class_and_degrees_are_skewed() -> None:
    graph = gv.generate(gv.GraphSpec(num_nodes=5000, num_edges=20000, homophily=0.8), seed=0)
    u, v = graph.edge_index
    same = float((graph.y[u] == graph.y[v]).float().mean())
    assert same == pytest.approx(0.8 + 0.2 / 5, abs=0.02), "homophily, and a fifth of the rest by chance"
    degrees = torch.bincount(u, minlength=5000).float()
    assert degrees.max() > 10 * degrees.median()


def test_the_secret_is_planted_in_its_own_words() -> None:
    from sklearn.linear_model import LogisticRegression

    graph = gv.generate(seed=0)
    x, y = graph.x.to_dense().numpy(), graph.secret.numpy()
    accuracy = LogisticRegression(max_iter=1000).fit(x[:1000], y[:1000]).score(x[1000:], y[1000:])
    assert accuracy > 0.85, "three words of twenty name it"
    without = gv.generate(gv.GraphSpec(secret_share=0.0), seed=0)
    x, y = without.x.to_dense().numpy(), without.secret.numpy()
    accuracy = LogisticRegression(max_iter=1000).fit(x[:1000], y[:1000]).score(x[1000:], y[1000:])
    assert accuracy < 0.65, "what is left is the class's bias of .1 either way"


def test_same_seed_same_bytes() -> None:
    assert digest(gv.generate(seed=4)) == digest(gv.generate(seed=4)) != digest(gv.generate(seed=5))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (gv.GraphSpec(num_nodes=5), "two nodes per class"),
        (gv.GraphSpec(num_nodes=100, num_edges=2000), "from 1 to 1237"),
        (gv.GraphSpec(num_features=3), "at least 7 features"),
        (gv.GraphSpec(num_nodes=60, num_edges=440, homophily=1.0, num_classes=6), "less homophily"),
    ],
)
def test_what_cannot_be_generated_is_refused(spec: gv.GraphSpec, says: str) -> None:
    with pytest.raises(gv.GraphveilError, match=says):
        gv.generate(spec)
