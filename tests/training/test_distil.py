"""What the codes that hide links are made from: students' predictions, a share of the encoder's, and limits."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import graphveil as gv
from graphveil.codes.link_auc import matched_aucs
from graphveil.codes.measures import best_auc
from graphveil.codes.tables import link_table, pair_table, unordered
from graphveil.errors import GraphveilError
from graphveil.models.student import Student
from graphveil.training.distil import Channel, Lesson, Taught, _predict, codes_within, link_limit


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    """Features that tell nothing, so that students cannot learn the encoder's predictions."""
    generator = torch.Generator().manual_seed(0)
    return Lesson(
        p=torch.randn(60, 3, generator=generator).softmax(dim=-1),
        y=torch.full((60,), -1),
        x=torch.ones(60, 4),
        in_channels=4,
        structural=False,
        secrets=[],
        weight=1.0,
        link_weight=0.0,
        crossfit=0.5,
        teacher_weight=0.0,
        hub_share=0.0,
        channels=4,
        seed=0,
    )


@pytest.fixture(scope="module")
def student() -> Student:
    torch.manual_seed(0)
    return Student(4, 4, 3).eval()


def _mixture(lesson: Lesson, student: Student) -> Tensor:
    return Taught(lesson, student)._mixture


def test_the_encoders_predictions_have_their_weight(lesson: Lesson, student: Student) -> None:
    of_students = _mixture(lesson, student)
    quarter = _mixture(replace(lesson, teacher_weight=0.25), student)
    assert torch.allclose(quarter, 0.75 * of_students + 0.25 * lesson.p)
    assert not torch.allclose(of_students, lesson.p, atol=0.1)
    assert torch.allclose(_mixture(replace(lesson, teacher_weight=1.0), student), lesson.p)


def test_the_encoders_predictions_are_left_out_if_a_class_is_hidden_too(lesson: Lesson, student: Student) -> None:
    """Only students are trained to hide it."""
    hiding = replace(lesson, crossfit=0.0, teacher_weight=1.0, secrets=[torch.eye(2)[torch.arange(60) % 2]])
    assert torch.allclose(_mixture(hiding, student), _predict(student, lesson.x))


@pytest.mark.parametrize("name", ["crossfit", "teacher_weight", "hub_share"])
def test_a_weight_is_a_share(name: str) -> None:
    with pytest.raises(GraphveilError, match=f"{name}=1.5: expected a number from 0 to 1"):
        gv.Recipe().but(**{name: 1.5})


def test_more_weight_on_links_beyond_classes_leaves_less_of_them(planted: Data) -> None:
    """Answers that a node has from its neighbours tell which nodes are linked; matched by the true classes here."""
    row, col = planted.edge_index
    links = planted.edge_index[:, row < col]
    classes = torch.nn.functional.one_hot(planted.y, 3).float()
    noisy = classes + torch.randn(600, 3, generator=torch.Generator().manual_seed(0))
    p = (2 * torch.zeros(600, 3).index_add_(0, row, noisy[col])).softmax(dim=-1)
    uniform = torch.rand(600, generator=torch.Generator().manual_seed(1)).double()
    channel, found = Channel(p, classes, links, uniform), []
    for weight in (0.0, 0.3, 1.0):
        codes = codes_within(1.0, weight, channel)
        found.append((matched_aucs(codes.numpy(), links.numpy(), planted.y.numpy()) or (0.0,))[0])
    assert found[0] > found[1] + 0.01
    assert found[1] > found[2]
    for limit in (0.72, 0.6, 0.52):
        codes = codes_within(limit, 0.0, channel)
        assert link_auc(codes, links) <= limit, "by J' alone, by both terms, or with the most frequent class"
        assert link_auc(codes_within(limit, 1.0, channel), links) <= limit
    assert len(codes_within(0.52, 0.0, channel).unique()) > 1
    assert len(codes_within(0.5, 0.0, channel).unique()) == 1, "one half is held by saying nothing"


def link_auc(codes: Tensor, links: Tensor) -> float:
    table = link_table(codes.numpy(), links.numpy(), 3)
    nonlinks = pair_table(codes.numpy(), 3) - table
    return best_auc(unordered(table).astype(float), unordered(nonlinks).astype(float))


