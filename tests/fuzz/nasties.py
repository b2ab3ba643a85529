"""Malicious and unusual files that random changes would not produce."""

import gzip
import io
import os
import pickle
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from tests.fuzz.files import write


class Trap:
    """Pickled, it touches a file when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, ...]]:
        return os.system, (f"touch {self.canary}",)


def text(name: str, content: str | bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        return folder / name

    return make


def pair(links: str, nodes: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "nodes.csv").write_text(nodes)
        return text("edges.csv", links)(folder)

    return make


RING = "".join(f"{i},{(i + 1) % 30}\n" for i in range(30))
LINKS = f"source,target\n{RING}"


def nodes(column: Callable[[int], object], count: int = 30) -> str:
    return "id,label\n" + "".join(f"{i},{column(i)}\n" for i in range(count))


def wide(columns: int) -> str:
    names = ",".join(f"c{i}" for i in range(columns))
    return f"id,{names}\n" + "".join(f"{node}{',1' * columns}\n" for node in range(30))


def deep(folder: Path) -> Path:
    """As deep as a path may be."""
    here = folder
    while len(str(here)) < 3600:
        here = here / ("d" * 200)
    here.mkdir(parents=True)
    return text("edges.csv", LINKS)(here)


def zip_bomb(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        file = folder / f"graph.{suffix}"
        header = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118)
        shape = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1000000000), }"
        with (
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("edge_index.npy", "w", force_zip64=True) as out,
        ):
            out.write(header + shape.ljust(117).encode() + b"\n")
            for _ in range(300):
                out.write(bytes(1 << 20))
        return file

    return make


def gzip_bomb(folder: Path) -> Path:
    file = folder / "edges.csv.gz"
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    with file.open("wb") as out:
        out.write(pack.compress(b"source,target\n"))
        for _ in range(400):
            out.write(pack.compress(b"1,2\n" * (1 << 18)))
        out.write(pack.flush())
    return file


def parquet_bomb(folder: Path) -> Path:
    """A long word, and millions of references to it."""
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3_000_000, np.int32)), ["a" * 3000])
    columns = pa.table({"source": column, "target": column})
    pq.write_table(columns, folder / "edges.parquet", compression="zstd", store_schema=False)
    return folder / "edges.parquet"


def npy_header(shape: str, descr: str = "'<i8'") -> Callable[[Path], Path]:
    """A file that declares a larger size than it has."""
    words = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return text("edges.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words)) + words.encode() + bytes(64))


def pickled_array(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        file, trap = folder / f"graph.{suffix}", np.array([[Trap(folder.parent / "canary")] * 2], dtype=object)
        np.save(file, trap) if suffix == "npy" else np.savez(file, edge_index=trap)
        return file

    return make


def pickled_graph(folder: Path) -> Path:
    data = Data(x=torch.ones(3, 1), edge_index=torch.zeros(2, 3, dtype=torch.long))
    data.trap = Trap(folder.parent / "canary")
    torch.save(data, folder / "graph.pt")
    return folder / "graph.pt"


def bare_pickle(folder: Path) -> Path:
    return text("graph.pt", pickle.dumps(Trap(folder.parent / "canary")))(folder)


def old_torch_file(folder: Path) -> Path:
    torch.save(Trap(folder.parent / "canary"), folder / "graph.pt", _use_new_zipfile_serialization=False)
    return folder / "graph.pt"


def expanded_tensor(folder: Path) -> Path:
    """An expanded view of one number with ten billion values."""
    data = Data(x=torch.ones(1, 1).expand(10**10, 1), edge_index=torch.zeros(2, 3, dtype=torch.long))
    torch.save(data, folder / "graph.pt")
    return folder / "graph.pt"


def bad_csr(folder: Path) -> Path:
    """Indices that point outside of the matrix."""
    parts = {"indices": np.array([10**9, -5, 3]), "indptr": np.array([0, 2, 10**9]), "data": np.ones(3)}
    np.savez(folder / "graph.npz", shape=np.array([3, 3]), format=np.array(b"csr"), **parts)  # type: ignore[arg-type]
    return folder / "graph.npz"


def huge_matrix(folder: Path) -> Path:
    sp.save_npz(folder / "graph.npz", sp.coo_matrix(([1.0], ([0], [1])), shape=(2**40, 2**40)))
    return folder / "graph.npz"


def escaping_member(folder: Path) -> Path:
    array = io.BytesIO()
    np.save(array, np.zeros((2, 30), dtype=int))
    with zipfile.ZipFile(folder / "graph.npz", "w") as archive:
        archive.writestr("../../canary.npy", array.getvalue())
        archive.writestr("edge_index.npy", array.getvalue())
    return folder / "graph.npz"


def many_members(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "graph.npz", "w") as archive:
        for number in range(20_000):
            archive.writestr(f"a{number}.npy", b"")
    return folder / "graph.npz"


def laughs(suffix: str) -> Callable[[Path], Path]:
    """Entities that become a billion."""
    entities = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    return text(
        f"graph.{suffix}", f"<?xml version='1.0'?><!DOCTYPE g [{entities}]><graphml><graph>&a11;</graph></graphml>"
    )


def outside_entity(suffix: str) -> Callable[[Path], Path]:
    head = "<?xml version='1.0'?><!DOCTYPE g [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>"
    graph = "<graphml xmlns='http://graphml.graphdrawing.org/xmlns'><graph><node id='&x;'/></graph></graphml>"
    return text(f"graph.{suffix}", head + graph)


def special(kind: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        file = folder / "edges.csv"
        match kind:
            case "pipe":
                os.mkfifo(file)
            case "loop":
                file.symlink_to(file)
            case "folder":
                file.mkdir()
            case "dangling":
                file.symlink_to(folder / "nowhere")
            case "device":
                file.symlink_to("/dev/zero")
            case "pipe beside":
                os.mkfifo(folder / "nodes.csv")
                file.write_text(LINKS)
        return file

    return make


def given(path: str) -> Callable[[Path], Path]:
    return lambda _: Path(path)


def good(kind: str) -> Callable[[Path], Path]:
    return lambda folder: write(kind, random.Random(1), folder)


REFUSED: dict[str, Callable[[Path], Path]] = {
    "empty": text("edges.csv", ""),
    "one line": text("edges.csv", "source,target\n"),
    "blank lines": text("edges.csv", "\n\n\n"),
    "one column": text("edges.csv", "source\n1\n"),
    "zeros": text("edges.csv", bytes(1000)),
    "a million columns": text("edges.csv", ",".join(f"c{i}" for i in range(1_000_000)) + "\n"),
    "a million columns in nodes": pair(LINKS, ",".join(f"c{i}" for i in range(1_000_000)) + "\n"),
    "same names": text("edges.csv", "source,source\n1,2\n"),
    "ragged": text("edges.csv", "source,target\n1,2\n1,2,3\n"),
    "unknown node": pair(f"{LINKS}0,99\n", nodes(lambda i: i % 2)),
    "twice the same node": pair(LINKS, nodes(lambda i: i % 2) + "3,1\n"),
    "no id": pair(LINKS, "id,label\n,1\n"),
    "gzip bomb": gzip_bomb,
    "parquet bomb": parquet_bomb,
    "npz bomb": zip_bomb("npz"),
    "pt bomb": zip_bomb("pt"),
    "cut gzip": text("edges.csv.gz", gzip.compress(LINKS.encode() * 100)[:60]),
    "not gzip": text("edges.parquet", b"PAR1" + bytes(100) + b"PAR1"),
    "npy that lies": npy_header("(2, 10**12)"),
    "npy of a huge shape": npy_header("(2, 1000000000000)"),
    "npy of a negative shape": npy_header("(2, -5)"),
    "npy of objects": npy_header("(2, 4)", "'|O'"),
    "npy header as code": npy_header("__import__('os').system('touch canary')"),
    "pickled npy": pickled_array("npy"),
    "pickled npz": pickled_array("npz"),
    "pickle in pt": pickled_graph,
    "bare pickle": bare_pickle,
    "old torch file": old_torch_file,
    "expanded tensor": expanded_tensor,
    "indices outside": bad_csr,
    "huge matrix": huge_matrix,
    "many members": many_members,
    "laughs in graphml": laughs("graphml"),
    "laughs in gexf": laughs("gexf"),
    "outside entity in graphml": outside_entity("graphml"),
    "outside entity in gexf": outside_entity("gexf"),
    "deep gml": text("graph.gml", "graph [ " + "a [ " * 50_000),
    "deep xml": text("graph.graphml", "<graphml>" + "<graph>" * 100_000),
    "no graph in gml": text("graph.gml", 'Creator "x"'),
    "pipe": special("pipe"),
    "pipe beside": special("pipe beside"),
    "loop": special("loop"),
    "dangling": special("dangling"),
    "device": special("device"),
    "a folder called so": special("folder"),
    "empty folder": lambda folder: folder,
    "nowhere": given("/nonexistent/graph.csv"),
    "nothing": given(""),
    "too long a name": given("x" * 5000 + ".csv"),
    "a zero in a name": given("a\x00b.csv"),
    "no kind": text("graph.exe", "MZ"),
    "no suffix": text("edges", LINKS),
    "/dev/zero": given("/dev/zero"),
    "/dev/full": given("/dev/full"),
    "latin-1": text("edges.csv", "source,target\né,ü\n".encode("latin-1")),
    "utf-16 without a mark": text("edges.csv", LINKS.encode("utf-16-le")),
    "surrogates": text("edges.csv", "source,target\n\ud800,b\n"),
}  # fmt: skip
"""By name; each is an error."""

TAKEN: dict[str, Callable[[Path], Path]] = {
    "deep path": deep,
    "byte-order mark": text("edges.csv", b"\xef\xbb\xbf" + LINKS.encode()),
    "utf-16": text("edges.csv", LINKS.encode("utf-16")),
    "utf-32": text("edges.csv", LINKS.encode("utf-32")),
    "old Mac": text("edges.csv", LINKS.replace("\n", "\r")),
    "semicolons": text("edges.csv", LINKS.replace(",", ";")),
    "no header": text("edges.csv", RING),
    "negative ids": text("edges.csv", "source,target\n-5,3\n3,-9223372036854775808\n"),
    "gappy ids": text("edges.csv", "source,target\n1,9000000000000\n9000000000000,4\n"),
    "ids beyond 64 bits": text("edges.csv", f"source,target\n1,{10**40}\n"),
    "ids of markup": text("edges.csv", 'source,target\n"[red]a\nb[/red]","<b>\x1b[2J"\n'),
    "words and numbers": text("edges.csv", "source,target\na,1\n1,01\n"),
    "all loops": pair("source,target\n1,1\n2,2\n", nodes(lambda i: i % 2)),
    "no link": pair("source,target\n", nodes(lambda i: i % 2)),
    "one node": pair("source,target\n", "id,label\n0,1\n"),
    "one class": pair(LINKS, nodes(lambda _: "same")),
    "as many classes as nodes": pair(LINKS, nodes(lambda i: f"class {i}")),
    "unknown labels": pair(LINKS, nodes(lambda _: "")),
    "a huge field": pair(LINKS, nodes(lambda i: "x" * 2_000_000 if i == 3 else i % 2)),
    "one link a million times": text("edges.csv", LINKS + "0,1\n" * 1_000_000),
    "a thousand columns": pair(LINKS, wide(1000)),
    "a member outside": escaping_member,
}  # fmt: skip
"""By name; each is a graph, or an error."""
