"""Make the code book of a trained veil: which code each node gets, and which row of `z` each code stands for.

Where links are kept, the codes of the encoder are merged until the limit holds. Where links are hidden, the codes are
predicted classes, mostly of students that see features only; see `graphveil.training.distil`.
"""

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import safetensors.torch
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphveil.data import UNKNOWN, Split
from graphveil.data.degree_features import is_structural
from graphveil.data.origin import node_ids
from graphveil.models.codes import CodeBook, PairTable, hard_codes
from graphveil.randomness import hashed_names, uniform_by_name
from graphveil.target import without_links
from graphveil.training.book import make_book
from graphveil.training.counts import allowed_gain, hidden_counts
from graphveil.training.distil import Lesson, teach
from graphveil.training.graphs import features_of, graph_of
from graphveil.training.inputs import pick_device
from graphveil.training.loop import Problem
from graphveil.training.prediction import calibration, secret_classes
from graphveil.training.targets import class_secret, class_utility, utility_target

if TYPE_CHECKING:
    from graphveil.veil.estimator import Veil


def merged_book(veil: "Veil", graph: Data, split: Split, drawn: Sequence[Tensor]) -> CodeBook:
    """The encoder's codes, merged until the limit holds.

    Args:
        drawn: possible classes of all nodes, (draws, num_nodes) for each secret.
    """
    cpu, shape = torch.device("cpu"), veil.code_shape_
    codes, pairs = hard_codes(veil.encode(graph, split), shape), veil.modules_.pop("pairs")
    if veil.tradeoff == 0:  # codes that reveal no class may still reveal links, and at 0 nothing is kept
        codes = torch.zeros_like(codes)
    utility = utility_target(veil.utility, graph, [split], cpu)
    targets = [class_secret(name, graph, [split], veil.adversary.knows, cpu) for name in veil.secrets]
    hidden = [hidden_counts(codes, *one, shape.codes) for one in zip(targets, drawn, strict=True)]
    assert isinstance(pairs, PairTable)
    limit = float(allowed_gain(veil.recipe, torch.tensor(veil.tradeoff)))
    book = make_book(codes, pairs.mean.cpu(), shape, utility, hidden, limit, veil.recipe.out_channels)
    return CodeBook.of(book.merged, book.rows, book.signs, node_names(graph), book.merged[codes])


def add_distilled_books(veils: Sequence["Veil"], graph: Data, split: Split, probabilities: Tensor) -> None:
    """Add a student and a code book to veils with the same teachers.

    Codes are the classes that the teachers and students predict, changed until the limit for links holds. Students are
    trained once for all veils, unless other secrets are hidden besides the links: their weight depends on the
    trade-off.

    Args:
        veils: veils that differ only in trade-off; their encoders have the same weights.
        graph: the graph of all of them.
        split: the split of all of them.
        probabilities: mean of the teachers, not yet calibrated, (num_nodes, classes).
    """
    first, device = veils[0], pick_device(veils[0].device)
    utility = class_utility(first.utility, graph, [split], device)
    logits = probabilities.clamp_min(1e-30).log()
    y = torch.full((graph.x.size(0),), UNKNOWN, device=device)
    for part in (utility.train_examples, utility.val):
        y[part.index] = part.y
    lesson = Lesson(
        p=(logits / calibration(logits[utility.val.index], utility.val.y)).softmax(dim=-1),
        y=y,
        x=features_of(graph, [split], first.scaling_, first.recipe, device),
        in_channels=first.in_channels_,
        structural=is_structural(graph),
        secrets=_other_secrets(first, graph, split),
        weight=_secret_weight(first),
        link_weight=first.recipe.link_weight,
        crossfit=first.recipe.crossfit,
        teacher_weight=first.recipe.teacher_weight,
        hub_share=first.recipe.hub_share,
        channels=first.recipe.student_channels,
        seed=first.seed,
        batch_size=first.recipe.batch_size,
    )
    uniform = uniform_by_name(_key(first), node_ids(graph).cast(pa.string()).to_pylist()).to(device)
    links = split.message_pairs.to(device)
    numbers, signs, names = torch.arange(utility.num_classes), torch.ones(utility.num_classes), node_names(graph)
    with first.repeatable():
        taught = teach(lesson)
        for veil in veils:
            if lesson.secrets and veil is not first:
                taught = teach(replace(lesson, weight=_secret_weight(veil)))
            codes = taught.codes(links, veil.tradeoff, uniform).cpu()
            veil.modules_["student"] = copy.deepcopy(taught.student).cpu()
            veil.modules_["book"] = CodeBook.of(numbers, torch.eye(len(numbers)), signs, names, codes)


def class_probabilities(veil: "Veil", graph: Data, split: Split) -> Tensor:
    """The utility's class probabilities by encoder and head, not calibrated, (num_nodes, classes)."""
    device = pick_device(veil.device)
    with torch.no_grad():
        p: Tensor = veil.modules_["utility"].to(device)(veil.encode(graph, split).to(device)).softmax(dim=-1)
    return p


def node_names(graph: Data) -> Tensor:
    """A hash of each node's id, by which a node keeps its code, (num_nodes,) int64."""
    return hashed_names("", node_ids(graph).cast(pa.string()).to_pylist())


def _other_secrets(veil: "Veil", graph: Data, split: Split) -> list[Tensor]:
    """The classes, known or predicted, of the secrets beside the links, (num_nodes, classes) each."""
    device = pick_device(veil.device)
    problem = Problem(
        graph=graph_of(graph, [split], veil.scaling_, veil.recipe, device),
        utility=utility_target(veil.utility, graph, [split], device),
        secrets=[
            class_secret(name, graph, [split], veil.adversary.knows, device) for name in without_links(veil.secrets)
        ],
        tradeoff=torch.tensor(veil.tradeoff, dtype=torch.float64, device=device),
    )
    return [classes.shares for classes in secret_classes(problem, veil.in_channels_, [veil.seed])]


def _secret_weight(veil: "Veil") -> float:
    """The weight of the information about secrets beside the links, relative to the utility."""
    return veil.recipe.secret_weight * (1 - veil.tradeoff) / max(veil.tradeoff, 1e-12)


def _key(veil: "Veil") -> str:
    """The key that codes are drawn by: a digest of the weights, which are not released, and not the seed."""
    weights = {name: value.cpu() for name, value in veil.modules_["encoder"].state_dict().items()}
    return hashlib.sha256(safetensors.torch.save(weights)).hexdigest()
