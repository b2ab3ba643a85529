"""Links from Parquet are read block by block; the result is that of one block, whatever the ids are."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphveil as gv
from graphveil.data import digest
from tests.data.readers.made import refusal

NODES, ROWS = 300, 5000
IDS: dict[str, Any] = {
    "int64": pa.array(np.arange(NODES) * 7 - 50),
    "int32": pa.array(np.arange(NODES, dtype=np.int32)),
    "uint64": pa.array(np.arange(NODES, dtype=np.uint64) + np.uint64(2**63)),
    "text": pa.array([f"user-{number}" for number in range(NODES)]),
    "numbers as text": pa.array([str(number) for number in range(NODES)]),
    "dictionary": pa.array([f"user-{number}" for number in range(NODES)]).dictionary_encode(),
    "bytes": pa.array([bytes([number // 250, number % 250]) for number in range(NODES)]),
    "float": pa.array(np.arange(NODES, dtype=float)),
}


def write(folder: Path, ids: Any, with_nodes: bool, last: Any = None) -> Path:
    """Random links in row groups of 128 rows, some of them loops and some twice; the last row may be replaced."""
    random = np.random.default_rng(0)
    source, target = (ids.take(pa.array(random.integers(0, NODES, ROWS))) for _ in range(2))
    table = pa.table({"source": source, "target": target, "weight": random.integers(1, 5, ROWS)})
    if last is not None:
        table = pa.concat_tables([table.slice(0, ROWS - 1), pa.table(last, schema=table.schema)])
    pq.write_table(table, folder / "edges.parquet", row_group_size=128)
    if with_nodes:
        pq.write_table(pa.table({"id": ids, "age": random.integers(0, 9, NODES)}), folder / "nodes.parquet")
    return folder


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphveil.data.readers.tables.FEWEST_ROWS", 200)
    monkeypatch.setattr("graphveil.data.readers.ids.MERGED", 100)
    monkeypatch.setattr("graphveil.data.graph.BLOCK", 64)


@pytest.mark.parametrize("with_nodes", [True, False])
@pytest.mark.parametrize("kind", IDS)
def test_blocks_make_no_difference(kind: str, with_nodes: bool, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = write(tmp_path, IDS[kind], with_nodes)
    whole, heavy = gv.read_graph(folder), gv.read_graph(folder, min_weight=3, direction="mutual")
    request.getfixturevalue("small_blocks")
    again, heavy_again = gv.read_graph(folder), gv.read_graph(folder, min_weight=3, direction="mutual")
    assert digest(again) == digest(whole)
    assert digest(heavy_again) == digest(heavy)
    assert again.origin.notes == whole.origin.notes
    assert again.origin.ids.equals(whole.origin.ids)
    assert heavy.edge_index.size(1) < whole.edge_index.size(1)


@pytest.mark.usefixtures("small_blocks")
def test_the_row_of_a_fault_is_that_of_the_file(tmp_path: Path) -> None:
    ids = IDS["text"]
    folder = write(tmp_path, ids, True, {"source": ["user-1"], "target": ["user-x"], "weight": [1]})
    assert "edges.parquet, data row 5000, column 'target', has the id 'user-x'" in refusal(folder)
    write(tmp_path, ids, True, {"source": ["user-1"], "target": [None], "weight": [1]})
    assert "edges.parquet, data row 5000, column 'target', is empty" in refusal(folder)
    write(tmp_path, ids, True, {"source": ["user-1"], "target": ["user-2"], "weight": [None]})
    assert "edges.parquet, data row 5000, has a link without a weight" in refusal(folder, min_weight=2)
    rows = pq.read_table(write(tmp_path, ids, True) / "edges.parquet").to_pylist()
    loop = next(number for number, row in enumerate(rows, 1) if row["source"] == row["target"])
    assert f"edges.parquet, data row {loop}, links a node to itself" in refusal(folder, loops="refuse")
    seen, repeated = set[tuple[str, str]](), 0
    for number, row in enumerate(rows, 1):
        ends = row["source"], row["target"]
        if ends in seen and row["source"] != row["target"]:
            repeated = number
            break
        seen.add(ends)
    assert f"edges.parquet, data row {repeated}, repeats a link" in refusal(folder, duplicates="refuse")


@pytest.mark.usefixtures("small_blocks")
def test_one_id_of_another_kind_in_the_last_row_makes_all_ids_text(tmp_path: Path) -> None:
    folder = write(tmp_path, IDS["numbers as text"], False, {"source": ["007"], "target": ["8"], "weight": [1]})
    ids = gv.read_graph(folder).origin.ids
    assert ids.type == pa.string()
    assert ids[0].as_py() == "0"
    assert "007" in ids.to_pylist()
