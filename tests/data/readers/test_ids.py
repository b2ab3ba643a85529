"""Ids of any type come back as they were written, and the links are looked up by them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphveil as gv
from tests.data.readers.made import links, refusal, tables


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["1", "2", "30"], [1, 2, 30]),
        (["-5", "0", "9223372036854775807"], [-5, 0, 9223372036854775807]),
        (["007", "8", "9"], ["007", "8", "9"]),
        (["+1", "2", "3"], ["+1", "2", "3"]),
        (["-0", "1", "2"], ["-0", "1", "2"]),
        (["1.0", "2", "3"], ["1.0", "2", "3"]),
        (["0x10", "2", "3"], ["0x10", "2", "3"]),
        (["9223372036854775808", "2", "3"], [9223372036854775808, 2, 3]),
        (["9223372036854775808", "-2", "3"], ["9223372036854775808", "-2", "3"]),
        (["18446744073709551616", "2", "3"], ["18446744073709551616", "2", "3"]),
        (["NA", "nan", "null"], ["NA", "nan", "null"]),
        (["Zoë", "李", "a b"], ["Zoë", "李", "a b"]),
    ],
)
def test_ids_are_numbers_only_if_all_are_plainly_written(
    tmp_path: Path, written: list[str], expected: list[object]
) -> None:
    a, b, c = written
    graph = gv.read_graph(tables(tmp_path, f"u,v\n{a},{b}\n{b},{c}\n", f"id\n{a}\n{b}\n{c}\n"))
    assert graph.origin.ids.to_pylist() == expected
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([3, 1, 2], pa.int32()),
        pa.array([3, 1, 2], pa.uint8()),
        pa.array([2**63 + 1, 2**63, 5], pa.uint64()),
        pa.array(["c", "a", "b"]),
        pa.array(["c", "a", "b"], pa.large_string()),
        pa.array(["c", "a", "b"]).dictionary_encode(),
        pa.array([b"\x00\x01", b"\xff\xfe", b"zz"], pa.binary(2)),
        pa.array([18_000, 17_000, 16_000], pa.date32()),
    ],
    ids=lambda ids: str(ids.type),
)
def test_ids_of_any_type_in_parquet(tmp_path: Path, ids: pa.Array) -> None:
    pq.write_table(pa.table({"id": ids}), tmp_path / "nodes.parquet")
    pq.write_table(pa.table({"src": ids.take([0, 1]), "dst": ids.take([1, 2])}), tmp_path / "edges.parquet")
    graph = gv.read_graph(tmp_path)
    assert len(graph.origin.ids) == 3
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]
    if pa.types.is_integer(ids.type) and ids.type != pa.uint64():
        assert graph.origin.ids.equals(ids)


def test_tables_of_two_kinds_agree_on_their_ids(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([10, 20, 30], pa.int16())}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\n10,20\n30,20\n")
    graph = gv.read_graph(tmp_path)
    assert links(graph) == [(10, 20), (20, 30)]


def test_without_nodes_the_ends_are_the_nodes_in_order(tmp_path: Path) -> None:
    graph = gv.read_graph(tables(tmp_path, "from,to\n10,9\n9,100\n", nodes=None))
    assert graph.origin.ids.to_pylist() == [9, 10, 100]
    assert graph.origin.structural
    assert graph.x[:, 1].tolist() == pytest.approx([np.log(3), np.log(2), np.log(2)])


@pytest.mark.parametrize(
    ("edges", "place"),
    [
        ("source,target\n1,2\n1,\n2,3\n", "edges.csv, line 3, column 'target'"),
        ("source,target\nann,bob\n\n  ,bob\n", "edges.csv, line 4, column 'source'"),
        ({"source": ["1", ""], "target": ["2", "3"]}, "edges.parquet, data row 2, column 'source'"),
        ({"source": [1, 1], "target": [2, None]}, "edges.parquet, data row 2, column 'target'"),
        ({"source": [1.0, 1.5], "target": [2.0, np.nan]}, "edges.parquet, data row 2, column 'target'"),
        ({"source": [np.nan], "target": [2.0]}, "edges.parquet, data row 1, column 'source'"),
        ({"source": [b"\1"], "target": [b""]}, "edges.parquet, data row 1, column 'target'"),
    ],
)
def test_a_missing_end_is_no_node(tmp_path: Path, edges: str | dict[str, list[object]], place: str) -> None:
    """It would have a link to each node of an incomplete row, and turn numbers into text."""
    if isinstance(edges, str):
        tables(tmp_path, edges, nodes=None)
    else:
        pq.write_table(pa.table(edges), tmp_path / "edges.parquet")
    assert f"{place}, is empty: give the ids of both ends of a link." in refusal(tmp_path)


@pytest.mark.parametrize("ids", [["a", ""], ["a", None], [1.0, np.nan]])
def test_a_node_without_an_id_is_refused(tmp_path: Path, ids: list[object]) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n1,1\n")
    pq.write_table(pa.table({"id": ids}), tmp_path / "nodes.parquet")
    assert "nodes.parquet, data row 2, column 'id', has no id: give every node one." in refusal(tmp_path)


words = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters='"'), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    ids=st.lists(words.map(str.strip).filter(bool), min_size=2, max_size=8, unique=True),
    ends=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=12),
)
def test_any_words_come_back_as_ids(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str], ends: list[tuple[int, int]]
) -> None:
    """Quoted, any word without a quotation mark is an id, and the links are those that were written."""
    folder = tmp_path_factory.mktemp("words")
    pairs = [(ids[a % len(ids)], ids[b % len(ids)]) for a, b in ends]
    tables(
        folder,
        "source,target\n" + "".join(f'"{a}","{b}"\n' for a, b in pairs),
        "id,z\n" + "".join(f'"{name}",{place}\n' for place, name in enumerate(ids)),
    )
    graph = gv.read_graph(folder)
    assert [str(found) for found in graph.origin.ids.to_pylist()] == ids
    expected = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    assert {frozenset(map(str, pair)) for pair in links(graph)} == expected


@pytest.mark.parametrize("parquet", [True, False])
def test_the_largest_ids_stay_numbers(tmp_path: Path, parquet: bool) -> None:
    ids = [2**64 - 1, 2**63, 7]
    edges, nodes = {"source": ids[:2], "target": ids[1:]}, {"id": ids, "n": [1, 2, 4]}
    for name, columns in (("edges", edges), ("nodes", nodes)):
        table = pa.table({key: pa.array(values, pa.uint64()) for key, values in columns.items()})
        if parquet:
            pq.write_table(table, tmp_path / f"{name}.parquet")
        else:
            pa_csv.write_csv(table, tmp_path / f"{name}.csv")
    graph = gv.read_graph(tmp_path)
    assert (graph.origin.ids.type, graph.origin.ids.to_pylist()) == (pa.uint64(), ids)
    assert links(graph) == [(2**63, 7), (2**64 - 1, 2**63)]
