"""The floor of a link secret: the AUC that the true classes of two nodes imply by themselves.

If a utility keeps classes, anybody can compare the classes of two nodes, and in most graphs equal classes are linked
more often. The best rule on two classes also knows which different classes are linked often. Its score of a pair is

    log( share of links with these two classes / share of node pairs with these two classes )

with the links counted among the known ones.
"""

from collections.abc import Callable

import numpy as np

from graphveil.auditing.metrics import Array, Integers, auc
from graphveil.auditing.secret import LinkSecret, Queries
from graphveil.codes.tables import link_table
from graphveil.data.graph import UNKNOWN
from graphveil.formats import Interval


def floor_auc(secret: LinkSecret) -> Interval | None:
    """The AUC of the best rule on the true classes of the test pairs; None without classes."""
    y = secret.classes
    if y is None or (y == UNKNOWN).all():
        return None
    return _auc_on_known_classes(secret, y, _class_pair_scores(y, secret.known))


def equal_classes_auc(secret: LinkSecret) -> Interval | None:
    """The AUC of the rule that compares two true classes for equality; None without classes."""
    y = secret.classes
    if y is None:
        return None
    return _auc_on_known_classes(secret, y, lambda pairs: (y[pairs[0]] == y[pairs[1]]).astype(float))


def class_scores(secret: LinkSecret) -> Array | None:
    """The scores of the best rule for the test pairs, (pairs,); NaN where a class is unknown, None without classes."""
    y, pairs = secret.classes, secret.test.index
    if y is None or (y == UNKNOWN).all():
        return None
    known = (y[pairs] != UNKNOWN).all(axis=0)
    return np.where(known, _class_pair_scores(y, secret.known)(pairs), np.nan)


def _auc_on_known_classes(secret: LinkSecret, y: Integers, score: Callable[[Integers], Array]) -> Interval | None:
    """The AUC on the test pairs of known classes; None if they are all links or all non-links."""
    pairs = secret.test.index
    known = (y[pairs] != UNKNOWN).all(axis=0)
    linked = secret.test.y[known]
    if not 0 < linked.sum() < len(linked):
        return None
    return auc(score(pairs[:, known]), linked, pairs[:, known])


def _class_pair_scores(y: Integers, known: Queries) -> Callable[[Integers], Array]:
    """The score of pairs by their classes, with the smoothing of one link at the expected shares."""
    links = known.index[:, known.y == 1]
    links = links[:, (y[links] != UNKNOWN).all(axis=0)]
    classes = int(y.max()) + 1
    linked = link_table(np.maximum(y, 0), links, classes)  # these links have known classes only
    share = np.bincount(y[y != UNKNOWN], minlength=classes) / (y != UNKNOWN).sum()
    expected = np.maximum(np.outer(share, share), 1e-12)
    score = np.log((linked + expected) / (linked.sum() + 1)) - np.log(expected)
    return lambda pairs: score[y[pairs[0]], y[pairs[1]]]
