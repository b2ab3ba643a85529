"""Rows of links become simple links; what is dropped is counted or refused."""

from pathlib import Path

import graphveil as gv
from tests.data.readers.made import links, refusal, tables

MESSY = "source,target,weight\na,b,1\nb,a,2\na,b,3\nb,c,.5\nc,c,9\nc,d,4\n"


def test_what_is_dropped_is_counted(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path, MESSY, nodes=None))
    assert links(graph) == [("a", "b"), ("b", "c"), ("c", "d")]
    notes = " ".join(graph.origin.notes)
    assert "1 self-loop dropped." in notes
    assert "1 duplicate link dropped." in notes
    assert "1 link exists in both directions and counts once" in notes
    assert "3 links from 6 rows." in notes


def test_options_of_links(tmp_path: Path) -> None:
    folder = tables(tmp_path, MESSY, nodes=None)
    assert links(gv.read_graph(folder, direction="mutual")) == [("a", "b")]
    assert links(gv.read_graph(folder, min_weight=2.5)) == [("a", "b"), ("c", "d")]
    assert "edges.csv, line 6, links a node to itself" in refusal(folder, loops="refuse")
    assert "edges.csv, line 4, repeats a link" in refusal(folder, duplicates="refuse")
    assert "line 3, repeats a link" in refusal(
        tables(tmp_path, "source,target\na,b\na,b\nc,c\n", nodes=None), duplicates="refuse"
    )


def test_the_place_of_a_weight_that_is_not_a_number(tmp_path: Path) -> None:
    folder = tables(tmp_path, "source,target,weight\na,b,1\nb,c,\nc,d,heavy\nd,a,light\n", nodes=None)
    assert "edges.csv, line 4, column 'weight', has a weight that is not a number" in refusal(folder)
