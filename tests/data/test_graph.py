import pytest
import torch
from torch_geometric.data import Data

from graphveil.data import check_graph, digest, node_classes
from graphveil.data.graph import both_directions, columns_of, decode_pairs, encode_pairs, sorted_codes, undirected_pairs
from graphveil.errors import GraphveilError


def test_undirected_pairs_drop_loops_directions_and_duplicates() -> None:
    edge_index = torch.tensor([[2, 0, 1, 3, 0, 2], [0, 2, 1, 2, 2, 3]])
    assert undirected_pairs(edge_index).tolist() == [[0, 2], [2, 3]]


def test_narrow_integers_do_not_overflow() -> None:
    edge_index = torch.tensor([[80_000], [70_000]], dtype=torch.int32)
    assert undirected_pairs(edge_index).tolist() == [[70_000], [80_000]]


def test_pair_codes_count_all_pairs_without_a_gap() -> None:
    """(0, 1), (0, 2), (1, 2), (0, 3), ...: the code of (u, v) is the number of pairs before it."""
    pairs = torch.tensor([(u, v) for v in range(1, 50) for u in range(v)]).t()
    assert encode_pairs(pairs).tolist() == list(range(50 * 49 // 2))
    assert torch.equal(decode_pairs(encode_pairs(pairs)), pairs)


@pytest.mark.parametrize("n", [2**20, 2**26, 10**8])
def test_pair_codes_of_large_graphs_survive_the_square_root(n: int) -> None:
    v = torch.cat([torch.arange(n - 500, n), torch.randint(1, n, (500,))])
    first, last = torch.stack([torch.zeros_like(v), v]), torch.stack([v - 1, v])
    for pairs in (first, last):
        assert torch.equal(decode_pairs(encode_pairs(pairs)), pairs)


def test_both_directions_doubles_each_link() -> None:
    assert both_directions(torch.tensor([[0], [3]])).tolist() == [[0, 3], [3, 0]]


def tiny(**changes: object) -> Data:
    parts = {"x": torch.ones(3, 2), "edge_index": torch.tensor([[0, 1], [1, 2]]), "y": torch.tensor([0, 1, 0])}
    return Data(**parts | changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"x": None}, "has no x"),
        ({"edge_index": None}, "has no edge_index"),
        ({"x": torch.ones(3, 2).to_sparse()}, r"x\.to_sparse_csr\(\)"),
        ({"x": torch.ones(3)}, "one row of features per node"),
        ({"x": torch.ones(0, 2), "edge_index": torch.empty(2, 0, dtype=torch.long)}, "at least one node"),
        ({"edge_index": torch.tensor([[0, 1, 2]])}, r"expected \(2, number of edges\)"),
        ({"edge_index": torch.tensor([[0.0], [1.0]])}, "whole numbers"),
        ({"edge_index": torch.tensor([[True], [False]])}, "whole numbers"),
        ({"edge_index": torch.tensor([[0], [3]])}, "has node 3, but the graph has nodes 0 to 2"),
        ({"edge_index": torch.tensor([[0], [-1]])}, "has node -1"),
        ({"x": torch.tensor([[1.0], [float("nan")], [2.0]])}, "NaN or infinite"),
    ],
)
def test_a_graph_that_cannot_be_trained_on_is_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(GraphveilError, match=says):
        check_graph(tiny(**changes))


def test_node_classes_by_name() -> None:
    graph = tiny(dorm=torch.tensor([1, -1, 0]))
    assert node_classes(graph, "labels").tolist() == [0, 1, 0]
    assert node_classes(graph, "dorm").tolist() == [1, -1, 0]
    with pytest.raises(GraphveilError, match=r"no 'gender'.*dorm"):
        node_classes(graph, "gender")
    with pytest.raises(GraphveilError, match="whole numbers"):
        node_classes(tiny(age=torch.rand(3)), "age")
    for classes in ([0, -2, 1], [0, 1, 3]):
        with pytest.raises(GraphveilError, match=r"number the classes from 0"):
            node_classes(tiny(dorm=torch.tensor(classes)), "dorm")
    with pytest.raises(GraphveilError, match="one class for each of 3 nodes"):
        node_classes(tiny(age=torch.tensor([1])), "age")


def test_the_digest_sees_every_part() -> None:
    same = {digest(tiny()), digest(tiny())}
    assert len(same) == 1
    others = [
        tiny(x=torch.zeros(3, 2)),
        tiny(y=torch.tensor([0, 1, 1])),
        tiny(edge_index=torch.tensor([[0, 1], [2, 2]])),
        tiny(extra=torch.tensor([1, 2, 3])),
    ]
    assert len(same | {digest(other) for other in others}) == 5


@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_a_graph_in_order_is_not_sorted_again(block: int, graph: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is the same as for the edges in any other order, whatever the size of the blocks."""
    monkeypatch.setattr("graphveil.data.graph.BLOCK", block)
    shuffled = graph.edge_index[:, torch.randperm(graph.edge_index.size(1))]
    pairs = undirected_pairs(shuffled)
    in_order = both_directions(pairs)
    assert undirected_pairs(in_order).data_ptr() == in_order.data_ptr()
    assert undirected_pairs(in_order).equal(pairs)
    for place in (0, pairs.size(1) // 2, pairs.size(1) - 1):  # one link differs between the two directions
        broken = in_order.clone()
        broken[:, place] = torch.tensor([0, 1499])
        expected = torch.cat([pairs, torch.tensor([[0], [1499]])], dim=1)
        assert undirected_pairs(broken).equal(undirected_pairs(expected))


@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_columns_of_links(block: int, graph: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphveil.data.graph.BLOCK", block)
    pairs = undirected_pairs(graph.edge_index)
    chosen = torch.randperm(pairs.size(1))[:50]
    assert columns_of(pairs[:, chosen], pairs).equal(chosen.sort().values)
    assert columns_of(pairs[:, :0], pairs).tolist() == []
    assert sorted_codes([pairs[:, chosen[:20]], pairs[:, chosen[20:]]]).equal(
        encode_pairs(pairs[:, chosen]).sort().values
    )
