"""Columns that tell a target by themselves are found, with how well they do."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.data import find_leaky_columns
from graphveil.data.sparse import csr_from_rows


def read(folder: Path, count: int = 4000, **columns: object) -> Data:
    pq.write_table(pa.table({"id": np.arange(count), **columns}), folder / "nodes.parquet")
    (folder / "edges.csv").write_text("u,v\n0,1\n")
    return gv.read_graph(folder, attributes=["secret"])


def test_skills_are_those_of_the_rule_that_made_the_columns(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    secret = random.choice(3, 4000, p=[0.5, 0.3, 0.2])
    half = random.random(4000) < 0.5
    majority = np.bincount(secret).max() / 4000
    noisy = np.where(half, secret, random.choice(3, 4000, p=[0.5, 0.3, 0.2]))
    graph = read(
        tmp_path,
        secret=np.array(["a", "b", "c"])[secret],
        town=np.array(["rome", "oslo", "bonn"])[secret],
        score=secret + 0.01 * random.random(4000),
        noisy=np.array(["u", "v", "w"])[noisy],
        noise=random.random(4000),
        words=random.choice(["x", "y"], 4000),
    )
    found = dict(find_leaky_columns(graph, "secret"))
    assert found["town"] == 1
    assert found["score"] == pytest.approx(1, abs=0.05), "bins of equal size cut through a class at most twice"
    accuracy = sum(np.bincount(secret[noisy == value]).max() for value in range(3)) / 4000
    assert found["noisy"] == pytest.approx((accuracy - majority) / (1 - majority), abs=0.02)
    assert found.get("noise", 0) < 0.02
    assert found.get("words", 0) < 0.02
    assert [name for name, _ in find_leaky_columns(graph, "secret")][:2] == ["town", "score"]


@pytest.mark.parametrize(("count", "classes"), [(600, 60), (4000, 60), (20_000, 2000)])
def test_a_numeric_copy_of_many_classes_is_found(tmp_path: Path, count: int, classes: int) -> None:
    """Of a district's number, in no order, only the value itself tells the district; no bin of equal size does."""
    random = np.random.default_rng(0)
    secret = random.permutation(np.arange(count) % classes)
    number = random.permutation(10 * classes)[:classes][secret]
    names = np.array([f"zone {code}" for code in range(classes)])
    graph = read(tmp_path, count, secret=names[secret], number=number, other=random.permutation(number))
    found = dict(find_leaky_columns(graph, "secret"))
    assert found["number"] > 0.99, "but for districts that are in one half only"
    assert found.get("other", 0) < 0.02


def test_a_measure_in_the_order_of_many_classes_is_found(tmp_path: Path) -> None:
    """No value comes twice; of eight bins a class, one at most has two classes, and of these it tells one."""
    random = np.random.default_rng(0)
    secret = np.arange(6000) % 60
    names = np.array([f"zone {code:02}" for code in range(60)])
    graph = read(tmp_path, 6000, secret=names[secret], north=secret + 0.9 * random.random(6000))
    assert dict(find_leaky_columns(graph, "secret"))["north"] > 1 - 1 / 8


def test_a_measure_of_few_nodes_is_found(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    secret = np.arange(300) % 2
    graph = read(tmp_path, 300, secret=np.array(["n", "y"])[secret], dose=secret + 0.9 * random.random(300))
    assert dict(find_leaky_columns(graph, "secret"))["dose"] > 0.9


def test_missing_values_can_tell(tmp_path: Path) -> None:
    secret = np.arange(4000) % 2
    ages = [None if odd else 20 + place % 40 for place, odd in enumerate(secret)]
    graph = read(tmp_path, secret=np.array(["n", "y"])[secret], age=pa.array(ages))
    assert dict(find_leaky_columns(graph, "secret"))["age"] > 0.9


def test_columns_of_a_graph_that_was_not_read() -> None:
    y = torch.arange(600) % 3
    words = torch.stack([y, 3 + torch.arange(600) % 50], dim=1)
    graph = Data(x=csr_from_rows(words, 60), edge_index=torch.tensor([[0], [1]]), y=y)
    found = find_leaky_columns(graph, "labels")
    assert {name for name, _ in found[:3]} == {"x[0]", "x[1]", "x[2]"}
    assert found[0][1] == pytest.approx(0.5, abs=0.01), "a word that only one of three classes has leaves two"
    dense = Data(x=graph.x.to_dense(), edge_index=graph.edge_index, y=y)
    assert find_leaky_columns(dense, "labels") == found


def test_nothing_tells_one_class_or_no_class() -> None:
    graph = Data(x=torch.eye(6), edge_index=torch.tensor([[0], [1]]), y=torch.zeros(6, dtype=torch.long))
    assert find_leaky_columns(graph, "labels") == []
    graph.y = torch.full((6,), -1)
    assert find_leaky_columns(graph, "labels") == []
