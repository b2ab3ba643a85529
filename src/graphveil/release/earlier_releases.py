"""What a release reveals together with earlier releases of the same nodes.

Nodes are matched by their ids. A node has a code in each release that contains it, and all of them together are one
joint code, whose certificate covers attackers who hold all releases. It is computed for the nodes of this release
that are in at least one of the earlier ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from graphveil.auditing.certify import degree_terciles
from graphveil.auditing.secret import matching_classes
from graphveil.codes import Certificate, class_certificate, joint, link_certificate
from graphveil.data import UNKNOWN, Split, node_classes
from graphveil.data.graph import encode_pairs, undirected_pairs
from graphveil.data.origin import node_ids
from graphveil.errors import GraphveilError
from graphveil.release.certified import Certified, certified
from graphveil.release.codes import Integers, codes_of
from graphveil.release.ledger import NodeCodes, Released, node_hashes, read_ledger
from graphveil.runs.folder import RunFolder
from graphveil.runs.graphs import graph_of
from graphveil.target import Target


@dataclass(frozen=True)
class Joint:
    """The certificates of a release and the earlier releases of the same nodes together.

    Args:
        releases: the number of earlier releases.
        same_run: the number of them with other codes of the same run.
        nodes: the number of nodes of this release that are in at least one of them.
        certificates: the joint certificates by secret; a secret that is known for none of these nodes has none.
    """

    releases: int
    same_run: int
    nodes: int
    certificates: dict[str, Certified]


def released_by(run: Path) -> list[Released]:
    """The codes that were released from a run: those in its ledger or, without a ledger, its present ones.

    The list is empty if the embeddings of the run are not codes.
    """
    folder = RunFolder(run)
    record = folder.record()
    if listed := read_ledger(run):
        return listed
    embeddings = folder.embeddings()
    codes = codes_of(embeddings.z)
    if not codes.are_few:
        return []
    return [Released(NodeCodes.of(embeddings.ids, codes.numbers), record.graph_digest, record.split_digest)]


def joint_certificates(run: Path, codes: NodeCodes, earlier: Sequence[Released], root: Path | None = None) -> Joint:
    """Count what the codes of a run and earlier releases reveal together about each secret of the run.

    Args:
        run: the folder of the run.
        codes: the codes of its nodes.
        earlier: earlier releases with codes of some of these nodes.
        root: the folder of the graph's raw files.
    """
    folder = RunFolder(run)
    record = folder.record()
    if record.reading is None and any(other.graph != record.graph_digest for other in earlier):
        raise GraphveilError(
            f"the nodes of {run} have no ids of their own, so they cannot be matched with those of another graph: give"
            " --released-before only for releases of the same graph."
        )
    graph, split = graph_of(folder, record, root)
    nodes = node_hashes(node_ids(graph))
    found = [codes.find(nodes), *(other.codes.find(nodes) for other in earlier)]
    if len(found[0]) != len(codes.nodes) or (found[0] < 0).any():
        raise GraphveilError(f"the nodes of {run} are not those of its graph: train it again.")
    inside = np.flatnonzero(np.any(np.array(found[1:]) >= 0, axis=0))
    together = found[0][inside]
    for other in found[1:]:
        together = joint(together, other[inside] + 1)  # 0 for a node that the other release does not contain
    splits = {(record.graph_digest, record.split_digest)} | {(other.graph, other.split) for other in earlier}
    part = _Part(together, inside, graph, split, held_out=len(splits) == 1)
    certificates = dict[str, Certified]()
    for secret in record.config.secrets:
        counted = (
            _link_certificate(part, record.config.utility)
            if Target.of(secret).is_links
            else _class_certificate(part, secret)
        )
        if counted is not None:
            certificates[secret] = certified(counted)
    return Joint(len(earlier), sum(other.same_run for other in earlier), len(inside), certificates)


@dataclass(frozen=True, eq=False)
class _Part:
    """The nodes of a graph that are counted.

    Args:
        codes: their joint codes, (n,).
        nodes: their indices in the graph, (n,) in ascending order.
        graph: the graph.
        split: its split.
        held_out: whether no training has used the test part of the split: the runs have the same split.
    """

    codes: Integers
    nodes: Integers
    graph: Data
    split: Split
    held_out: bool


def _class_certificate(part: _Part, secret: str) -> Certificate | None:
    """None if fewer than two classes are known."""
    y = node_classes(part.graph, secret).cpu().numpy()[part.nodes]
    if len(np.unique(y[y != UNKNOWN])) < 2:
        return None
    test = np.flatnonzero(np.isin(part.nodes, part.split.test_nodes.cpu().numpy()))
    terciles = degree_terciles(undirected_pairs(part.graph.edge_index.cpu()).numpy(), part.graph.x.size(0))
    strata = {"degree tercile": terciles[part.nodes]}
    return class_certificate(part.codes, y, test if part.held_out else None, strata, secret=secret)


def _link_certificate(part: _Part, utility: str) -> Certificate | None:
    """For the links among the nodes; None if there are none, or if all nodes are linked.

    Args:
        utility: the node attribute that links are matched by.
    """
    place = np.full(part.graph.x.size(0), -1)
    place[part.nodes] = np.arange(len(part.nodes))
    pairs = undirected_pairs(part.graph.edge_index.cpu())
    among = (place[pairs.numpy()] >= 0).all(axis=0)
    if not among.any() or 2 * among.sum() == len(part.nodes) * (len(part.nodes) - 1):
        return None
    test = torch.isin(encode_pairs(pairs), encode_pairs(part.split.test_links.cpu())).numpy()[among]
    y = matching_classes(part.graph, utility)
    return link_certificate(
        part.codes,
        place[pairs.numpy()[:, among]],
        None if y is None else y[part.nodes],
        calibration=np.flatnonzero(test & part.held_out),  # with too few links there is no statement about other nodes
    )
