"""`certify`: compute what any discrete embedding reveals, instead of attacking it.

An embedding with few distinct rows is a release of codes: each distinct row is one code. The certificate bounds what
it reveals about a secret, for every attacker who sees the embedding alone. For attackers who also hold the graph or
other columns, use `audit`.
"""

from typing import Any

import numpy as np
from torch_geometric.data import Data

from graphveil.auditing.embeddings import check_embeddings, exact
from graphveil.auditing.metrics import Integers
from graphveil.auditing.secret import LinkSecret, Queries, Secret, matching_classes
from graphveil.codes import Certificate, class_certificate, class_table, distinct_codes, link_certificate
from graphveil.codes.classes import MAX_CELLS
from graphveil.codes.counting import link_blocks
from graphveil.codes.measures import best_accuracy, best_auc, best_balanced_accuracy
from graphveil.codes.tables import link_cells, weighted_counts
from graphveil.data import UNKNOWN, Split, check_graph, check_split, node_classes
from graphveil.data.graph import columns_of, undirected_pairs
from graphveil.data.origin import class_names
from graphveil.errors import GraphveilError
from graphveil.target import LINKS, Target

NODES_PER_CODE = 5
"""A certificate needs at least this many nodes per distinct row, on average."""


def certify(z: Any, graph: Data, split: Split, secret: str = "labels", classes: str = "labels") -> Certificate:
    """Bound what an embedding with few distinct rows reveals about a secret, for every attacker who sees it alone.

    The statement about other nodes uses the test nodes or the test links of the split. It holds if neither training nor
    selection used their secrets.

    Args:
        z: embeddings, (num_nodes, channels), with few distinct rows; from any method.
        graph: the graph of the nodes.
        split: its split.
        secret: "labels", "links" or the name of a node attribute.
        classes: the node attribute of the class-matched AUC of links.

    Returns:
        A `ClassCertificate`, or a `LinkCertificate` for links.
    """
    check_graph(graph)
    check_split(split, graph)
    check_embeddings(z, graph.x.size(0))
    codes = row_codes(z)
    if (obstacle := _obstacle(codes, graph, secret)) is not None:
        raise GraphveilError(obstacle)
    return _certificate(codes, graph, split, secret, classes)


def certificate_of(
    z: Any, graph: Data, split: Split, secret: str = "labels", classes: str = "labels"
) -> Certificate | None:
    """`certify` without its checks of the arguments; None if there is no certificate, as for a continuous embedding."""
    return codes_certificate(row_codes(z), graph, split, secret, classes)


def codes_certificate(codes: Integers, graph: Data, split: Split, secret: str, classes: str) -> Certificate | None:
    """The same, from codes as `row_codes` returns them."""
    return None if _obstacle(codes, graph, secret) is not None else _certificate(codes, graph, split, secret, classes)


def link_bound(codes: Integers, graph: Data, split: Split, classes: str) -> float:
    """The value of a certificate of links that a limit is compared with, for any number of codes.

    With one code it is the chance level; with too many for a certificate, it is high by coincidence alone.
    """
    return _certificate(codes, graph, split, LINKS, classes).bound


def row_codes(z: Any) -> Integers:
    """The number of each node's distinct row, (num_nodes,), of the values as given."""
    return distinct_codes(exact(z))[0]


def is_discrete(codes: Integers) -> bool:
    """Whether there are several codes, and few enough of them for a certificate."""
    count = int(codes.max()) + 1
    return count > 1 and count * NODES_PER_CODE <= len(codes)


def limits_on_test(codes: Integers, secret: Secret) -> dict[str, float]:
    """The best value of any rule from codes to answers on the test examples themselves, by metric.

    No attack that sees the codes alone can exceed it on these examples.

    Args:
        codes: (num_nodes,).
        secret: the secret with the test examples.
    """
    if isinstance(secret, LinkSecret):
        limits = {"auc": _best_auc(codes, secret.test)}
        return (
            limits if secret.matched is None else limits | {"class_matched_auc": _best_auc(codes, secret.matched.test)}
        )
    table = class_table(codes[secret.test.index], secret.test.y, int(codes.max()) + 1, secret.num_classes)
    table = table[:, table.any(axis=0)]
    return {"accuracy": best_accuracy(table), "balanced_accuracy": best_balanced_accuracy(table)}


def degree_terciles(pairs: Integers, num_nodes: int) -> Integers:
    """The degree tercile of each node, (num_nodes,): 1 for the fewest links to 3; equal degrees are in the same one.

    Args:
        pairs: (2, links), each link once.
        num_nodes: the number of nodes of the graph.
    """
    degree = np.zeros(num_nodes, dtype=np.int64)
    for _, block in link_blocks(pairs):
        degree += np.bincount(block.ravel(), minlength=num_nodes)
    lower, upper = np.quantile(degree, [1 / 3, 2 / 3])
    terciles: Integers = 1 + (degree > lower).astype(np.int64) + (degree > upper)
    return terciles


def _obstacle(codes: Integers, graph: Data, secret: str) -> str | None:
    """Why these codes have no certificate for a secret; None if they have one."""
    count, num_nodes = int(codes.max()) + 1, len(codes)
    if count > 1 and not is_discrete(codes):
        return (
            f"z has {count:,} distinct rows for {num_nodes:,} nodes: a certificate needs at least"
            f" {NODES_PER_CODE} nodes per distinct row on average. Release codes, or use gv.audit, which attacks"
            " embeddings of any kind."
        )
    return None if Target.of(secret).is_links else _class_obstacle(count, graph, secret)


def _class_obstacle(count: int, graph: Data, secret: str) -> str | None:
    """Why a node secret has no certificate with this many codes; None if it has one."""
    y = node_classes(graph, secret).cpu().numpy()
    known = np.unique(y[y != UNKNOWN])
    if len(known) == 0:
        return f"{secret!r} is known for none of the {len(y):,} nodes: fill in some values."
    if len(known) == 1:
        return f"{secret!r} has only one class: expected at least two classes."
    if count * (int(known[-1]) + 1) > MAX_CELLS:
        size = f"{count:,} distinct rows and {known[-1] + 1:,} classes"
        return f"the table of {size} is too large: merge classes of {secret!r}."
    return None


def _certificate(codes: Integers, graph: Data, split: Split, secret: str, classes: str) -> Certificate:
    pairs = undirected_pairs(graph.edge_index.cpu())
    if Target.of(secret).is_links:
        y = matching_classes(graph, classes)
        test_links = columns_of(split.test_links.cpu(), pairs)
        return link_certificate(codes, pairs.numpy(), y, calibration=test_links.numpy())
    y = node_classes(graph, secret).cpu().numpy()
    return class_certificate(
        codes,
        y,
        calibration=split.test_nodes.cpu().numpy(),
        strata={"degree tercile": degree_terciles(pairs.numpy(), len(codes))},
        secret=secret,
        names=class_names(graph, secret, int(y.max(initial=0)) + 1),
    )


def _best_auc(codes: Integers, queries: Queries) -> float:
    _, cell_of = link_cells(codes, queries.index)
    links, nonlinks = (weighted_counts(cell_of, queries.y == is_link) for is_link in (1, 0))
    return best_auc(links, nonlinks)
