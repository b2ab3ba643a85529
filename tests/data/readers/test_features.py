"""Columns as features, and a newer table encoded like an older one."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

import graphveil as gv
from graphveil.data.origin import Encoding
from tests.data.readers.made import OLD, people, refusal, tables


def test_columns_become_features_by_what_they_hold(tmp_path: Path) -> None:
    folder = people(tmp_path, "n: 1 3 . 5", "b: true false . true", "c: 7 7 7 7", "w: u . v u", "empty: . . . .")
    graph = gv.read_graph(folder)
    spread = float(np.std([1, 3, 5]))
    expected: list[list[float]] = [
        [-2 / spread, 0, 1, 1, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0, 1],
        [2 / spread, 0, 1, 1, 0],
    ]
    assert np.allclose(graph.x, expected)
    kinds = [(column.name, column.kind, column.width) for column in graph.origin.encoding.columns]
    assert kinds == [("n", "number", 1), ("b", "category", 2), ("w", "category", 2)]
    notes = " ".join(graph.origin.notes)
    assert "'c' is not used as a feature: all its values are equal." in notes
    assert "'empty' is not used as a feature: it is empty." in notes
    assert "1 value of 'n' is missing or infinite and is replaced by the mean." in notes


def test_names_are_no_features(tmp_path: Path) -> None:
    words = [f"person-{number}" for number in range(60)] * 2
    nodes = "id,word,name\n" + "".join(f"{row},{word},p{row}\n" for row, word in enumerate(words))
    graph = gv.read_graph(tables(tmp_path, "u,v\n0,1\n", nodes))
    assert graph.origin.structural
    assert any("'word' is not used as a feature: it has 60 different values." in note for note in graph.origin.notes)
    assert any("'name' is not used as a feature: every value is different." in note for note in graph.origin.notes)


def bag(folder: Path, counts: np.ndarray) -> Path:
    columns = {"id": pa.array(np.arange(len(counts)))}
    columns |= {f"w{number}": pa.array(column) for number, column in enumerate(counts.T)}
    columns["age"] = pa.array(np.arange(len(counts)) + 20.0)
    pq.write_table(pa.table(columns), folder / "nodes.parquet")
    (folder / "edges.csv").write_text("u,v\n0,1\n")
    return folder


def test_many_counts_stay_as_they_are_and_sparse(tmp_path: Path) -> None:
    counts = np.zeros((40, 80), dtype=np.int64)
    counts[np.arange(40), np.arange(40)] = 3
    graph = gv.read_graph(bag(tmp_path, counts))
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.to_dense()[:, :80].long().tolist() == counts.tolist()
    assert graph.x.shape == (40, 81), "a number beside them is standardised"
    again = gv.read_graph(bag(tmp_path, counts[:, :70]), encoding=graph.origin.encoding)
    assert again.x.to_dense()[:, :70].long().tolist() == counts[:, :70].tolist()
    assert again.x.shape == (40, 81)
    assert "filled with 0: 'w70', 'w71'," in " ".join(again.origin.notes)


def test_lists_of_numbers_are_a_matrix(tmp_path: Path) -> None:
    vectors = pa.array([[1.0, 2.0], [0.5, float("nan")], None], pa.list_(pa.float32()))
    pq.write_table(pa.table({"id": ["a", "b", "c"], "vector": vectors}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("u,v\na,b\n")
    graph = gv.read_graph(tmp_path)
    assert graph.x.tolist() == [[1, 2], [0.5, 0], [0, 0]]
    pq.write_table(pa.table({"id": ["a", "b"], "vector": [[1.0], [1.0, 2.0]]}), tmp_path / "nodes.parquet")
    assert "from 1 to 2 values" in refusal(tmp_path)


def test_a_newer_table_is_encoded_like_the_older_one(tmp_path: Path) -> None:
    old = gv.read_graph(people(tmp_path, *OLD), attributes=["g", "age"], bins={"age": 2})
    same = gv.read_graph(people(tmp_path, *OLD), attributes=["g", "age"], encoding=old.origin.encoding)
    assert torch.equal(same.x, old.x)
    assert torch.equal(same["age"], old["age"])
    plain = json.loads(json.dumps(asdict(old.origin.encoding)))
    kept = Encoding.from_plain(plain)
    newer = people(tmp_path, "w: v z .", "g: m x f", "age: 0 99 35", "extra: 1 2 3")
    graph = gv.read_graph(newer, attributes=["g", "age"], encoding=kept)
    assert graph.x.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]], "n is missing; z is new"
    assert graph["g"].tolist() == [1, -1, 0]
    assert graph["age"].tolist() == [0, 1, 0], "cut at 40 as before"
    notes = " ".join(graph.origin.notes)
    assert "Columns that the encoder expects are missing and filled with 0: 'n'." in notes
    assert "1 value of 'w' is new to the encoder" in notes
    assert "1 value of 'g' is new to the encoder and counts as unknown." in notes
    assert "ignored: 'extra'" in notes


def test_numbers_whose_squares_overflow_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    (tmp_path / "nodes.csv").write_text("id,huge,size\n1,1e300,1\n2,-1e300,2\n3,2,4\n")
    graph = gv.read_graph(tmp_path)
    assert [column.name for column in graph.origin.encoding.columns] == ["size"]
    assert any("huge" in note for note in graph.origin.notes)


def test_columns_that_were_left_out_are_not_new(tmp_path: Path) -> None:
    old = gv.read_graph(people(tmp_path, "n: 1 2 3", "same: 7 7 7", "mail: a b c", "gone: 1 2 3"), drop=["gone"])
    kept = Encoding.from_plain(json.loads(json.dumps(asdict(old.origin.encoding))))
    assert kept.left_out == ["same", "mail", "gone"]
    again = gv.read_graph(tmp_path, encoding=kept)
    assert again.origin.differences == ()
    newer = people(tmp_path, "n: 1 2 3", "same: 7 7 8", "mail: a b c", "shoe: 1 2 3")
    assert gv.read_graph(newer, encoding=kept).origin.differences == (
        "Columns unknown to the encoder are ignored: 'shoe'.",
    )
