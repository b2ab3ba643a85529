"""Whose classes and which links an encoder was trained on, and which others are tested."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from torch_geometric.data import Data

from graphveil.data import Split
from graphveil.data.origin import Origin
from graphveil.runs.trained_on import TrainedOn, exclude_trained, too_few

NODES = 60


def ring(ids: Sequence[Any]) -> Data:
    """Every node is linked with the next."""
    around = torch.arange(len(ids))
    links = torch.stack([around, around.roll(-1)])
    graph = Data(x=torch.ones(len(ids), 1), edge_index=links, y=around % 2)
    graph.origin = Origin(pa.array(ids))
    return graph


def ends(graph: Data, pairs: torch.Tensor) -> set[frozenset[str]]:
    ids = [str(name) for name in graph.origin.ids.to_pylist()]
    return {frozenset((ids[one], ids[other])) for one, other in pairs.t().tolist()}


@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize("kind_now", [int, str])
def test_nodes_are_known_by_their_ids_whatever_these_are(kind: type, kind_now: type, tmp_path: Path) -> None:
    """The same ring from its seventh node on, in which 100 stands where 3 did, beside ids that are words or numbers."""
    before = ring([kind(number) for number in range(NODES)])
    split = Split.proportional(before, 0, "all", ["labels", "links"])
    TrainedOn.of(before, split, ["labels", "links"]).write(tmp_path)
    seen = TrainedOn.read(tmp_path)
    now = ring([kind_now(100 if number == 3 else number) for number in [*range(7, NODES), *range(7)]])
    rest = exclude_trained(Split.proportional(now, 0, "all", ["labels", "links"]), now, seen)

    trained = ends(before, split.train_links)
    held_out = ends(now, torch.cat([rest.val_links, rest.test_links], dim=1))
    assert len(trained) == 51
    assert len(held_out) == 9, "as many as before: 9 were not trained on, and those of 3 that were are new"
    assert not held_out & trained
    assert held_out | ends(now, rest.train_links) == ends(now, now.edge_index)
    knew = {str(before.origin.ids[node].as_py()) for node in split.defender_nodes("all").tolist()}
    rest_nodes = torch.cat([rest.val_nodes, rest.test_nodes]).tolist()
    assert rest_nodes
    assert not knew & {str(now.origin.ids[node].as_py()) for node in rest_nodes}


def test_held_out_pairs_are_as_many_links_as_non_links(tmp_path: Path) -> None:
    """Of the run's ring all links but four are taken away that were not trained on."""
    before = ring(range(NODES))
    split = Split.proportional(before, 0, "all", ["links"])
    new = split.val_links[:, :1], split.test_links[:, :3]
    now = before.clone()
    now.edge_index = torch.cat([split.train_links, *new], dim=1)
    drawn = Split.proportional(now, 0, "all", ["links"])
    rest = exclude_trained(drawn, now, TrainedOn.of(before, split, ["links"]))
    assert drawn.test_links.size(1) + drawn.val_links.size(1) == 55 * 15 // 100 == 8
    assert ends(now, torch.cat([rest.val_links, rest.test_links], dim=1)) == ends(now, torch.cat(new, dim=1))
    assert (rest.val_links.size(1), rest.test_links.size(1)) == (1, 3)
    assert rest.val_nonlinks.equal(drawn.val_nonlinks[:, :1])
    assert rest.test_nonlinks.equal(drawn.test_nonlinks[:, :3])
    assert too_few(now, rest, "links") is None


def test_a_training_without_links_says_nothing_of_them(tmp_path: Path) -> None:
    graph = ring(range(NODES))
    split = Split.proportional(graph, 0, "all", ["labels"])
    TrainedOn(None, pa.table({"one": [1], "other": [2]})).write(tmp_path)
    TrainedOn.of(graph, split, ["labels", "other"]).write(tmp_path)
    seen = TrainedOn.read(tmp_path)
    assert seen.links is None, "nor is what lay there before taken for its own"
    assert seen.not_recorded(["labels"]) == []
    assert seen.not_recorded(["labels", "links"]) == ["links"]
    assert TrainedOn(None, None).not_recorded(["labels", "links"]) == ["nodes", "links"]
    rest = exclude_trained(split, graph, seen)
    assert rest.train_links is split.train_links
