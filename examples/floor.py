"""Why links cannot be hidden below the label floor: publish nothing but one predicted class a node, and audit that.

python examples/floor.py cora
"""

import sys

import numpy as np

import graphveil as gv
from graphveil.auditing import Context
from graphveil.runs.audit import utility_of


def main(name: str) -> None:
    """Train a plain GCN for labels, throw away all but its guesses, and let the panel look for links in them."""
    graph = gv.load(name)
    split = gv.Split.paper(graph, seed=0, message_edges="all")
    veil = gv.Veil(utility="labels", secret="links").unprotected().fit(graph, split)
    z = veil.transform(graph, split)
    guess = veil.modules_["utility"].cpu()(z).argmax(dim=1).numpy()
    accuracy = float((guess == graph.y.numpy())[split.test_nodes.numpy()].mean())
    context = Context(utility=utility_of("labels", accuracy, graph, split))
    for what, published in (("all embeddings", z.numpy()), ("one class a node", np.eye(guess.max() + 1)[guess])):
        found = gv.audit(published, graph, split, "links", context=context)
        floor, matched = found.floor, found.class_matched
        assert floor is not None
        assert matched is not None
        print(f"{name}, {what}: labels {accuracy:.1%} right")  # noqa: T201
        print(f"  links, strongest attack ({found.strongest.attack}): AUC {found.strongest.headline}")  # noqa: T201
        print(f"  floor, the best rule on pairs of true labels: {floor}; class-matched: {matched.matched}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cora")
