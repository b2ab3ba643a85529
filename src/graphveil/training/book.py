"""From a trained encoder to the codes of a release: how many there are, which become one, which row each one gets."""

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
from graphveil.training.targets import NodeClasses, Target

LARGEST_SIZE = 6
"""Values of a group, if the recipe does not say how many: three groups of six are 216 codes."""
NODES_PER_CODE = 14
"""That there are at the least for every code an encoder may use, or two of each class; training leaves most empty."""

CODES_FOR_DEGREES = 100
"""With fewer codes, a node's number of links does not count in them: on small graphs that cost 2 to 5 points of AUC."""


@dataclass(frozen=True, eq=False)
class Book:
    """The codes of a release, and what merging cost.

    Args:
        merged: (M,) the released code of each of the encoder's. rows: (released codes, channels). signs: (channels,).
    """

    merged: Tensor
    rows: Tensor
    signs: Tensor
    merging: Merging


def code_shape(recipe: Recipe, num_nodes: int, num_classes: int) -> CodeShape:
    """The recipe's groups, and its size or one that leaves enough nodes of each class to a code.

    With few nodes to a code the best rule from code to class lies above guessing by chance alone.
    """
    if recipe.code_size is not None:
        shape = CodeShape(recipe.code_groups, recipe.code_size)
        if shape.codes > num_nodes:
            raise GraphveilError(
                f"{shape.codes:,} codes for {num_nodes:,} nodes: set code_size or code_groups lower, or leave them out."
            )
        return shape
    groups = recipe.code_groups
    size = round((num_nodes / max(NODES_PER_CODE, 2 * num_classes)) ** (1 / groups))
    return CodeShape(groups, min(max(size, 2), LARGEST_SIZE))


def counts_degrees(recipe: Recipe, shape: CodeShape) -> bool:
    """Whether a node's number of links counts in its code."""
    return recipe.code_degree and shape.codes >= CODES_FOR_DEGREES


def make_book(
    codes: Tensor,
    pairs: Tensor,
    shape: CodeShape,
    utility: Target,
    hidden: Sequence[Tensor],
    gain: float,
    channels: int,
) -> Book:
    """Merge the codes of a run until the best rule on each secret is within its limit, and give each a row.

    Rows answer for the utility. Where links are kept, the sum of signs * z_u * z_v is the log of how much likelier than
    chance a link is, as far as `channels` numbers can say it; where a class is kept, a row holds the logarithms of the
    classes' shares.

    Args:
        codes: (n,) of every node. pairs: (M, M), how often links join codes.
        hidden: `hidden_counts` of each secret. gain: how far the best rule may lie above guessing in each of them.
    """
    sizes = torch.bincount(codes, minlength=shape.codes)
    kept: Counts = kept_links(pairs, codes)
    if isinstance(utility, NodeClasses):
        kept = kept_class(count_classes(codes, utility.train_examples, utility, shape.codes))
    found = merging(codes, kept, hidden, gain)
    merged = _with_unused(torch.from_numpy(found.mapping), sizes, shape)
    released = merged[codes]
    if isinstance(utility, NodeClasses):
        counts = count_classes(released, utility.train_examples, utility, found.num_codes)
        rows = ((counts + 0.5) / (counts + 0.5).sum(dim=-1, keepdim=True)).log()
        signs = torch.ones(rows.size(1))
    else:
        together = merged_table(pairs.double(), merged)[: found.num_codes, : found.num_codes]
        rows, signs = factor(link_scores(together, code_shares(released, found.num_codes)), channels)
        rows = rows if found.num_codes > 1 else torch.zeros_like(rows)  # one code says nothing, rounding aside
    return Book(merged, rows.float(), signs.float(), found)


def factor(scores: Tensor, channels: int) -> tuple[Tensor, Tensor]:
    """Rows and signs whose signed products are nearest to a symmetric table of scores.

    Signs are needed: a score may have a part that belongs to one end alone, which no inner product has.

    Returns:
        (codes, at most `channels`) and (at most `channels`,).
    """
    values, vectors = torch.linalg.eigh(scores)
    largest = values.abs().argsort(descending=True)[:channels]
    rows = vectors[:, largest] * values[largest].abs().sqrt()
    way = rows.gather(0, rows.abs().argmax(dim=0, keepdim=True)).sign()  # an eigenvector has none of its own
    return rows * way.where(way != 0, 1.0), values[largest].sign()


def _with_unused(mapping: Tensor, sizes: Tensor, shape: CodeShape) -> Tensor:
    """Codes that no node has get the released code of the one in use that shares most values with them.

    A node of a later graph may have one.
    """
    place = shape.size ** torch.arange(shape.groups)
    values = torch.arange(shape.codes)[:, None] // place % shape.size
    used = sizes.nonzero().flatten()
    shared = (values[:, None, :] == values[used][None]).sum(dim=-1).double()
    nearest = used[(shared + sizes[used] / (sizes.sum() + 1)).argmax(dim=1)]
    return mapping.where(sizes > 0, mapping[nearest])
