"""Good files of every kind, and what can be done to them."""

import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

KINDS = (
    "csv",
    "tsv",
    "txt",
    "csv.gz",
    "parquet",
    "nodes",
    "folder",
    "graphml",
    "gexf",
    "gml",
    "npz",
    "scipy",
    "npy",
    "pt",
    "ogb",
    "odd types",
)

NASTY = (
    *("", " ", "-1", "0", "1", "1e309", "-inf", "nan", "NaN", "null", "None", "9" * 23, "9223372036854775807"),
    *("-9223372036854775808", "2147483648", "0x10", "1_000", "\u0661\u0662", "½", "é", "\u202e", "\ufeff", "\x00"),
    *(
        "\x1b[31m",
        "[red]x[/red]",
        "[/]",
        "{0.__class__}",
        "%s%n",
        "${HOME}",
        "$(id)",
        "`id`",
        "'; drop",
        '"',
        '""',
        "'",
    ),
    *(",", ";", "\t", "\n", "\r\n", "\\", "../../x", "/etc/passwd", "con", "a" * 300, "x\ny", "<b>", "&amp;", "source"),
    *("target", "id", "label", "true", "2020-01-01", "1,2", "1;2"),
)
"""Words that programs stumble over."""


def links(pick: random.Random, nodes: int) -> list[tuple[int, int]]:
    found = [(pick.randrange(nodes), pick.randrange(nodes)) for _ in range(3 * nodes)]
    return [(u, v) for u, v in found if u != v]


def rows(pick: random.Random, nodes: int) -> list[list[Any]]:
    return [
        [i, pick.choice("abc"), pick.choice(["f", "m", ""]), round(pick.random(), 3), pick.randrange(80)]
        for i in range(nodes)
    ]


NAMES = ["id", "label", "gender", "score", "age"]


def write(kind: str, pick: random.Random, folder: Path) -> Path:  # noqa: PLR0911 - one a kind
    """A good file, or a folder of some, with a graph of a few dozen nodes; what to give to `read_graph`."""
    nodes = pick.choice([3, 12, 40])
    pairs, table = links(pick, nodes), rows(pick, nodes)
    match kind:
        case "csv" | "tsv" | "txt" | "csv.gz":
            return _text(folder / f"edges.{kind}", ["source", "target", "weight"], [[u, v, 1.5] for u, v in pairs])
        case "nodes":
            _text(folder / "nodes.csv", NAMES, table)
            return _text(folder / "edges.csv", ["source", "target"], [list(pair) for pair in pairs])
        case "folder":
            _parquet(folder / "edges.parquet", ["src", "dst"], [list(pair) for pair in pairs])
            _parquet(folder / "nodes.parquet", NAMES, table)
            return folder
        case "parquet":
            return _parquet(folder / "edges.parquet", ["source", "target"], [list(pair) for pair in pairs])
        case "odd types":
            return _odd_types(folder, pick, pairs, nodes)
        case "graphml" | "gexf" | "gml":
            return _networkx(folder / f"graph.{kind}", pairs, table)
        case "npz" | "npy" | "scipy":
            return _arrays(folder, kind, pick, pairs, nodes)
        case "pt":
            data = Data(
                x=torch.arange(3.0 * nodes).view(nodes, 3) / 7,
                edge_index=torch.tensor(pairs).T.contiguous(),
                y=torch.arange(nodes) % 3,
            )
            torch.save(data, folder / "graph.pt")
            return folder / "graph.pt"
        case _:
            raw = folder / "raw"
            raw.mkdir()
            _lines(raw / "edge.csv.gz", [list(pair) for pair in pairs])
            _lines(raw / "num-node-list.csv.gz", [[nodes]])
            _lines(raw / "node-feat.csv.gz", [row[3:] for row in table])
            _lines(raw / "node-label.csv.gz", [[i % 3] for i in range(nodes)])
            return folder


def _text(file: Path, names: list[str], lines: list[list[Any]]) -> Path:
    between = "\t" if ".tsv" in file.name else " " if ".txt" in file.name else ","
    text = "".join(between.join(map(str, line)) + "\n" for line in [names, *lines])
    file.write_bytes(gzip.compress(text.encode(), mtime=0) if file.suffix == ".gz" else text.encode())
    return file


def _lines(file: Path, lines: list[list[Any]]) -> None:
    file.write_bytes(gzip.compress("".join(",".join(map(str, line)) + "\n" for line in lines).encode(), mtime=0))


def _parquet(file: Path, names: list[str], lines: list[list[Any]]) -> Path:
    columns = zip(*lines, strict=True) if lines else [[] for _ in names]
    pq.write_table(pa.table({name: list(column) for name, column in zip(names, columns, strict=True)}), file)
    return file


