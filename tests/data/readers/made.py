"""What the tests of the readers share: tables written out in full, and a graph to be written in every format."""

import gzip
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv

EDGES = "source,target\nann,bob\nbob,cid\ncid,dee\n"
NODES = "id,age,city,gender,label\nann,20,rome,f,x\nbob,30,oslo,m,y\ncid,,rome,,x\ndee,40,oslo,f,y\n"


def tables(folder: Path, edges: str = EDGES, nodes: str | None = NODES) -> Path:
    """A folder with edges.csv, and nodes.csv unless there is none."""
    (folder / "edges.csv").write_text(edges, encoding="utf-8")
    (folder / "nodes.csv").unlink(missing_ok=True)
    if nodes is not None:
        (folder / "nodes.csv").write_text(nodes, encoding="utf-8")
    return folder


def links(graph: Data) -> list[tuple[object, object]]:
    """Links by the nodes' own ids, each once, in order."""
    ids = graph.origin.ids.to_pylist()
    u, v = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].tolist()
    return sorted((ids[a], ids[b]) for a, b in zip(u, v, strict=True))


def small() -> Data:
    """Five nodes in two groups, with one label and one attribute unknown."""
    edge_index = torch.tensor([[0, 0, 1, 3, 2, 4], [1, 2, 2, 4, 0, 3]])
    x = torch.tensor([[0.5, 1.0], [0.0, -2.0], [3.0, 0.25], [0.0, 0.0], [1.0, 8.0]])
    return Data(x=x, edge_index=edge_index, y=torch.tensor([0, 0, 1, 1, -1]), gender=torch.tensor([1, 0, -1, 0, 1]))


SMALL_LINKS = [(0, 1), (0, 2), (1, 2), (3, 4)]


def refusal(source: object, /, **options: Any) -> str:
    """The sentence with which a source is refused."""
    with pytest.raises(gv.GraphveilError) as caught:
        gv.read_graph(source, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 1000
    return sentence


def people(folder: Path, *columns: str) -> Path:
    """Tables whose nodes a, b, ... have these columns, each given as "name: value value ..."; a dot is nothing."""
    split = [column.split(":") for column in columns]
    values = [["" if value == "." else value for value in text.split()] for _, text in split]
    names = [chr(ord("a") + number) for number in range(len(values[0]))]
    rows = [",".join(row) for row in zip(names, *values, strict=True)]
    header = ",".join(["id", *(name for name, _ in split)])
    return tables(folder, "source,target\na,b\n", "\n".join([header, *rows]) + "\n")


OLD = ("n: 1 3 5 7", "w: u v u v", "g: f m f m", "age: 20 30 40 50")


def as_ogb(graph: Data, folder: Path) -> Any:
    raw = folder / "raw"
    raw.mkdir()

    def write(name: str, rows: Any) -> None:
        text = "".join(",".join(map(str, row)) + "\n" for row in rows)
        (raw / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))

    write("edge", graph.edge_index.t().tolist())
    write("num-node-list", [[5]])
    write("num-edge-list", [[6]])
    write("node-feat", graph.x.tolist())
    write("node-label", [["nan" if label < 0 else label] for label in graph.y.tolist()])
    return folder


STAR = torch.tensor([[0, 0, 0, 4], [1, 2, 3, 5]])


def star(folder: Path, **options: Any) -> Data:
    """Node 0 with three neighbours, 4 with 5; nothing is known of them but their links."""
    links = "".join(f"{u},{v}\n" for u, v in STAR.t().tolist())
    return gv.read_graph(tables(folder, f"u,v\n{links}", nodes=None), **options)
