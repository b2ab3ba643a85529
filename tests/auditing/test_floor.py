"""The floor of links: the AUC that the kept classes imply."""

import pytest
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import Context, Utility, links
from graphveil.data import UNKNOWN
from tests.auditing.made import noise


def test_the_floor_uses_the_kept_classes(town: Data, town_split: gv.Split) -> None:
    context = Context(utility=Utility("coin", 0.8, 0.5, 500))
    panel = [links.Distance("cosine")]
    of_coin = gv.audit(noise(1), town, town_split, "links", attacks=panel, context=context).floor
    of_labels = gv.audit(noise(1), town, town_split, "links", attacks=panel).floor
    assert of_coin is not None
    assert of_labels is not None
    assert of_coin.covers(0.5), "a coin does not predict links"
    assert of_labels.low > 0.6


def test_the_floor_ignores_nodes_of_unknown_class(town: Data, town_split: gv.Split) -> None:
    """As in Citeseer."""
    graph = town.clone()
    graph.y[town_split.spare_nodes[:5]] = UNKNOWN
    graph.y[town_split.test_nodes[:20]] = UNKNOWN
    panel = [links.Distance("cosine")]
    known, partly = (gv.audit(noise(1), one, town_split, "links", attacks=panel).floor for one in (town, graph))
    assert known is not None
    assert partly is not None
    assert partly.value == pytest.approx(known.value, abs=0.02)
