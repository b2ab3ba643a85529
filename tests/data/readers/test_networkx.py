"""NetworkX graphs with any nodes and weights, and XML files whose definitions are refused."""

from pathlib import Path

import networkx as nx
import pytest
from torch_geometric.utils import to_networkx

import graphveil as gv
from tests.data.readers.made import SMALL_LINKS, links, refusal, small


def test_multigraphs_and_weights_of_networkx() -> None:
    made = nx.MultiGraph()
    made.add_edge(1, 2, weight=3)
    made.add_edge(1, 2, weight=0.5)
    made.add_edge(2, 2)
    made.add_edge(2, 3, weight=1)
    graph = gv.read_graph(made)
    assert graph.origin.ids.to_pylist() == [1, 2, 3]
    assert links(graph) == [(1, 2), (2, 3)]
    assert "the graph, link (2, 2), has a link without a weight" in refusal(made, min_weight=1)
    made.remove_edge(2, 2)
    assert links(gv.read_graph(made, min_weight=1.5)) == [(1, 2)]
    assert links(gv.read_graph(made, direction="mutual")) == [(1, 2), (2, 3)], "an undirected link is mutual"


def test_nodes_of_any_kind_in_networkx() -> None:
    made = nx.Graph([("a", 1), (1, (2, 3))])
    assert gv.read_graph(made).origin.ids.to_pylist() == ["a", "1", "(2, 3)"]
    made.add_node("1")
    assert "two nodes with the same id as text" in refusal(made)
    graph = gv.read_graph(to_networkx(small()))
    assert links(graph) == SMALL_LINKS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_xml_with_definitions_is_refused(tmp_path: Path, encoding: str) -> None:
    bomb = "".join(f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">' for level in range(1, 9))
    xml = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE g [<!ENTITY a0 "lol">{bomb}]><graphml>&a8;</graphml>'
    for kind in ("graphml", "gexf"):
        (tmp_path / f"bomb.{kind}").write_text(xml, encoding=encoding)
        assert "has a DOCTYPE" in refusal(tmp_path / f"bomb.{kind}")
    (tmp_path / "torn.graphml").write_text("<graphml>\n<graph")
    assert "cannot be read as graphml" in refusal(tmp_path / "torn.graphml")
    (tmp_path / "words.graphml").write_text("hello\n")
    assert "words.graphml, line 1, column 1, is not XML" in refusal(tmp_path / "words.graphml")
    (tmp_path / "deep.gml").write_text("graph [ " + "a [ " * 100_000)
    assert "deep.gml cannot be read as gml" in refusal(tmp_path / "deep.gml")