def _odd_types(folder: Path, pick: random.Random, pairs: list[tuple[int, int]], nodes: int) -> Path:
    """Every type that a Parquet file can have, for ids, ends and columns."""
    kind = pick.choice(
        [pa.int8(), pa.uint64(), pa.float32(), pa.bool_(), pa.string(), pa.binary(), pa.date32(), pa.null()]
    )

    def column(size: int, type_: pa.DataType) -> pa.Array:
        return (
            pa.nulls(size, type_)
            if pick.random() < 0.1
            else pa.array(np.arange(size) % 100).cast(pa.string()).cast(type_)
        )

    def odd(size: int) -> pa.Array:
        values = list(range(size))
        makers: list[Callable[[], pa.Array]] = [
            lambda: pa.array([[i, i + 1] for i in values]),
            lambda: pa.array([{"a": i} for i in values]),
            lambda: pa.array([str(i % 3) for i in values]).dictionary_encode(),
            lambda: pa.array(values, pa.timestamp("ns")),
            lambda: pa.array(values, pa.duration("s")),
            lambda: pa.array(values).cast(pa.decimal128(38, 5)),
            lambda: pa.array([b"\xff\x00"] * size, pa.binary()),
            lambda: pa.nulls(size),
            lambda: pa.array([float("nan"), float("inf")] * size).slice(0, size),
            lambda: pa.array([[0.5] * 3] * size, pa.list_(pa.float32(), 3)),
            lambda: pa.array([pick.choice(NASTY) for _ in values]),
        ]
        return pick.choice(makers)()

    try:
        ids = column(nodes, kind)
    except pa.ArrowException:
        ids = pa.array(np.arange(nodes))
    ends = [pa.array([end[side] for end in pairs]) for side in (0, 1)]
    if pick.random() < 0.5:
        ends = [ids.take(side) for side in ends]
    pq.write_table(
        pa.table({"source": ends[0], "target": ends[1], "weight": odd(len(pairs))}), folder / "edges.parquet"
    )
    own = {"id": ids, "label": odd(nodes), "gender": odd(nodes), "[b]x[/b]\n": odd(nodes)}
    pq.write_table(pa.table(own), folder / "nodes.parquet")
    return folder


def _networkx(file: Path, pairs: list[tuple[int, int]], table: list[list[Any]]) -> Path:
    graph = nx.Graph()
    for row in table:
        graph.add_node(row[0], **dict(zip(NAMES[1:], row[1:], strict=True)))
    graph.add_edges_from(pairs)
    writers: dict[str, Callable[..., object]] = {
        ".graphml": nx.write_graphml_xml,
        ".gexf": nx.write_gexf,
        ".gml": nx.write_gml,
    }
    writers[file.suffix](graph, file)
    return file


def _arrays(folder: Path, kind: str, pick: random.Random, pairs: list[tuple[int, int]], nodes: int) -> Path:
    ends = np.array(pairs).T
    if kind == "npy":
        np.save(folder / "edges.npy", ends)
        return folder / "edges.npy"
    file = folder / "graph.npz"
    if kind == "scipy":
        sp.save_npz(file, sp.csr_matrix((np.ones(len(pairs)), ends), shape=(nodes, nodes)))
    else:
        np.savez(
            file,
            edge_index=ends,
            x=np.random.default_rng(0).random((nodes, 4)),
            y=np.arange(nodes) % pick.randint(1, 4),
        )
    return file


def spoil(pick: random.Random, path: Path) -> None:
    """Spoil one file, the given one or one in the given folder, in one to three ways."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    beside = [file for file in path.parent.glob("nodes.*") if path.is_file()]
    file = pick.choice([*files, *beside])
    data = file.read_bytes()
    inner = _packed(file, data) if pick.random() < 0.7 else None
    if inner is None:
        file.write_bytes(_spoiled(pick, data, _is_text(file)))
    else:
        file.write_bytes(inner(lambda member: _spoiled(pick, member, _is_text(file))))


def _is_text(file: Path) -> bool:
    return not file.name.endswith((".parquet", ".npz", ".npy", ".pt"))


def _packed(file: Path, data: bytes) -> Callable[[Callable[[bytes], bytes]], bytes] | None:
    """How to spoil what is inside a packed file, so that the packing itself stays whole."""
    if file.suffix == ".gz":
        return lambda change: gzip.compress(change(gzip.decompress(data)), mtime=0)
    if file.suffix in (".npz", ".pt"):
        return lambda change: _rezipped(data, change)
    return None


def _rezipped(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """One member is changed: the one that a hash of all points to."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        victim = names[sum(data) % len(names)]
        for name in names:
            content = old.read(name)
            new.writestr(name, change(content) if name == victim else content)
    return out.getvalue()


def _spoiled(pick: random.Random, data: bytes, text: bool) -> bytes:
    for _ in range(pick.randint(1, 3)):
        ways = [*BYTES, *TEXT, *TEXT] if text else BYTES
        data = pick.choice(ways)(pick, data)
    return data


