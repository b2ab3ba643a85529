"""PyG's `Data`, as an object or from a file of `torch.save`, which is read without running anything that is in it."""

import pickle
import pickletools
import re
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData, DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import EdgeStorage, GlobalStorage, NodeStorage

from graphveil.data.origin import ReadOptions
from graphveil.data.readers.arrays import check_size, read_arrays
from graphveil.data.readers.assemble import Found
from graphveil.data.readers.safe_open import BAD_ZIP, brief, check_expansion, check_file
from graphveil.errors import GraphveilError

ALLOWED: list[Any] = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, NodeStorage, EdgeStorage]
"""Classes that a file may name, beside tensors and what Python itself has."""

LONGEST_WORD = 5000
"""Characters of a text in a file of `torch.save`."""


def read_pyg_file(file: Path, reading: ReadOptions) -> Found:
    """A file that holds a `Data`, its dictionary, or the processed single graph of a data set."""
    size = check_file(file)
    try:
        with zipfile.ZipFile(file) as archive:
            check_expansion(file, size, sum(member.file_size for member in archive.infolist()))
            for member in archive.namelist():
                if member.rpartition("/")[2] == "data.pkl":
                    _check_words(file, archive.read(member))
    except (*BAD_ZIP, OSError) as error:
        raise GraphveilError(f"{file} is no file of torch.save ({brief(error)}): save it anew.") from error
    try:
        with torch.serialization.safe_globals(ALLOWED):
            value = torch.load(file, weights_only=True, map_location="cpu")
    except pickle.UnpicklingError as error:
        asked = re.search(r"GLOBAL:? ([\w.]+)", str(error), re.IGNORECASE)
        what = asked[1] if asked else "something"
        raise GraphveilError(
            f"{file} asks for {what}, which no graph needs: it is refused; save a plain torch_geometric.data.Data."
        ) from error
    except Exception as error:  # torch says what it likes of a broken file
        raise GraphveilError(f"{file} cannot be read ({brief(error)}): save it anew.") from error
    return read_pyg(_single(value, file), reading, str(file))


def read_pyg(graph: BaseData, reading: ReadOptions, name: str = "the graph") -> Found:
    """A `Data`; x, y and every tensor of one whole number a node are taken, and nothing in it is altered."""
    if type(graph) is not Data:
        raise GraphveilError(f"{name} is a {type(graph).__name__}: expected one graph, a torch_geometric.data.Data.")
    if "_store" not in vars(graph):
        raise GraphveilError(
            f"{name} was saved by an older version of PyG, which kept graphs otherwise: open it there, save its"
            " to_dict() by torch.save, and give that."
        )
    parts = {}
    for key, value in graph.to_dict().items():
        if isinstance(value, Tensor):
            _check(value, key, name)
            parts[key] = value
    if "edge_index" not in parts:
        raise GraphveilError(f"{name} has no edge_index: a graph needs links.")
    if "edge_attr" in parts and "edge_weight" not in parts and parts["edge_attr"].dim() == 1:
        parts["edge_weight"] = parts.pop("edge_attr")
    known = {key: parts[key] for key in parts if not key.startswith("edge_") or key in ("edge_index", "edge_weight")}
    if "x" not in known and isinstance(graph.num_nodes, int):
        check_size(graph.num_nodes, known["edge_index"].numel(), name)
        known["ids"] = torch.arange(graph.num_nodes)
    return read_arrays(known, reading, name)


def _check_words(file: Path, pickled: bytes) -> None:
    """Refuse endless words, over which torch's search for what to say of a broken file takes minutes."""
    try:
        longest = max((len(word) for _, word, _ in pickletools.genops(pickled) if isinstance(word, str)), default=0)
    except Exception as error:  # it has no error of its own
        raise GraphveilError(f"{file} cannot be read ({brief(error)}): save it anew.") from error
    if longest > LONGEST_WORD:
        raise GraphveilError(f"{file} has a word of {longest:,} characters in it, which no graph needs: save it anew.")


def _single(value: Any, file: Path) -> Data:
    if isinstance(value, tuple | list) and len(value) >= 2 and value[1] is None:
        value = value[0]  # how PyG saves a data set of one graph
    if isinstance(value, dict) and "edge_index" in value:
        return Data.from_dict(value)
    if not isinstance(value, Data):
        raise GraphveilError(f"{file} holds a {type(value).__name__}: expected one torch_geometric.data.Data.")
    return value


def _check(value: Tensor, key: str, name: str) -> None:
    """Refuse a tensor that is larger than what is stored of it: a view that repeats itself."""
    if value.layout == torch.strided and value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise GraphveilError(f"{name}: {key} has {value.numel():,} values and stores fewer: it is refused.")
