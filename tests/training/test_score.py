"""Test values of released codes, which are those of the rule that they were made for, and the table of a score."""

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.models.codes import CodeBook
from graphveil.training.score import Joint, score_codes
from graphveil.training.targets import secret_target, utility_target

CPU = torch.device("cpu")


def test_codes_that_are_the_classes_keep_all_of_them_and_one_code_keeps_nothing(
    small: Data, small_split: gv.Split
) -> None:
    utility = utility_target("labels", small, [small_split], CPU)
    secrets = {name: secret_target(name, small, [small_split], "all", CPU) for name in ("labels", "links")}
    book = CodeBook.of(torch.arange(3), torch.eye(3), torch.ones(3), torch.arange(150), small.y)
    score = score_codes(small.y, book, utility, secrets)
    assert score.utility == score.secrets[0].value == 1
    assert score.secrets[1].value > 0.6, "linked nodes share a class"
    silent = score_codes(torch.zeros_like(small.y), book, utility, secrets)
    labels, links = silent.secrets
    assert silent.utility == pytest.approx(float((small.y[small_split.test_nodes] == 0).double().mean()))
    assert labels.value <= labels.chance
    assert links.value == links.chance == 0.5
    assert [one.attack for one in silent.secrets] == ["majority class per code", "link rate per pair of codes"]


def test_a_secret_may_be_called_utility() -> None:
    score = gv.Score(0.75, "auc", 0.5, (Joint("utility", "accuracy", 0.4, 0.4, 0.3),))
    assert "<th>utility</th><td>75.00% auc" in score._repr_html_()
    assert "<th>attack on utility</th><td>40.00% accuracy" in score._repr_html_()
