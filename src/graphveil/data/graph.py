"""Checks and views of a graph, which is PyG's `Data`, treated as simple and undirected, and never altered.

`edge_index` may be directed and have self-loops or duplicates. `undirected_pairs` returns each link once as (u, v) with
u < v, and the whole package works with these pairs.
"""

import hashlib
from collections.abc import Sequence
from itertools import combinations

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphveil.data.origin import Origin
from graphveil.data.sentences import list_names
from graphveil.errors import GraphveilError
from graphveil.target import LABELS, Target, without_links

ROWS_AT_ONCE = 2**16
"""How many rows of features are checked at once, since these may be mapped from a file and larger than the memory."""
UNKNOWN = -1
"""The code of an unknown label or attribute; it is never a class."""
BLOCK = 2**20
"""Pairs that are compared at once, where a copy of all would take more memory than the pairs themselves."""


def undirected_pairs(edge_index: Tensor) -> Tensor:
    """Return each link once, without self-loops, as (2, links) with u < v in ascending order of `encode_pairs`.

    An `edge_index` from `both_directions` is not sorted again: the result is a view of it, which must not be altered.

    Args:
        edge_index: (2, edges), in any directions, with or without duplicates.
    """
    edge_index = edge_index.long()  # a product of two node numbers does not fit a narrower type
    if _has_both_directions_in_order(edge_index):
        return edge_index[:, : edge_index.size(1) // 2]
    u, v = edge_index[:, edge_index[0] != edge_index[1]]
    pairs = torch.stack([torch.minimum(u, v), torch.maximum(u, v)])  # amin(dim=0) takes forty times as long
    codes = encode_pairs(pairs).sort(stable=True).values  # a stable sort of integers is a radix sort, and much faster
    new = torch.ones_like(codes, dtype=torch.bool)
    new[1:] = codes[1:] != codes[:-1]
    return decode_pairs(codes[new])


def _has_both_directions_in_order(edge_index: Tensor) -> bool:
    """Whether an `edge_index` of int64 is what `both_directions` returns of distinct pairs in ascending order."""
    links, odd = divmod(edge_index.size(1), 2)
    if odd or not links:
        return False
    last = -1
    for pairs, others in zip(*(half.split(BLOCK, dim=1) for half in edge_index.split(links, dim=1)), strict=True):
        codes = encode_pairs(pairs)
        ascending = (pairs[0] < pairs[1]).all() & (codes[:1] > last).all() & (codes[1:] > codes[:-1]).all()
        if not ascending or not pairs.flip(0).equal(others):
            return False
        last = int(codes[-1:].sum())
    return True


def columns_of(links: Tensor, pairs: Tensor) -> Tensor:
    """Return the columns of `pairs` at which links are, ascending, (links,).

    Args:
        links: (2, links), all of them among `pairs`.
        pairs: (2, n) in ascending order of `encode_pairs`.
    """
    wanted, columns, start = sorted_codes([links]), [links.new_empty(0)], 0
    for block in pairs.split(BLOCK, dim=1):
        codes = encode_pairs(block)
        first, end = torch.searchsorted(wanted, codes[:1]), torch.searchsorted(wanted, codes[-1:], right=True)
        columns.append(start + torch.searchsorted(codes, wanted[first:end]))
        start += block.size(1)
    return torch.cat(columns)


def sorted_codes(parts: Sequence[Tensor]) -> Tensor:
    """Return the codes of the pairs of all parts, (2, n) each, in ascending order; with no other copy of them."""
    codes = torch.empty(sum(part.size(1) for part in parts), dtype=torch.long)
    start = 0
    for block in (block for part in parts for block in part.cpu().split(BLOCK, dim=1)):
        codes[start : start + block.size(1)] = encode_pairs(block)
        start += block.size(1)
    codes.numpy().sort()
    return codes


def encode_pairs(pairs: Tensor) -> Tensor:
    """Return the integer v (v - 1) / 2 + u for each pair u < v; it numbers all pairs 0, 1, ... without gaps.

    Args:
        pairs: (2, ...).
    """
    u, v = pairs.unbind()
    codes: Tensor = v * (v - 1) // 2 + u
    return codes


def decode_pairs(codes: Tensor) -> Tensor:
    """Return the pairs (2, ...) of codes (...): the inverse of `encode_pairs`."""
    v = ((1 + (1 + 8 * codes.double()).sqrt()) / 2).long()
    v -= (v * (v - 1) // 2 > codes).long()  # a large root may be rounded up, or down, by one
    v += (v * (v + 1) // 2 <= codes).long()
    return torch.stack([codes - v * (v - 1) // 2, v])


def both_directions(pairs: Tensor) -> Tensor:
    """Return PyG's `edge_index`, (2, 2 * links), of undirected pairs (2, links)."""
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def decode_both_directions(codes: Tensor) -> Tensor:
    """Return PyG's `edge_index`, (2, 2 * links), of the pairs with these codes, (links,), without other copies."""
    edge_index = codes.new_empty(2, 2 * codes.numel())
    forth, back = edge_index.split(codes.numel(), dim=1) if codes.numel() else (edge_index, edge_index)
    for start in range(0, codes.numel(), BLOCK):
        pairs = decode_pairs(codes[start : start + BLOCK])
        forth[:, start : start + BLOCK], back[:, start : start + BLOCK] = pairs, pairs.flip(0)
    return edge_index


def node_attributes(graph: Data) -> list[str]:
    """Return the names of the tensors of one value per node, without the labels."""
    names = [name for name in graph.keys() if name not in ("x", "y", "edge_index")]  # noqa: SIM118 - not a dict
    return [name for name in names if isinstance(graph[name], Tensor) and graph[name].shape == (graph.num_nodes,)]


def class_targets(graph: Data) -> list[str]:
    """Return the names of the targets of a graph that may be classes: its labels and its node attributes."""
    return [*([LABELS] if "y" in graph else []), *node_attributes(graph)]


def node_classes(graph: Data, name: str) -> Tensor:
    """Return the class of every node, (num_nodes,) int64, `UNKNOWN` where it is unknown.

    Args:
        graph: The graph.
        name: "labels" for `graph.y`, or the name of a node attribute of the graph.

    Raises:
        GraphveilError: If the graph does not have it, or its values are not classes.
    """
    key = Target.of(name).key
    if key not in graph:
        raise _missing_target(graph, name)
    value = graph[key]
    if not isinstance(value, Tensor) or value.dim() != 1 or value.numel() != graph.num_nodes:
        what = f"has shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"is a {type(value).__name__}"
        raise GraphveilError(f"{name!r} {what}: expected one class for each of {graph.num_nodes} nodes.")
    if value.is_floating_point():
        value = value.nan_to_num(nan=UNKNOWN)
    if value.is_complex() or (value.is_floating_point() and bool((value != value.round()).any())):
        raise GraphveilError(
            f"{name!r} holds {value.dtype}: expected classes as whole numbers from 0 (or {UNKNOWN} or NaN for unknown);"
            " bin or encode the column first."
        )
    classes = value.long()
    if classes.numel() and (classes.min() < UNKNOWN or classes.max() >= classes.numel()):
        raise GraphveilError(
            f"{name!r} has values from {int(classes.min())} to {int(classes.max())}: number the classes from 0 without"
            f" large gaps, and use {UNKNOWN} for unknown."
        )
    return classes


def _missing_target(graph: Data, name: str) -> GraphveilError:
    """The error for classes that a graph does not have; it lists the existing ones and the columns that were read."""
    existing = class_targets(graph)
    origin = graph.get("origin")
    columns = [column for column in origin.columns if column not in existing] if isinstance(origin, Origin) else []
    if not columns:
        return GraphveilError(
            f"the graph has no {name!r}: choose 'links', 'labels' (graph.y)"
            f" or one of its node attributes ({', '.join(existing) or 'it has none'})."
        )
    has = f"it has {list_names(existing)}, and " if existing else ""
    return GraphveilError(
        f"the graph has no {name!r}: {has}its table has the columns {list_names(columns)}. Name a column to keep or to"
        " hide, as in --secret NAME (in Python: read_graph(..., attributes=['NAME']))."
    )


def check_targets(graph: Data, utility: str, secrets: Sequence[str]) -> None:
    """Refuse targets that the graph does not have, a secret that is also the utility, and an empty list of secrets."""
    if not secrets:
        raise GraphveilError("no secret was given: name at least one, such as 'labels', 'links' or a node attribute.")
    if utility in secrets:
        raise GraphveilError(f"utility and secret are both {utility!r}: what is kept cannot be hidden.")
    if len(set(secrets)) < len(secrets):
        raise GraphveilError(f"a secret is named twice among {', '.join(secrets)}: name each once.")
    targets = {name: node_classes(graph, name) for name in without_links((utility, *secrets))}
    for (first, classes), (second, other) in combinations(targets.items(), 2):
        if classes.equal(other):
            raise GraphveilError(f"{first!r} and {second!r} are the same classes of the same nodes: name one of them.")


def check_graph(graph: Data) -> None:
    """Refuse a graph that cannot be trained on.

    Raises:
        GraphveilError: If it is no graph, or `x` or `edge_index` is missing, or has a wrong shape, type or value.
    """
    if not isinstance(graph, Data):
        raise GraphveilError(
            f"the graph is a {type(graph).__name__}: expected a torch_geometric Data, as load and read_graph return it."
        )
    if graph.edge_index is None or graph.x is None:
        missing = "edge_index" if graph.edge_index is None else "x"
        raise GraphveilError(f"the graph has no {missing}: a graph needs node features x and links edge_index.")
    if graph.x.layout not in (torch.strided, torch.sparse_csr):
        raise GraphveilError(f"x has the layout {graph.x.layout}: make it dense, or sparse with x.to_sparse_csr().")
    num_nodes = graph.x.size(0)
    if graph.x.dim() != 2 or num_nodes == 0 or graph.x.size(1) == 0:
        raise GraphveilError(
            f"x has shape {tuple(graph.x.shape)}: expected one row of features per node, at least one node"
            " and at least one feature."
        )
    edge_index = graph.edge_index
    if (
        edge_index.dim() != 2
        or edge_index.size(0) != 2
        or edge_index.is_floating_point()
        or edge_index.dtype == torch.bool
    ):
        raise GraphveilError(
            f"edge_index has shape {tuple(edge_index.shape)} and type {edge_index.dtype}:"
            " expected (2, number of edges) whole numbers."
        )
    if edge_index.numel() and (edge_index.min() < 0 or edge_index.max() >= num_nodes):
        worst = int(edge_index.min()) if edge_index.min() < 0 else int(edge_index.max())
        raise GraphveilError(
            f"edge_index has node {worst}, but the graph has nodes 0 to {num_nodes - 1}:"
            " number the nodes from 0 without gaps."
        )
    values = graph.x.values() if graph.x.layout == torch.sparse_csr else graph.x
    if not all(torch.isfinite(part).all() for part in values.split(ROWS_AT_ONCE)):
        raise GraphveilError("x holds NaN or infinite values: replace or remove them first.")


def digest(graph: Data) -> str:
    """Return a SHA-256 of all tensors of a graph, which is the same on every machine."""
    sha = hashlib.sha256()
    for key in sorted(graph.keys()):
        value = graph[key]
        if not isinstance(value, Tensor):
            continue
        parts = [value]
        if value.layout == torch.sparse_csr:
            parts = [value.crow_indices(), value.col_indices(), value.values()]
        for part in parts:
            sha.update(f"{key}:{tuple(part.shape)}:{part.dtype}".encode())
            sha.update(part.detach().cpu().contiguous().numpy().ravel().data)
    return sha.hexdigest()
