"""Text of a certificate: percentages, the opening of the second statement, and what a certificate does not cover."""

import math

NOT_COVERED: tuple[tuple[str, str], ...] = (
    (
        "Attackers who also know other facts about a node. Two facts can reveal a secret together that neither reveals"
        " alone.",
        "Codes that graphveil trains are computed from features and links, never from a class that they hide; codes"
        " that hide links do depend on the links. The audit runs attackers who hold the codes and the features, and"
        " reports what the codes add.",
    ),
    (
        "Attackers who also hold the graph.",
        "The audit runs attackers with the public graph or, where links are hidden, with the known links. The"
        " certificate covers the codes alone.",
    ),
    (
        "Groups of nodes that leak more than the average.",
        "The certificate of a class has one row for each degree tercile, and names the worst code.",
    ),
    (
        "Several releases of the same nodes.",
        "A node keeps its code in later releases. `graphveil export --released-before RUN` certifies the releases"
        " together.",
    ),
    (
        "Settings that were chosen because their certificate was good.",
        "Settings are selected on validation nodes. The statement about other nodes uses calibration nodes, which"
        " neither training nor selection used.",
    ),
    (
        "The order of the rows, such as ids in the order of a crawl.",
        "With pseudonyms (`graphveil export --pseudonyms`) the rows are in the order of the pseudonyms. Without them,"
        " they are in the order of the graph.",
    ),
    (
        "Counts, probabilities or logits that are published with the codes.",
        "A release has hard codes, the code book and the card, but no counts, probabilities or logits of a secret.",
    ),
)
"""What a certificate does not cover, and how graphveil responds: (objection, answer)."""


def percent(share: float) -> str:
    """A share as a percentage with one decimal."""
    return f"{100 * share:.1f} %"


def at_most(share: float) -> str:
    """A share as a percentage with one decimal, rounded up, so that "at most" stays true."""
    return f"{min(100.0, math.ceil(1000 * share - 1e-9) / 10):.1f} %"


def confident(confidence: float) -> str:
    """The opening of a statement about nodes outside the release."""
    return f"For nodes like these, with {100 * confidence:g} % confidence,"
