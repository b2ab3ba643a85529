"""`certify`: count what a discrete embedding reveals, anybody's, instead of attacking it.

An embedding with few distinct rows is a release of codes: each distinct row is one code. What it reveals about a secret
is bounded for every attacker who sees the embedding alone. Attackers who also hold the graph or other columns are the
business of `audit`.
"""

from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graphveil.audit.embeddings import check_embeddings
from graphveil.audit.metrics import Integers
from graphveil.codes import Certificate, class_certificate, distinct_codes, link_certificate
from graphveil.data import UNKNOWN, Split, check_graph, node_classes
from graphveil.data.graph import encode_pairs, undirected_pairs
from graphveil.errors import GraphveilError

NODES_PER_CODE = 5
"""An embedding with more distinct rows than one for so many nodes has no certificate."""


def certify(z: Any, graph: Data, split: Split, secret: str = "labels") -> Certificate:
    """What the distinct rows of an embedding can reveal about `secret`, for every attacker who sees only them.

    The statement about other nodes is from the test nodes or the test links of the split, so it holds if neither
    training nor selection used their secrets.

    Args:
        z: (num_nodes, channels) with few distinct rows, of any maker.
        secret: "labels", "links" or the name of a node attribute.

    Returns:
        A `ClassCertificate`, or a `LinkCertificate` for links.
    """
    check_graph(graph)
    num_nodes = graph.x.size(0)
    if split.num_nodes != num_nodes:
        raise GraphveilError(
            f"the split is for {split.num_nodes} nodes and the graph has {num_nodes}: build it from this one."
        )
    split.check_links(graph)
    codes = _codes(z, num_nodes)
    pairs = undirected_pairs(graph.edge_index.cpu())
    if secret == "links":
        y = node_classes(graph, "labels").cpu().numpy() if "y" in graph else None
        test_links = torch.searchsorted(encode_pairs(pairs), encode_pairs(split.test_links.cpu()))
        return link_certificate(codes, pairs.numpy(), y, calibration=test_links.numpy())
    y = node_classes(graph, secret).cpu().numpy()
    if len(np.unique(y[y != UNKNOWN])) == 1:
        raise GraphveilError(f"{secret!r} has one class only: there is nothing to tell apart.")
    return class_certificate(
        codes,
        y,
        calibration=split.test_nodes.cpu().numpy(),
        strata={"degree third": degree_thirds(pairs.numpy(), num_nodes)},
        secret=secret,
    )


def degree_thirds(pairs: Integers, num_nodes: int) -> Integers:
    """1 for the third of the nodes with the fewest links, 2 and 3 for the others, (num_nodes,); ties stay together.

    Args:
        pairs: (2, links), each link once.
    """
    degree = np.bincount(pairs.ravel(), minlength=num_nodes)
    lower, upper = np.quantile(degree, [1 / 3, 2 / 3])
    thirds: Integers = 1 + (degree > lower).astype(np.int64) + (degree > upper)
    return thirds


def _codes(z: Any, num_nodes: int) -> Integers:
    """The codes of the distinct rows of the values as given; refuse an embedding that is not discrete."""
    check_embeddings(z, num_nodes)
    if isinstance(z, torch.Tensor):
        z = (z.double() if z.is_floating_point() else z).detach().cpu().numpy()
    codes, first = distinct_codes(np.asarray(z))
    if len(first) * NODES_PER_CODE > num_nodes:
        raise GraphveilError(
            f"z has {len(first):,} distinct rows for {num_nodes:,} nodes: a certificate needs at least"
            f" {NODES_PER_CODE} nodes a distinct row on average. Release codes, or use graphveil.audit, which attacks"
            " embeddings of any kind."
        )
    return codes
