"""PyG's `Data`, as an object or from a file of `torch.save`, which is read without running code from it."""

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
from graphveil.data.readers.assemble import Contents
from graphveil.data.readers.safe_open import BAD_ZIP, brief, check_expansion, check_file
from graphveil.errors import GraphveilError

ALLOWED: list[Any] = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, NodeStorage, EdgeStorage]
"""Classes that a file may use, besides tensors and Python's basic types."""

MAX_TEXT_LENGTH = 5000
"""The longest text, in characters, in a file of `torch.save`."""


def read_pyg_file(file: Path, reading: ReadOptions) -> Contents:
    """Read a file that holds a `Data`, its dictionary, or the processed single graph of a data set."""
    size = check_file(file)
    try:
        with zipfile.ZipFile(file) as archive:
            check_expansion(file, size, sum(member.file_size for member in archive.infolist()))
            for member in archive.namelist():
                if member.rpartition("/")[2] == "data.pkl":
                    _check_texts(file, archive.read(member))
    except (*BAD_ZIP, OSError) as error:
        raise GraphveilError(f"{file} is not a file of torch.save ({brief(error)}): save it again.") from error
    try:
        with torch.serialization.safe_globals(ALLOWED):
            value = torch.load(file, weights_only=True, map_location="cpu")
    except pickle.UnpicklingError as error:
        match = re.search(r"GLOBAL:? ([\w.]+)", str(error), re.IGNORECASE)
        name_in_file = match[1] if match else "a class"
        raise GraphveilError(
            f"{file} uses {name_in_file}, which is not allowed because it could run code: save a plain"
            " torch_geometric.data.Data."
        ) from error
    except Exception as error:  # a broken file can cause any error in torch
        raise GraphveilError(f"{file} cannot be read ({brief(error)}): save it again.") from error
    return read_pyg(_single(value, file), reading, str(file))


def read_pyg(graph: BaseData, reading: ReadOptions, name: str = "the graph") -> Contents:
    """Read x, y and every tensor of one integer per node from a `Data`, which is not altered."""
    if type(graph) is not Data:
        raise GraphveilError(f"{name} is a {type(graph).__name__}: expected one graph, a torch_geometric.data.Data.")
    if "_store" not in vars(graph):
        raise GraphveilError(
            f"{name} was saved by an older version of PyG, which used another format: open it with that version, and"
            " save its to_dict() with torch.save."
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


def _check_texts(file: Path, pickled: bytes) -> None:
    """Refuse very long texts: torch takes minutes to compose the error message of a broken file with one."""
    try:
        longest = max((len(text) for _, text, _ in pickletools.genops(pickled) if isinstance(text, str)), default=0)
    except Exception as error:  # pickletools has no error class
        raise GraphveilError(f"{file} cannot be read ({brief(error)}): save it again.") from error
    if longest > MAX_TEXT_LENGTH:
        raise GraphveilError(
            f"{file} holds a text of {longest:,} characters: at most {MAX_TEXT_LENGTH:,} are allowed; remove it."
        )


def _single(value: Any, file: Path) -> Data:
    if isinstance(value, tuple | list) and len(value) >= 2 and value[1] is None:
        value = value[0]  # how PyG saves a data set of one graph
    if isinstance(value, dict) and "edge_index" in value:
        return Data.from_dict(value)
    if not isinstance(value, Data):
        raise GraphveilError(f"{file} holds a {type(value).__name__}: expected one torch_geometric.data.Data.")
    return value


def _check(value: Tensor, key: str, name: str) -> None:
    """Refuse a tensor that is larger than its storage, as an expanded view is."""
    if value.layout == torch.strided and value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise GraphveilError(f"{name}: {key} has {value.numel():,} values but stores fewer: save {key}.clone().")
