"""The code book of a release: how many codes there are, which are merged, and the row of each code."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.codes.merge import Counts, Merging
from graphveil.errors import GraphveilError
from graphveil.models.codes import CodeShape
from graphveil.training.counts import (
    code_shares,
    count_classes,
    kept_class,
    kept_links,
    link_scores,
    merged_table,
    merging,
)
from graphveil.training.recipes import Recipe
from graphveil.training.targets import LearnedTarget, NodeClasses

MAX_SIZE = 6
"""The largest number of values of a group that is chosen by default: three groups of six are 216 codes."""
NODES_PER_CODE = 14
"""About so many nodes, or two of each class, for each code that an encoder may use; most codes stay unused."""

CODES_FOR_DEGREES = 100
"""With fewer codes, the degree of a node does not affect its code: on small graphs that cost 2 to 5 points of AUC."""


@dataclass(frozen=True, eq=False)
class Book:
    """The codes of a release.

    Args:
        merged: (M,) the released code of each code of the encoder.
        rows: (released codes, channels), the embedding of each released code.
        signs: (channels,), 1 or -1: the score of a link is the sum of signs * z_u * z_v.
        merging: Which codes were merged, and what it cost.
    """

    merged: Tensor
    rows: Tensor
    signs: Tensor
    merging: Merging


def code_shape(recipe: Recipe, num_nodes: int, num_classes: int) -> CodeShape:
    """Return the recipe's shape of codes; a size of None is chosen so that a code has enough nodes of each class.

    With few nodes per code, the best rule from code to class is above chance level by coincidence alone.
    """
    if recipe.code_size is not None:
        shape = CodeShape(recipe.code_groups, recipe.code_size)
        if shape.codes > num_nodes:
            raise GraphveilError(
                f"{shape.codes:,} codes for {num_nodes:,} nodes are too many: lower code_size or code_groups, or omit"
                " them."
            )
        return shape
    groups = recipe.code_groups
    size = round((num_nodes / max(NODES_PER_CODE, 2 * num_classes)) ** (1 / groups))
    return CodeShape(groups, min(max(size, 2), MAX_SIZE))


def counts_degrees(recipe: Recipe, shape: CodeShape) -> bool:
    """Return whether the degree of a node affects its code."""
    return recipe.code_degree and shape.codes >= CODES_FOR_DEGREES


def make_book(
    codes: Tensor,
    pairs: Tensor,
    shape: CodeShape,
    utility: LearnedTarget,
    hidden: Sequence[Tensor],
    gain: float,
    channels: int,
) -> Book:
    """Merge the codes of a run until the best rule on each secret is within its limit, and compute the rows.

    Rows predict the utility. If it is links, the sum of signs * z_u * z_v approximates log( L / (m m') ), the log of
    how much more frequent a link is than by chance. If it is a class, a row has the log-probabilities of the classes.

    Args:
        codes: (n,), the code of every node.
        pairs: (M, M), how often links join codes.
        shape: The shape of the encoder's codes.
        utility: The target to keep.
        hidden: `hidden_counts` of each secret.
        gain: How far the best rule may be above chance level in each of these counts.
        channels: The number of columns of a row.
    """
    sizes = torch.bincount(codes, minlength=shape.codes)
    kept: Counts = kept_links(pairs, codes)
    if isinstance(utility, NodeClasses):
        kept = kept_class(count_classes(codes, utility.train_examples, utility, shape.codes))
    result = merging(codes, kept, hidden, gain)
    merged = _with_unused(torch.from_numpy(result.mapping), sizes, shape)
    released = merged[codes]
    if isinstance(utility, NodeClasses):
        counts = count_classes(released, utility.train_examples, utility, result.num_codes)
        rows = ((counts + 0.5) / (counts + 0.5).sum(dim=-1, keepdim=True)).log()
        signs = torch.ones(rows.size(1))
    else:
        table = merged_table(pairs.double(), merged)[: result.num_codes, : result.num_codes]
        rows, signs = factor(link_scores(table, code_shares(released, result.num_codes)), channels)
        rows = rows if result.num_codes > 1 else torch.zeros_like(rows)  # without rounding errors
    return Book(merged, rows.float(), signs.float(), result)


def factor(scores: Tensor, channels: int) -> tuple[Tensor, Tensor]:
    """Factor a symmetric table of scores into rows and signs, by its largest eigenvalues.

    The sum of signs * row_a * row_b approximates the score of (a, b). Signs are needed because the table may have
    negative eigenvalues.

    Args:
        scores: (codes, codes).
        channels: The number of eigenvalues.

    Returns:
        Rows (codes, at most `channels`) and signs (at most `channels`,).
    """
    values, vectors = torch.linalg.eigh(scores)
    largest = values.abs().argsort(descending=True)[:channels]
    rows = vectors[:, largest] * values[largest].abs().sqrt()
    sign = rows.gather(0, rows.abs().argmax(dim=0, keepdim=True)).sign()  # that of an eigenvector is arbitrary
    return rows * sign.where(sign != 0, 1.0), values[largest].sign()


def _with_unused(mapping: Tensor, sizes: Tensor, shape: CodeShape) -> Tensor:
    """Map each unused code to the released code of the used code that shares most values with it.

    A node of a later graph may have an unused code.
    """
    place = shape.size ** torch.arange(shape.groups)
    values = torch.arange(shape.codes)[:, None] // place % shape.size
    used = sizes.nonzero().flatten()
    shared = (values[:, None, :] == values[used][None]).sum(dim=-1).double()
    nearest = used[(shared + sizes[used] / (sizes.sum() + 1)).argmax(dim=1)]
    return mapping.where(sizes > 0, mapping[nearest])
