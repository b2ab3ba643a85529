"""Which columns become labels, attributes and features, and what stands for missing features."""

from pathlib import Path

import numpy as np
import pytest
import torch

import graphveil as gv
from tests.data.readers.made import EDGES, OLD, people, refusal, tables


def test_features_can_be_chosen(tmp_path: Path) -> None:
    folder = people(tmp_path, "n: 1 3 5", "m: 2 2 8", "g: x y x")
    assert gv.read_graph(folder, features=["m"], attributes=["g"]).x.size(1) == 1
    assert gv.read_graph(folder, drop=["m", "g"]).x.size(1) == 1
    assert "'g' is a target and cannot also be a feature" in refusal(folder, features=["g"], attributes=["g"])
    assert "nodes.csv has no column 'nn': it has 'n', 'm', 'g'. Did you mean 'n'?" in refusal(folder, features=["nn"])


def test_a_newer_table_may_lack_the_secret(tmp_path: Path) -> None:
    old = gv.read_graph(people(tmp_path, *OLD), attributes=["g"])
    graph = gv.read_graph(people(tmp_path, *OLD[:2], OLD[3]), attributes=["g"], encoding=old.origin.encoding)
    assert torch.equal(graph.x, old.x)
    assert "g" not in graph
    assert any("The column 'g' is missing" in note for note in graph.origin.notes)


@pytest.mark.parametrize("name", ["x", "y", "edge_index", "num_nodes", "origin", "links", "labels"])
def test_an_attribute_is_not_called_like_a_part_of_a_graph(tmp_path: Path, name: str) -> None:
    assert f"cannot be called '{name}'" in refusal(people(tmp_path, f"{name}: a b a"), attributes=[name])


def test_labels_are_detected_unless_they_are_identifiers(tmp_path: Path) -> None:
    assert gv.read_graph(people(tmp_path, "Class: a b a a")).y.tolist() == [0, 1, 0, 0]
    assert gv.read_graph(people(tmp_path, "labels: a b a a")).y.tolist() == [0, 1, 0, 0]
    graph = gv.read_graph(people(tmp_path, "label: Ann Bob Cid Dee"))
    assert "y" not in graph
    assert any("'label' is not used as labels" in note for note in graph.origin.notes)


def test_missing_features_are_the_degree_or_to_be_learned(tmp_path: Path) -> None:
    folder = tables(tmp_path, EDGES, nodes=None)
    graph = gv.read_graph(folder)
    assert graph.origin.structural
    assert graph.x[:, 1].tolist() == pytest.approx(np.log([2, 3, 3, 2]))
    learned = gv.read_graph(folder, missing="embedding")
    assert learned.x.layout == torch.sparse_csr
    assert learned.x.to_dense().tolist() == np.eye(4).tolist()
    assert not learned.origin.structural


@pytest.mark.parametrize("field", ["attributes", "features", "drop"])
def test_the_id_is_nothing_else(tmp_path: Path, field: str) -> None:
    assert "'id' is the id of nodes.csv" in refusal(tables(tmp_path), **{field: ["id"]})
