"""Counts of hard codes: rules that are read off them, scores of pairs, and which codes a release has to merge."""

from collections.abc import Sequence

import torch
from torch import Tensor

from graphveil.codes.merge import ClassCounts, Counts, LinkCounts, Merging, merge
from graphveil.codes.tables import Integers, pair_table
from graphveil.training.recipes import Recipe
from graphveil.training.targets import Examples, NodeClasses, Target

PRIOR_LINKS = 0.02
"""The share of links without evidence in a table, spread as if codes said nothing."""
SMALLEST_CODE = 5
"""Nodes that a released code has at the least: an average over codes can hide a few people."""
RESOLUTION = 10**6
"""Links that a table of shares is counted as."""


def allowed_gain(recipe: Recipe, tradeoff: Tensor) -> Tensor:
    """How far the best rule may lie above guessing: the recipe's limit at 1/2, nothing at 0, anything at 1."""
    return recipe.leak_limit * tradeoff / (1 - tradeoff).clamp(min=1e-12)


def code_shares(codes: Tensor, num_codes: int) -> Tensor:
    """The share of the nodes that have each code, (..., M), from (..., n)."""
    ones = torch.ones_like(codes, dtype=torch.float64)
    counts = ones.new_zeros(*codes.shape[:-1], num_codes).scatter_add_(-1, codes, ones)
    return counts / codes.size(-1)


def link_scores(pairs: Tensor, shares: Tensor) -> Tensor:
    """log( L / (m m') ) of each pair of codes, (..., M, M), with a few links of no evidence added.

    Args:
        pairs: L, the mean table of linked codes. shares: m, of the released codes.
    """
    expected = shares[..., :, None] * shares[..., None, :]
    return (torch.lerp(pairs.double(), expected, PRIOR_LINKS) + 1e-9).log() - (expected + 1e-9).log()


def count_classes(codes: Tensor, examples: Examples, target: Target, num_codes: int) -> Tensor:
    """How many of the examples have each code and class, (..., M, C) float64."""
    own = codes.reshape(-1).index_select(0, examples.index.flatten()).view(examples.y.shape)
    cells = own * target.num_classes + examples.y
    counts = torch.zeros(*cells.shape[:-1], num_codes * target.num_classes, dtype=torch.float64, device=cells.device)
    counts.scatter_add_(-1, cells, torch.ones_like(cells, dtype=torch.float64))
    return counts.view(*cells.shape[:-1], num_codes, target.num_classes)


def usable_counts(codes: Tensor, target: NodeClasses, num_codes: int) -> Tensor:
    """The nodes whose class may be used in training or selection, by code and class, (..., M, C)."""
    parts = (target.train_examples, target.val)
    return torch.stack([count_classes(codes, part, target, num_codes) for part in parts]).sum(dim=0)


def hidden_counts(codes: Tensor, target: NodeClasses, drawn: Tensor, num_codes: int) -> Tensor:
    """The counts that a limit is held on, (1 + draws, ..., M, C): of the nodes whose class may be used, and of all.

    The certificate will count all nodes. Codes that were merged until the limit holds for some of them say more about
    the others, by chance alone.

    Args:
        drawn: (draws, ..., n) possible classes of all nodes.
    """
    rows = torch.arange(codes.numel(), device=codes.device).view(codes.shape)
    whole = [count_classes(codes, Examples(rows, y), target, num_codes) for y in drawn]
    return torch.stack([usable_counts(codes, target, num_codes), *whole])


def rule_accuracy(codes: Tensor, target: NodeClasses, examples: Examples, num_codes: int) -> Tensor:
    """The accuracy on examples of naming the class that most training nodes of a code have, (...)."""
    counts = count_classes(codes, target.train_examples, target, num_codes)
    prior = counts.sum(dim=-2, keepdim=True) / counts.sum(dim=(-2, -1), keepdim=True)
    rule = (counts + 2 * prior).argmax(dim=-1)
    own = codes.reshape(-1).index_select(0, examples.index.flatten()).view(examples.y.shape)
    return (rule.gather(-1, own) == examples.y).double().mean(dim=-1)


def pair_scores(scores: Tensor, codes: Tensor, examples: Examples) -> Tensor:
    """The table's entry for each pair of nodes, (..., pairs)."""
    one, other = (codes.reshape(-1).index_select(0, end.flatten()).view(examples.y.shape) for end in examples.index)
    return scores.flatten(-2).gather(-1, one * scores.size(-1) + other)


def kept_links(pairs: Tensor, codes: Tensor) -> LinkCounts:
    """Counts of links that are kept, from their shares (M, M) and the codes (n,).

    Shares are of soft codes: what lies between codes that no two nodes have is left out.
    """
    of_nodes = pair_table(codes.cpu().numpy(), len(pairs))
    links = _integers(pairs * RESOLUTION)
    links[of_nodes == 0] = 0
    return LinkCounts(links, of_nodes)


def kept_class(counts: Tensor) -> ClassCounts:
    """Counts of a class that is kept, (M, C)."""
    return ClassCounts(_integers(counts))


def merging(codes: Tensor, kept: Counts, secrets: Sequence[Tensor], gain: float) -> Merging:
    """Which codes of one run become one, so that the best rule on each secret is within its limit.

    Args:
        codes: (n,). kept: counts of the utility.
        secrets: counts that the limit is held on, (tables, M, C) of each secret.
        gain: how far the best rule may lie above guessing.
    """
    tables = [_integers(table) for secret in secrets for table in secret]
    limits = [(ClassCounts(one), float(one.sum(axis=0).max() / one.sum()) + gain) for one in tables]
    sizes = torch.bincount(codes.cpu(), minlength=secrets[0].size(-2)).numpy()
    return merge(sizes, kept, limits, min_size=min(SMALLEST_CODE, len(codes)))


def merged_table(pairs: Tensor, mapping: Tensor) -> Tensor:
    """The table of linked codes after merging, (..., M, M).

    Args:
        mapping: the new code of each, (..., M).
    """
    chosen = torch.nn.functional.one_hot(mapping, pairs.size(-1)).to(pairs.dtype)
    return chosen.mT @ pairs @ chosen


def _integers(counts: Tensor) -> Integers:
    return counts.round().long().cpu().numpy()