def _flip(pick: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(pick.choice([1, 1, 4, 50])):
        if out:
            out[pick.randrange(len(out))] ^= 1 << pick.randrange(8)
    return bytes(out)


def _put(pick: random.Random, data: bytes) -> bytes:
    at = pick.randint(0, len(data))
    new = pick.choice(
        [b"\x00", b"\xff" * 8, b"\xef\xbb\xbf", b"\xff\xfe", pick.randbytes(20), b"\x00" * 1000, b"9" * 100_000, b"\n"]
    )
    return data[:at] + new + data[at + pick.choice([0, 0, len(new)]) :]


def _cut(pick: random.Random, data: bytes) -> bytes:
    return data[: pick.randint(0, len(data))]


def _remove(pick: random.Random, data: bytes) -> bytes:
    at = pick.randint(0, len(data))
    return data[:at] + data[at + pick.randint(1, 40) :]


def _double(pick: random.Random, data: bytes) -> bytes:
    at = pick.randint(0, len(data))
    return data[:at] + data[at : at + pick.randint(1, 400)] * pick.choice([2, 2, 100]) + data[at:]


def _splice(pick: random.Random, data: bytes) -> bytes:
    other = pick.choice(
        [b"PAR1", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"\x1f\x8b\x08", b"<?xml version='1.0'?>", b"\x80\x02}q\x00."]
    )
    at = pick.randint(0, len(data))
    return pick.choice([other + data, data[:at] + other + data[at:], data + data])


def _recode(pick: random.Random, data: bytes) -> bytes:
    return data.decode("latin-1").encode(pick.choice(["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7"]))


def _token(pick: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    at = pick.randrange(len(lines))
    between = pick.choice([b",", b"\t", b" ", b">", b'"'])
    fields = lines[at].split(between)
    fields[pick.randrange(len(fields))] = pick.choice(NASTY).encode()
    lines[at] = between.join(fields)
    return b"\n".join(lines)


def _header(pick: random.Random, data: bytes) -> bytes:
    first, _, rest = data.partition(b"\n")
    names = first.split(b",")
    pick.shuffle(names)
    return (
        pick.choice([b",".join(names), b",".join(names[1:]), first + b"," + first, b"", first.upper()]) + b"\n" + rest
    )


def _lines_of(pick: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    at = pick.randrange(len(lines))
    return b"\n".join(
        pick.choice([lines[:at] + lines[at + 1 :], lines[:at] + [lines[at]] * 50 + lines[at:], lines[::-1]])
    )


def _ends(pick: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", pick.choice([b"\r\n", b"\r", b"\n\n", b"\n\r", b"\x0b", b"\xe2\x80\xa8"]))


def _delimiters(pick: random.Random, data: bytes) -> bytes:
    return data.replace(b",", pick.choice([b";", b"|", b"\t", b" ", b",,", b'","', b"\x01"]))


BYTES = [_flip, _put, _cut, _remove, _double, _splice]
TEXT = [_recode, _token, _token, _token, _header, _lines_of, _ends, _delimiters]


def options(pick: random.Random) -> dict[str, Any]:
    """Mostly none; else some that may or may not fit."""
    if pick.random() < 0.6:
        return {}
    word = [*NAMES, "source", "target", "weight", *NASTY]
    every: dict[str, Callable[[], Any]] = {
        "source": lambda: pick.choice(word),
        "target": lambda: pick.choice(word),
        "weight": lambda: pick.choice(word),
        "id": lambda: pick.choice(word),
        "label": lambda: pick.choice(word),
        "attributes": lambda: tuple(pick.sample(word, pick.randint(0, 3))),
        "features": lambda: tuple(pick.sample(word, pick.randint(0, 3))),
        "drop": lambda: (pick.choice(word),),
        "bins": lambda: {pick.choice(word): pick.choice([2, 4, 0, -1, 10**6])},
        "missing": lambda: pick.choice(["degree", "embedding", "x"]),
        "direction": lambda: pick.choice(["either", "mutual", ""]),
        "min_weight": lambda: pick.choice([0.0, 1e9, -1.0, float("nan"), float("inf")]),
        "loops": lambda: pick.choice(["drop", "refuse", "x"]),
        "duplicates": lambda: pick.choice(["drop", "refuse"]),
        "bad_values": lambda: pick.choice(["missing", "refuse", "x"]),
        "text_encoding": lambda: pick.choice(
            ["latin-1", "utf-16", "utf-8", "rot13", "idna", "zip", "", "x" * 99, "a\x00b"]
        ),
        "nodes": lambda: pick.choice(["nodes.csv", "/dev/zero", "..", "", "\x00", "x" * 5000]),
    }
    return {name: every[name]() for name in pick.sample(list(every), pick.randint(1, 3))}


def described(value: object) -> str:
    return json.dumps(value, default=str)[:200]
