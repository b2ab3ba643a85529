"""A graph in PyG's stores is read like a `Data`, and trains to the same embeddings."""

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data, EdgeAttr, FeatureStore, GraphStore, TensorAttr
from torch_geometric.testing.feature_store import MyFeatureStore
from torch_geometric.testing.graph_store import MyGraphStore

import graphveil as gv
from graphveil.data.readers import stores
from tests.data.readers.test_mapped import is_mapped


class Both(FeatureStore, GraphStore):  # type: ignore[misc]
    """One object with the features and the links of two stores."""

    def __init__(self, features: FeatureStore, links: GraphStore) -> None:
        FeatureStore.__init__(self)
        GraphStore.__init__(self)
        self.__dict__["parts"] = (features, links)

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        tensor: Tensor = self.parts[0]._get_tensor(attr)
        return tensor

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        return tuple(self.parts[0]._get_tensor_size(attr))

    def _get_edge_index(self, edge_attr: EdgeAttr) -> tuple[Tensor, Tensor]:
        edges: tuple[Tensor, Tensor] = self.parts[1]._get_edge_index(edge_attr)
        return edges

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        return list(self.parts[0].get_all_tensor_attrs())

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        return list(self.parts[1].get_all_edge_attrs())

    def _refuse(self, *_: object) -> bool:
        raise NotImplementedError

    _put_tensor = _remove_tensor = _put_edge_index = _remove_edge_index = _refuse


def fill(features: FeatureStore, links: GraphStore, graph: Data) -> None:
    features.put_tensor(graph.x.to_dense(), group_name=None, attr_name="x", index=None)
    features.put_tensor(graph.y, group_name=None, attr_name="y", index=None)
    features.put_tensor(graph.secret, group_name=None, attr_name="secret", index=None)
    links.put_edge_index(graph.edge_index, edge_type=None, layout="coo", size=(150, 150))


@pytest.fixture
def dense(small: Data) -> Data:
    return gv.read_graph(Data(x=small.x.to_dense(), edge_index=small.edge_index, y=small.y, secret=small.secret))


@pytest.mark.parametrize("kind", ["pair", "reversed", "both"])
def test_stores_are_the_same_graph_as_a_data(
    small: Data, dense: Data, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "ROWS_AT_ONCE", 64)
    features, links = MyFeatureStore(), MyGraphStore()
    fill(features, links, small)
    source = {"pair": (features, links), "reversed": [links, features], "both": Both(features, links)}[kind]
    graph = gv.read_graph(source)
    assert is_mapped(graph.x)
    for part in ("x", "edge_index", "y", "secret"):
        assert graph[part].equal(dense[part]), part


@pytest.mark.parametrize("batch_size", [None, 32])
def test_a_training_from_stores_gives_the_same_bytes(
    small: Data, dense: Data, quick: gv.Recipe, batch_size: int | None
) -> None:
    features, links = MyFeatureStore(), MyGraphStore()
    fill(features, links, small)

    def train(graph: Data) -> Tensor:
        veil = gv.Veil("links", "labels", "sage", recipe=quick.but(rounds=6, batch_size=batch_size), device="cpu")
        return veil.fit_transform(graph, gv.Split.proportional(graph, 2))

    assert train(gv.read_graph((features, links))).equal(train(dense))


def test_links_in_other_layouts_and_stores_without_features_are_read(small: Data, dense: Data) -> None:
    features, links = MyFeatureStore(), MyGraphStore()
    features.put_tensor(small.y, group_name=None, attr_name="y", index=None)
    start = torch.searchsorted(small.edge_index[0].sort().values, torch.arange(151))
    column = small.edge_index[1][small.edge_index[0].argsort(stable=True)]
    links.put_edge_index((start, column), edge_type=None, layout="csr", size=(150, 150))
    graph = gv.read_graph((features, links))
    assert graph.edge_index.equal(dense.edge_index)
    assert graph.x.size(0) == 150


def test_other_stores_are_refused_in_one_sentence(small: Data) -> None:
    features, links = MyFeatureStore(), MyGraphStore()
    fill(features, links, small)
    features.put_tensor(small.y, group_name="movie", attr_name="year", index=None)
    with pytest.raises(gv.GraphveilError, match=r"nodes of 2 types \(None, movie\): give a store of one type"):
        gv.read_graph((features, links))
    flat, several = MyFeatureStore(), MyGraphStore()
    flat.put_tensor(small.y, group_name=None, attr_name="x", index=None)
    with pytest.raises(gv.GraphveilError, match=r"features of shape \(150,\): expected one row for each node"):
        gv.read_graph((flat, links))
    for kind in ("likes", "knows"):
        several.put_edge_index(small.edge_index, edge_type=("a", kind, "a"), layout="coo", size=(150, 150))
    with pytest.raises(gv.GraphveilError, match="links of 2 types: give a store with one type"):
        gv.read_graph((MyFeatureStore(), several))
