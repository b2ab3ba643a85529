"""Attacks that hold the public graph."""

from graphveil.auditing import propagation
from graphveil.auditing.secret import NodeSecret
from tests.auditing.made import noise


def test_the_row_of_a_known_node_does_not_contain_its_own_class(coin: NodeSecret) -> None:
    """The rows of known nodes are computed from the other half, so a learner cannot copy the answer."""
    rows = propagation.graph_rows(noise(0, nodes=500), coin, coin.known["all"])
    known = coin.known["all"]
    predicted = rows[known.index][:, 1] > rows[known.index][:, 0]
    assert (predicted == known.y).mean() < 0.6
