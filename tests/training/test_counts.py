"""Counts of codes and classes: which nodes a limit is held on."""

import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.codes.tables import class_table
from graphveil.training.codes import MOST_DRAWS, Codes
from graphveil.training.counts import hidden_counts
from graphveil.training.targets import NodeClasses, class_secret
from graphveil.veil import Fitting
from tests.training.made import veil


def test_a_limit_is_held_on_all_nodes_with_classes_drawn_where_none_may_be_used(planted: Data, parts: gv.Split) -> None:
    training = Fitting([veil(), veil(seed=1)], planted, [parts, parts]).training
    method = training.method
    assert isinstance(method, Codes)
    (known,) = method.secrets
    usable = torch.cat([parts.train_nodes, parts.spare_nodes, parts.val_nodes])
    one, other = known.drawn_of(0), known.drawn_of(1)
    assert (one[:, usable] == planted.y[usable]).all()
    assert not one[:, parts.test_nodes].equal(other[:, parts.test_nodes]), "each run has draws of its own"
    assert (one[0] != one[1])[parts.test_nodes].any(), "two draws differ"
    share = (one == planted.y)[:, parts.test_nodes].double().mean()
    assert share > 0.5, "draws follow the predictions, which are better than the chance level of three classes"
    hard = torch.arange(600) % 4
    held = hidden_counts(hard, known_target(planted, parts), one, 4)
    assert held.sum(dim=(1, 2)).tolist() == [len(usable), *[600] * MOST_DRAWS], "a small graph has many draws"
    for table, y in zip(held[1:], one, strict=True):
        assert table.equal(torch.from_numpy(class_table(hard.numpy(), y.numpy(), 4, 3)).double())


def known_target(graph: Data, split: gv.Split) -> NodeClasses:
    return class_secret("labels", graph, [split], "all", torch.device("cpu"))
