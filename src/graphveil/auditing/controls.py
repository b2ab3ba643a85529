"""Controls, and attackers who hold more than z: the input of their attacks.

A control is other input for the same attacks. The attackers who hold the features or the known links beside z have
controls too: the same attackers without z and, for a link secret, with the true classes in place of z.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits
from torch_geometric.data import Data

from graphveil.auditing import links, nodes
from graphveil.auditing.attacks import (
    CLASSES_AND_FEATURES,
    CLASSES_AND_LINKS,
    KNOWN_LINKS,
    Attack,
    scaled,
    standardised,
)
from graphveil.auditing.embeddings import check_embeddings
from graphveil.auditing.known_links import known_links_of, links_alone, with_links
from graphveil.auditing.learners import Rows
from graphveil.auditing.metrics import Integers
from graphveil.auditing.secret import LinkSecret, Secret
from graphveil.auditing.tasks import Task
from graphveil.data import UNKNOWN
from graphveil.errors import GraphveilError
from graphveil.randomness import stream

RESERVED = (
    "embeddings",
    "raw features",
    "public graph",
    KNOWN_LINKS,
    CLASSES_AND_FEATURES,
    CLASSES_AND_LINKS,
    "chance level",
)
"""Names that a control of the caller must not have."""
RAW_COLUMNS = 64
"""Raw features with more columns are reduced to this many by a singular value decomposition."""


def control_rows(graph: Data, given: Mapping[str, Any], seed: int, quick: bool) -> dict[str, Rows]:
    """The rows of all controls by name: the raw features and the controls of the caller.

    Args:
        graph: the graph with the features.
        given: further embeddings by name, (num_nodes, channels) each.
        seed: the seed of the reduction of the features.
        quick: whether to leave out the raw features.
    """
    for name in given:
        if name in RESERVED:
            raise GraphveilError(f"a control is called {name!r}, which is reserved: choose another name.")
    features = {} if quick else {"raw features": raw_features(graph, seed)}
    return features | {name: check_embeddings(rows, graph.x.size(0), name) for name, rows in given.items()}


def raw_features(graph: Data, seed: int) -> Rows:
    """The features of a graph, (num_nodes, columns), reduced if there are more than `RAW_COLUMNS` columns.

    Non-negative features are first weighted by inverse document frequency, which helps with few known secrets.
    """
    x: Any = graph.x.cpu()
    if x.layout == torch.sparse_csr:
        parts = (part.numpy() for part in (x.values(), x.col_indices(), x.crow_indices()))
        x = sp.csr_matrix(tuple(parts), shape=tuple(x.shape))
    else:
        x = x.numpy()
    if x.shape[1] > RAW_COLUMNS:
        if x.min() >= 0:
            x = TfidfTransformer().fit_transform(x)
        else:
            x = MaxAbsScaler().fit_transform(x) if sp.issparse(x) else standardised(x)
        x = TruncatedSVD(RAW_COLUMNS, random_state=stream(seed, "audit", "raw") % 2**32).fit_transform(x)
    return np.asarray(x.todense() if sp.issparse(x) else x, dtype=np.float32)


def with_features(secret: Secret, z_columns: int) -> list[Attack]:
    """The attacks on z and the features side by side.

    Args:
        secret: the secret that is attacked.
        z_columns: the number of columns of z, which come first.
    """
    return links.with_features() if isinstance(secret, LinkSecret) else nodes.with_features(z_columns)


def holding_features(z: Rows, features: Rows, secret: Secret) -> list[Task]:
    """The attackers who hold the features beside z, and their control.

    Args:
        z: embeddings, (num_nodes, channels).
        features: (num_nodes, columns), scaled.
        secret: the secret that is attacked.
    """
    both = np.concatenate([scaled(z), features], axis=1)
    tasks = [Task("embeddings", attack, both) for attack in with_features(secret, z.shape[1])]
    return tasks + classes_and_features(secret, features)


def classes_and_features(secret: Secret, features: Rows) -> list[Task]:
    """For a link secret, the attackers who hold the features, with the true classes in place of z.

    Args:
        secret: the secret that is attacked.
        features: (num_nodes, columns), scaled as beside z.
    """
    if not isinstance(secret, LinkSecret) or secret.classes is None:
        return []
    rows = np.concatenate([_true_classes(secret.classes), features], axis=1)
    return [Task(CLASSES_AND_FEATURES, attack, rows) for attack in links.with_features()]


def known_link_tasks(secret: Secret, z: Rows, seed: int) -> list[Task]:
    """For a link secret, the attackers who hold the known links: without z, with z, and with the true classes.

    Args:
        secret: the secret that is attacked.
        z: embeddings, (num_nodes, channels).
        seed: the seed of the graph of the known links.
    """
    if not isinstance(secret, LinkSecret):
        return []
    with threadpool_limits(1, user_api="blas"):  # as in a `Task`
        known = known_links_of(secret, stream(seed, "audit", KNOWN_LINKS) % 2**32)
    no_columns = np.zeros((secret.num_nodes, 0), dtype=np.float32)
    tasks = [Task(KNOWN_LINKS, attack, no_columns) for attack in links_alone(known)]
    tasks += [Task("embeddings", attack, z) for attack in with_links(known)]
    if secret.classes is not None:
        classes = _true_classes(secret.classes)
        tasks += [Task(CLASSES_AND_LINKS, attack, classes) for attack in with_links(known)]
    return tasks


def _true_classes(classes: Integers) -> Rows:
    """One-hot classes, scaled; before scaling, the row of an unknown class is 0."""
    one_hot = classes[:, None] == np.unique(classes[classes != UNKNOWN])
    return scaled(one_hot.astype(np.float32))
