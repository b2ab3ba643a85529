"""Counts of hard codes: rules from code to class, scores of pairs, and which codes a release must merge."""

from collections.abc import Sequence

import torch
from torch import Tensor

from graphveil.codes.merge import ClassCounts, Counts, LinkCounts, Merging, merge
from graphveil.codes.tables import Integers, pair_table
from graphveil.training.recipes import Recipe
from graphveil.training.targets import Examples, LearnedTarget, ListedExamples, NodeClasses

PRIOR_LINKS = 0.02
"""The weight of independence in a smoothed table of linked codes."""
MIN_CODE_SIZE = 5
"""The fewest nodes of a released code, since an average over codes says little about a few people."""
RESOLUTION = 10**6
"""The number of links that a table of shares is scaled to."""


def allowed_gain(recipe: Recipe, tradeoff: Tensor) -> Tensor:
    """Return how far the best rule may be above chance level: `leak_limit` * lambda / (1 - lambda), (...)."""
    return recipe.leak_limit * tradeoff / (1 - tradeoff).clamp(min=1e-12)


def code_shares(codes: Tensor, num_codes: int) -> Tensor:
    """Return the share of the nodes that have each code, (..., M), from codes (..., n)."""
    ones = torch.ones_like(codes, dtype=torch.float64)
    counts = ones.new_zeros(*codes.shape[:-1], num_codes).scatter_add_(-1, codes, ones)
    return counts / codes.size(-1)


def link_scores(pairs: Tensor, shares: Tensor) -> Tensor:
    """Return log( L / (m m') ) of each pair of codes, (..., M, M), smoothed by `PRIOR_LINKS`.

    Args:
        pairs: L, the mean table of linked codes, (..., M, M).
        shares: m, the shares of the released codes, (..., M).
    """
    expected = shares[..., :, None] * shares[..., None, :]
    return (torch.lerp(pairs.double(), expected, PRIOR_LINKS) + 1e-9).log() - (expected + 1e-9).log()


def count_classes(codes: Tensor, examples: Examples, target: LearnedTarget, num_codes: int) -> Tensor:
    """Return how many of the examples have each code and class, (..., M, C) float64."""
    own = codes.reshape(-1).index_select(0, examples.index.flatten()).view(examples.y.shape)
    cells = own * target.num_classes + examples.y
    counts = torch.zeros(*cells.shape[:-1], num_codes * target.num_classes, dtype=torch.float64, device=cells.device)
    counts.scatter_add_(-1, cells, torch.ones_like(cells, dtype=torch.float64))
    return counts.view(*cells.shape[:-1], num_codes, target.num_classes)


def usable_counts(codes: Tensor, target: NodeClasses, num_codes: int) -> Tensor:
    """Return the counts of training and validation nodes by code and class, (..., M, C)."""
    parts = (target.train_examples, target.val)
    return torch.stack([count_classes(codes, part, target, num_codes) for part in parts]).sum(dim=0)


def hidden_counts(codes: Tensor, target: NodeClasses, drawn: Tensor, num_codes: int) -> Tensor:
    """Return the counts that must be within the limit, (1 + draws, ..., M, C): of usable nodes, and of all nodes.

    The certificate counts all nodes. If codes are merged until the limit holds for some nodes, their accuracy on the
    other nodes is higher, by chance alone.

    Args:
        codes: (..., n).
        target: The secret.
        drawn: (draws, ..., n), possible classes of all nodes.
        num_codes: M.
    """
    rows = torch.arange(codes.numel(), device=codes.device).view(codes.shape)
    all_nodes = [count_classes(codes, ListedExamples(rows, y), target, num_codes) for y in drawn]
    return torch.stack([usable_counts(codes, target, num_codes), *all_nodes])


def rule_accuracy(codes: Tensor, target: NodeClasses, examples: Examples, num_codes: int) -> Tensor:
    """Return the accuracy on examples of the majority class per code, counted on the training nodes, (...)."""
    counts = count_classes(codes, target.train_examples, target, num_codes)
    prior = counts.sum(dim=-2, keepdim=True) / counts.sum(dim=(-2, -1), keepdim=True)
    rule = (counts + 2 * prior).argmax(dim=-1)
    own = codes.reshape(-1).index_select(0, examples.index.flatten()).view(examples.y.shape)
    return (rule.gather(-1, own) == examples.y).double().mean(dim=-1)


def pair_scores(scores: Tensor, codes: Tensor, examples: Examples) -> Tensor:
    """Return the score of each pair of nodes from a table (..., M, M), (..., pairs)."""
    u, v = (codes.reshape(-1).index_select(0, end.flatten()).view(examples.y.shape) for end in examples.index)
    return scores.flatten(-2).gather(-1, u * scores.size(-1) + v)


def kept_links(pairs: Tensor, codes: Tensor) -> LinkCounts:
    """Return the counts of links that are kept, from their shares (M, M) and the codes (n,).

    Shares are of soft codes; those between codes that no two nodes have are set to 0.
    """
    of_nodes = pair_table(codes.cpu().numpy(), len(pairs))
    links = _integers(pairs * RESOLUTION)
    links[of_nodes == 0] = 0
    return LinkCounts(links, of_nodes)


def kept_class(counts: Tensor) -> ClassCounts:
    """Return the counts (M, C) of a class that is kept."""
    return ClassCounts(_integers(counts))


def merging(codes: Tensor, kept: Counts, secrets: Sequence[Tensor], gain: float) -> Merging:
    """Find which codes of one run to merge, so that the best rule on each secret is within its limit.

    Args:
        codes: (n,).
        kept: Counts of the utility.
        secrets: Counts that must be within the limit, (tables, M, C) of each secret.
        gain: How far the best rule may be above chance level.
    """
    tables = [_integers(table) for secret in secrets for table in secret]
    limits = [(ClassCounts(table), float(table.sum(axis=0).max() / table.sum()) + gain) for table in tables]
    sizes = torch.bincount(codes.cpu(), minlength=secrets[0].size(-2)).numpy()
    return merge(sizes, kept, limits, min_size=min(MIN_CODE_SIZE, len(codes)))


def merged_table(pairs: Tensor, mapping: Tensor) -> Tensor:
    """Return the table of linked codes after merging, (..., M, M).

    Args:
        pairs: The table before, (..., M, M).
        mapping: The new code of each code, (..., M).
    """
    chosen = torch.nn.functional.one_hot(mapping, pairs.size(-1)).to(pairs.dtype)
    return chosen.mT @ pairs @ chosen


def _integers(counts: Tensor) -> Integers:
    return counts.round().long().cpu().numpy()
