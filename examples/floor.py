"""The label floor of links: publish only the predicted class of each node, and audit that.

python examples/floor.py cora
"""

import sys

import numpy as np

import graphveil as gv
from graphveil.auditing import Context
from graphveil.runs.audit import utility_of


def main(name: str) -> None:
    """Train an unprotected GCN for labels, and attack links from its embeddings and from its predicted classes."""
    graph = gv.load(name)
    split = gv.Split.paper(graph, seed=0, message_edges="all")
    veil = gv.Veil(utility="labels", secret="links").unprotected().fit(graph, split)
    z = veil.transform(graph, split)
    predicted = veil.modules_["utility"].cpu()(z).argmax(dim=1).numpy()
    accuracy = float((predicted == graph.y.numpy())[split.test_nodes.numpy()].mean())
    context = Context(utility=utility_of("labels", accuracy, graph, split))
    for what, published in (
        ("all embeddings", z.numpy()),
        ("the predicted classes", np.eye(predicted.max() + 1)[predicted]),
    ):
        found = gv.audit(published, graph, split, "links", context=context)
        floor, matched = found.floor, found.class_matched
        assert floor is not None
        assert matched is not None
        print(f"{name}, {what}: label accuracy {accuracy:.1%}")  # noqa: T201
        print(f"  strongest attack on links ({found.strongest.attack}): AUC {found.strongest.headline}")  # noqa: T201
        print(f"  floor, the best rule on pairs of true labels: {floor}; class-matched: {matched.matched}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cora")
