"""Whatever nodes are called and however they are linked: what is written comes back, name by name and link by link."""

import csv
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphveil.data.origin import node_ids
from graphveil.data.readers import read_graph

Named = tuple[list[str], set[frozenset[str]]]


def with_links(names: list[str]) -> st.SearchStrategy[Named]:
    pairs = st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True).map(frozenset)
    return st.tuples(st.just(names), st.sets(pairs, min_size=1, max_size=20))


def graphs(names: st.SearchStrategy[str]) -> st.SearchStrategy[Named]:
    return st.lists(names, min_size=2, max_size=12, unique=True).flatmap(with_links)


ANY = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
VISIBLE = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp", "Zs"]), min_size=1).map("n{}".format)
"""In a text file blanks around a word do not count, and a file of numbers alone has no header."""


def found(path: Path) -> Named:
    graph = read_graph(path)
    names = node_ids(graph).to_pylist()
    return names, {frozenset((names[u], names[v])) for u, v in graph.edge_index.t().tolist()}


@settings(max_examples=40, deadline=None)
@given(graphs(ANY))
def test_parquet(graph: Named) -> None:
    names, links = graph
    ends = [sorted(link) for link in sorted(links, key=sorted)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(pa.table({"id": names}), folder / "nodes.parquet")
        pq.write_table(
            pa.table({"source": [u for u, _ in ends], "target": [v for _, v in ends]}), folder / "edges.parquet"
        )
        assert found(folder) == (names, links)


@settings(max_examples=40, deadline=None)
@given(graphs(VISIBLE), st.sampled_from([",", "\t"]), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_text(graph: Named, between: str, encoding: str) -> None:
    names, links = graph
    suffix = "tsv" if between == "\t" else "csv"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stem, header, rows in (
            ("nodes", ["id", "label"], [[one, str(len(one) % 2)] for one in names]),
            ("edges", ["source", "target"], [sorted(link) for link in links]),
        ):
            with (folder / f"{stem}.{suffix}").open("w", encoding=encoding, newline="") as file:
                csv.writer(file, delimiter=between).writerows([header, *rows])
        assert found(folder) == (names, links)


@settings(max_examples=20, deadline=None)
@given(graphs(ANY))
def test_arrays_and_pyg(graph: Named) -> None:
    names, links = graph
    ends = np.array([[names.index(end) for end in link] for link in links]).T
    wanted = {frozenset(names.index(end) for end in link) for link in links}
    x = np.arange(2.0 * len(names), dtype=np.float32).reshape(-1, 2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "graph.npz", edge_index=ends, x=x)
        torch.save(Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(ends)), folder / "graph.pt")
        for file in ("graph.npz", "graph.pt"):
            read = read_graph(folder / file)
            assert read.x.equal(torch.from_numpy(x))
            assert {frozenset(pair) for pair in read.edge_index.t().tolist()} == wanted
