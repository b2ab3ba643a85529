"""Which graph a training sees: as a whole or by mini-batches, with the links of a split or all links."""

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.training.graphs import WholeGraph, features_of, graph_of, in_batches
from graphveil.training.inputs import FeatureRows
from graphveil.training.sampled import SampledGraph
from tests.training.test_sampled import encoder_of

CPU = torch.device("cpu")


def test_only_a_batch_that_is_smaller_than_the_graph_is_a_part_of_it(small: Data) -> None:
    sizes = {None: False, 499: True, 500: False, 10_000: False}  # 150 nodes and 500 links
    assert {size: in_batches(gv.Recipe(batch_size=size), small) for size in sizes} == sizes


@pytest.mark.parametrize("with_split", [True, False])
def test_without_a_split_messages_pass_along_all_links(small: Data, small_split: gv.Split, with_split: bool) -> None:
    splits, links = ([small_split], 425) if with_split else ([], 500)  # 85 % of 500 links
    whole, sampled = (graph_of(small, splits, "none", gv.Recipe(batch_size=size), CPU) for size in (None, 20))
    assert isinstance(whole, WholeGraph)
    assert isinstance(sampled, SampledGraph)
    assert sampled.degree.sum() == 2 * links + 150, "a link at both of its nodes, and a self-loop at each node"
    encoder = encoder_of("gcn")
    torch.testing.assert_close(sampled.embed(encoder), whole.embed(encoder), rtol=1e-5, atol=1e-6)


def test_a_model_of_features_only_reads_rows_by_mini_batches(small: Data, small_split: gv.Split) -> None:
    whole, rows = (features_of(small, [small_split], "none", gv.Recipe(batch_size=size), CPU) for size in (None, 20))
    assert not isinstance(whole, FeatureRows)
    assert isinstance(rows, FeatureRows)
