"""The origin of a graph still describes it after changes, or is refused."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.data import find_leaky_columns
from graphveil.data.degree_features import degree_features, is_structural
from graphveil.data.origin import Column, Encoding, Origin, class_names, node_ids, origin_of
from graphveil.training.inputs import features
from tests.data.readers.made import star, tables

CPU = torch.device("cpu")


def test_a_part_of_a_graph_that_was_read_has_no_ids_of_its_own(tmp_path: Path) -> None:
    part = star(tmp_path).subgraph(torch.tensor([0, 2, 4]))
    part.y = torch.tensor([0, 1, 0])
    for ask in (node_ids, origin_of, lambda graph: class_names(graph, "labels", 2)):
        with pytest.raises(gv.GraphveilError, match="3 nodes, but 6 ids from when it was read: read tables of these"):
            ask(part)
    with pytest.raises(gv.GraphveilError, match="6 ids"):
        features(part, [], "sum", CPU)
    del part.origin
    assert node_ids(part).to_pylist() == [0, 1, 2], "as the sentence advises"


def test_numbers_of_links_of_any_size_are_recognised() -> None:
    sizes = [0, 1, 2, 3, *(size for power in range(2, 21) for size in (2**power - 2, 2**power - 1, 2**power))]
    loops = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    x = degree_features(loops[None], len(sizes))
    graph = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long))
    assert not is_structural(graph), "nobody says so"
    graph.origin = Origin(node_ids(graph), structural=True)
    assert is_structural(graph)
    assert not is_structural(Data(x=x.roll(1, dims=1), origin=graph.origin))


def test_columns_are_named_by_position_once_x_is_replaced(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path))
    graph.x = graph.y[:, None].float()
    assert [name for name, _ in find_leaky_columns(graph, "labels")] == ["x[0]"]


ENCODING = Encoding(
    (
        Column("age", "number", 1, 40.0, 2.5),
        Column("city", "category", 2, categories=["oslo", "rome"]),
        Column("counts", "matrix", 2, categories=["w0", "w1"]),
        Column("x", "matrix", 7),
    ),
    {"labels": ["a", "b"], "pay": ["1 to 2", "3"]},
    {"pay": [2.5]},
)


def plain() -> dict[str, Any]:
    """As a record has it."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(ENCODING)))
    return found


def test_an_encoding_comes_back_from_a_record() -> None:
    assert json.loads(json.dumps(asdict(Encoding.from_plain(plain())))) == plain()


@pytest.mark.parametrize(
    "alter",
    [
        lambda values: values.pop("columns"),
        lambda values: values.update(columns=None),
        lambda values: values.update(columns=["age"]),
        lambda values: values.update(classes=[]),
        lambda values: values.update(cuts=None),
        lambda values: values["columns"][0].pop("name"),
        lambda values: values["columns"][0].update(name=3),
        lambda values: values["columns"][0].update(kind="word"),
        lambda values: values["columns"][0].update(kind=[]),
        lambda values: values["columns"][0].update(width=2),
        lambda values: values["columns"][0].update(width="1"),
        lambda values: values["columns"][0].update(mean="40"),
        lambda values: values["columns"][0].update(mean=float("nan")),
        lambda values: values["columns"][0].update(deviation=0),
        lambda values: values["columns"][0].update({"a\nb": 1}),
        lambda values: values["columns"][1].update(categories=["oslo"]),
        lambda values: values["columns"][1].update(categories="ab"),
        lambda values: values["columns"][1].update(categories=[1, 2]),
        lambda values: values["columns"][3].update(width=-7),
        lambda values: values["classes"].update(labels="ab"),
        lambda values: values["classes"].update(labels=[0, 1]),
        lambda values: values["cuts"].update(pay=[3, 2]),
        lambda values: values["cuts"].update(pay=["2"]),
        lambda values: values["cuts"].update(age=[3]),
    ],
)
def test_an_edited_record_is_refused(alter: Callable[[dict[str, Any]], object]) -> None:
    values = plain()
    alter(values)
    with pytest.raises(gv.GraphveilError, match=r"the encoding in run\.json cannot be read") as caught:
        Encoding.from_plain(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [None, [], "encoding", 3])
def test_a_record_that_is_no_encoding_is_refused(values: Any) -> None:
    with pytest.raises(gv.GraphveilError, match="cannot be read"):
        Encoding.from_plain(values)