def test_a_limit_for_links_by_hand() -> None:
    """Two classes of half the nodes: one of two links joins a class with itself, as chance would."""
    p = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    nobody, y = torch.full((4,), -1), torch.tensor([0, 0, 1, 1])
    assert link_limit(p, nobody, torch.tensor([[0, 1], [1, 2]]), 0.5) == pytest.approx(0.5)
    assert link_limit(p, nobody, torch.tensor([[0, 2], [1, 3]]), 0.5) == pytest.approx(0.75)
    assert link_limit(p, nobody, torch.tensor([[0, 2], [1, 3]]), 0.0) == 0.5
    many = torch.tensor([[0, 0], [1, 2]]).repeat(1, 60)  # half of them between nodes of one class
    assert link_limit(p, y, many, 0.5) == pytest.approx(0.5)
    alike = torch.tensor([[0], [1]]).repeat(1, 120)
    assert link_limit(p, y, alike, 0.5) == pytest.approx(0.75)
    assert link_limit(p, y, alike[:, :50], 0.5) == pytest.approx(0.75), "few of them: one class by its prediction"


def test_a_limit_for_links_where_one_class_of_most_links_is_known() -> None:
    """Three of four links lead to a node that is predicted to be of the same class; two nodes were sampled."""
    p = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    y = torch.tensor([0, -1, 1, -1])
    links = torch.tensor([[0, 0, 0, 2], [1, 1, 3, 3]]).repeat(1, 30)
    alike = 0.75 - math.sqrt(0.75 * 0.25 / 2)
    assert link_limit(p, y, links, 0.5) == pytest.approx(0.5 + max(alike - 0.5, 0) / 2)
    certain = torch.tensor([[0, 2], [1, 3]]).repeat(1, 60)
    assert link_limit(p, y, certain, 0.5) == pytest.approx(0.75)


def test_the_codes_of_hubs_are_typical_of_their_classes() -> None:
    """By hand: node 0 has the most links; nodes of its class have code 0 in (1 + 0.6 + 0.2) / 3 of cases."""
    classes = torch.eye(2)[torch.tensor([0, 0, 0, 1])]
    links = torch.tensor([[0, 0, 0], [1, 2, 3]])
    q = torch.tensor([[1.0, 0.0], [0.6, 0.4], [0.2, 0.8], [0.1, 0.9]])
    channel = Channel(q, classes, links, torch.rand(4).double(), hub_share=0.25)
    moved = channel._with_typical_hubs(q)
    assert torch.allclose(moved[0], torch.tensor([0.6, 0.4]))
    assert moved[1:].equal(q[1:])
    assert Channel(q, classes, links, torch.rand(4).double())._with_typical_hubs(q) is q


def test_typical_hubs_reveal_fewer_links_within_classes(planted: Data) -> None:
    """Hubs whose code is not that of their class: half of the links are theirs."""
    generator = torch.Generator().manual_seed(0)
    hubs, others = torch.arange(20).repeat_interleave(30), torch.randint(20, 600, (600,), generator=generator)
    links = torch.stack([hubs, others]).unique(dim=1)
    classes = torch.eye(3)[planted.y]
    p = 0.8 * classes + 0.2 / 3
    p[:20] = p[:20].roll(1, dims=1)
    uniform = torch.rand(600, generator=generator).double()
    of_hubs, typical = (Channel(p, classes, links, uniform, share)(1e-3) for share in (0.0, 20 / 600))
    aucs = [
        (matched_aucs(codes.numpy(), links.numpy(), planted.y.numpy()) or (0.0,))[0] for codes in (of_hubs, typical)
    ]
    assert aucs[0] > 0.65
    assert aucs[1] < 0.6
    plain, with_hubs = (codes_within(1.0, 0.0, Channel(p, classes, links, uniform, share)) for share in (0.0, 20 / 600))
    assert plain.equal(p.argmax(dim=-1))
    assert not with_hubs[:20].equal(plain[:20]), "also if the limit holds without a channel"
