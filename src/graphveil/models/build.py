"""Build an encoder or a head from a name, a class, an instance or "package.module:Class"."""

import importlib
import inspect
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from torch import Tensor, nn

from graphveil.errors import GraphveilError, unknown
from graphveil.models.encoders import GAT, GCN, HGCN, SAGE
from graphveil.models.heads import Bilinear, FermiDirac, LinearClassifier, MLPClassifier, PairMLP
from graphveil.models.layers import Features
from graphveil.models.sparse import Adjacency, SparseMatrix
from graphveil.target import Target

ENCODERS: Mapping[str, type[nn.Module]] = {"gcn": GCN, "gat": GAT, "hgcn": HGCN, "sage": SAGE}
NODE_HEADS: Mapping[str, type[nn.Module]] = {"linear": LinearClassifier, "mlp": MLPClassifier}
LINK_HEADS: Mapping[str, type[nn.Module]] = {
    "bilinear": Bilinear,
    "fermi-dirac": FermiDirac,
    "pair-mlp": PairMLP,
}

Spec = str | type[nn.Module] | nn.Module


def build_encoder(spec: Spec, **arguments: Any) -> nn.Module:
    """Build an encoder whose `forward` takes (x, adjacency).

    A module whose `forward` takes (x, edge_index), as PyG's do, is wrapped and gets dense features.

    Args:
        spec: A name in `ENCODERS`, a class, an instance (which is copied) or "package.module:Class".
        **arguments: The arguments of the class.
    """
    module = _build("encoder", spec, ENCODERS, arguments)
    second = list(inspect.signature(module.forward).parameters)[1:2]
    return EdgeIndexEncoder(module) if second == ["edge_index"] else module


def build_head(spec: Spec, target: str, in_channels: int, num_classes: int) -> nn.Module:
    """Build a head.

    Args:
        spec: A name in `LINK_HEADS` or `NODE_HEADS`, a class, an instance (which is copied) or "package.module:Class".
        target: "links" or the name of node classes.
        in_channels: The number of columns of z.
        num_classes: The number of node classes; link heads do not get it.
    """
    if Target.of(target).is_links:
        return _build("link head", spec, LINK_HEADS, {"in_channels": in_channels})
    return _build("node head", spec, NODE_HEADS, {"in_channels": in_channels, "num_classes": num_classes})


def spec_name(spec: Spec) -> str:
    """Return the name of a spec: that in the table, or the import path of the class."""
    if isinstance(spec, str):
        return spec
    kind = spec if isinstance(spec, type) else type(spec)
    return f"{kind.__module__}:{kind.__qualname__}"


class EdgeIndexEncoder(nn.Module):
    """Adapts a module that takes PyG's `(x, edge_index)` to an encoder."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Features, adjacency: Adjacency) -> Tensor:
        dense = x.to_dense() if isinstance(x, SparseMatrix) else x
        z: Tensor = self.module(dense, adjacency.edge_index)
        return z


def _build(kind: str, spec: Spec, table: Mapping[str, type[nn.Module]], arguments: Mapping[str, Any]) -> nn.Module:
    if isinstance(spec, nn.Module):
        return deepcopy(spec)  # the caller's module is never trained in place
    cls = _find(kind, spec, table) if isinstance(spec, str) else spec
    try:
        return cls(**arguments)
    except (TypeError, ValueError) as error:
        raise GraphveilError(
            f"{kind} {spec_name(spec)} cannot be built with {', '.join(f'{k}={v}' for k, v in arguments.items())}"
            f" ({error}): change these settings, or the arguments of the class."
        ) from error


def _find(kind: str, name: str, table: Mapping[str, type[nn.Module]]) -> type[nn.Module]:
    if name in table:
        return table[name]
    module_name, colon, class_name = name.partition(":")
    if not colon:
        raise unknown(kind, name, [*table, "package.module:Class"])
    try:
        imported = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise GraphveilError(f"{kind} {name!r} cannot be imported ({error}): check package.module:Class.") from error
    if not (isinstance(imported, type) and issubclass(imported, nn.Module)):
        raise GraphveilError(f"{kind} {name!r} is not a torch.nn.Module class: name such a class.")
    return imported
