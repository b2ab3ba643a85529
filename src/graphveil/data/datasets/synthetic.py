"""A seeded generator of homophilous attributed graphs of any size, in time linear in nodes and edges.

Degrees are skewed (Pareto weights), links prefer nodes of the same class, features are sparse bags of words whose
topics depend on the class, and a binary `secret` is planted in a few words and, weakly, in the class.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphveil.data.graph import both_directions, undirected_pairs
from graphveil.data.sparse import csr_from_rows
from graphveil.errors import GraphveilError
from graphveil.randomness import generator


@dataclass(frozen=True)
class GraphSpec:
    """The parameters of a generated graph.

    Args:
        num_nodes: The number of nodes.
        num_edges: The number of links.
        num_features: The number of words.
        num_classes: The number of classes of `y`.
        words_per_node: How many words are drawn for each node.
        homophily: The probability that a link is drawn within the class of its first end.
        topic_share: The probability that a word is drawn from the words of the class.
        secret_share: The probability that a word is drawn from the words of the secret.
        skew: The exponent of the power law of the degrees, above 1.
    """

    num_nodes: int = 2000
    num_edges: int = 6000
    num_features: int = 500
    num_classes: int = 5
    words_per_node: int = 20
    homophily: float = 0.8
    topic_share: float = 0.3
    secret_share: float = 0.15
    skew: float = 2.5


def generate(spec: GraphSpec | None = None, seed: int = 0) -> Data:
    """Generate a graph with `x` (sparse CSR), `edge_index`, `y` and the planted attribute `secret`.

    Args:
        spec: The parameters of the graph; None uses the defaults.
        seed: The seed.
    """
    spec = spec or GraphSpec()
    _check(spec)
    random = generator(seed, "synthetic")
    y = torch.randint(spec.num_classes, (spec.num_nodes,), generator=random)
    biased = 0.4 + 0.2 * (y % 2)
    secret = (torch.rand(spec.num_nodes, generator=random) < biased).long()
    pairs = _links(spec, y, random)
    return Data(x=_words(spec, y, secret, random), edge_index=both_directions(pairs), y=y, secret=secret)


def _links(spec: GraphSpec, y: Tensor, random: torch.Generator) -> Tensor:
    """Draw ends in proportion to Pareto weights, the second from the first's class with `homophily`."""
    n = spec.num_nodes
    weight = (1 - torch.rand(n, generator=random, dtype=torch.float64)) ** (-1 / (spec.skew - 1))
    weight.clamp_(max=n**0.5)  # no hub is linked to more than its share of everything
    by_class = torch.argsort(y, stable=True)
    cumulative = weight[by_class].cumsum(0)
    ends = torch.bincount(y, minlength=spec.num_classes).cumsum(0)
    upper = torch.where(ends > 0, cumulative[(ends - 1).clamp(min=0)], 0.0)
    lower = torch.cat([upper.new_zeros(1), upper[:-1]])

    def draw(low: Tensor, high: Tensor) -> Tensor:
        at = low + (high - low) * torch.rand(low.numel(), generator=random, dtype=torch.float64)
        return by_class[torch.searchsorted(cumulative, at).clamp_(max=n - 1)]

    pairs = torch.empty(2, 0, dtype=torch.long)
    for _ in range(100):
        missing = spec.num_edges - pairs.size(1)
        count = missing + missing // 8 + 16
        total = cumulative[-1].expand(count)
        u = draw(torch.zeros_like(total), total)
        same = torch.rand(count, generator=random) < spec.homophily
        v = draw(torch.where(same, lower[y[u]], 0.0), torch.where(same, upper[y[u]], total))
        pairs = undirected_pairs(torch.cat([pairs, torch.stack([u, v])], dim=1))
        if pairs.size(1) >= spec.num_edges:
            break
    else:
        raise GraphveilError(
            f"only {pairs.size(1)} of {spec.num_edges} edges could be drawn with homophily {spec.homophily}:"
            " use fewer edges, less homophily or fewer classes."
        )
    keep = torch.randperm(pairs.size(1), generator=random)[: spec.num_edges]
    return pairs[:, keep.sort().values]


def _words(spec: GraphSpec, y: Tensor, secret: Tensor, random: torch.Generator) -> Tensor:
    """Draw words for each node: some from the block of its class, some from that of its secret, the rest skewed."""
    shape = (spec.num_nodes, spec.words_per_node)
    source = torch.rand(shape, generator=random)
    position = torch.rand(shape, generator=random)
    blocks = spec.num_classes + 2
    width = spec.num_features // blocks
    common = (position**2 * spec.num_features).long()
    topic = y[:, None] * width + (position * width).long()
    hidden = (spec.num_classes + secret[:, None]) * width + (position * width).long()
    words = torch.where(source < spec.topic_share, topic, common)
    words = torch.where(source > 1 - spec.secret_share, hidden, words)
    return csr_from_rows(words, spec.num_features)


def _check(spec: GraphSpec) -> None:
    n, blocks = spec.num_nodes, spec.num_classes + 2
    if n < 2 * spec.num_classes or spec.num_classes < 2:
        raise GraphveilError(
            f"the graph has {n} nodes in {spec.num_classes} classes: expected at least two classes and two nodes per"
            " class."
        )
    if not 1 <= spec.num_edges <= n * (n - 1) // 8:
        raise GraphveilError(
            f"the graph has {spec.num_edges} edges among {n} nodes: expected from 1 to {n * (n - 1) // 8}, a quarter of"
            " all pairs."
        )
    if spec.num_features < blocks or spec.words_per_node < 1 or spec.skew <= 1:
        raise GraphveilError(
            f"the graph has {spec.num_features} features, {spec.words_per_node} words per node and skew {spec.skew}:"
            f" expected at least {blocks} features, one word and a skew above 1."
        )
