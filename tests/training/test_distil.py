"""What the codes that hide links are made from: students' predictions, and a share of the encoder's."""

from dataclasses import replace

import pytest
import torch

import graphveil as gv
from graphveil.errors import GraphveilError
from graphveil.models.student import Student
from graphveil.training.distil import Lesson, _mixture, _predict


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
        teacher_weight=0.0,
        channels=4,
        seed=0,
    )


@pytest.fixture(scope="module")
def student() -> Student:
    torch.manual_seed(0)
    return Student(4, 4, 3).eval()


def test_the_encoders_predictions_have_their_weight(lesson: Lesson, student: Student) -> None:
    of_students = _mixture(lesson, student, 0.5)
    quarter = _mixture(replace(lesson, teacher_weight=0.25), student, 0.5)
    assert torch.allclose(quarter, 0.75 * of_students + 0.25 * lesson.p)
    assert not torch.allclose(of_students, lesson.p, atol=0.1)
    assert torch.allclose(_mixture(replace(lesson, teacher_weight=1.0), student, 0.5), lesson.p)


def test_the_encoders_predictions_are_left_out_if_a_class_is_hidden_too(lesson: Lesson, student: Student) -> None:
    """Only students are trained to hide it."""
    hiding = replace(lesson, teacher_weight=1.0, secrets=[torch.eye(2)[torch.arange(60) % 2]])
    assert torch.allclose(_mixture(hiding, student, 0.0), _predict(student, lesson.x))


@pytest.mark.parametrize("name", ["crossfit", "teacher_weight"])
def test_a_weight_is_a_share(name: str) -> None:
    with pytest.raises(GraphveilError, match=f"{name}=1.5: expected a number from 0 to 1"):
        gv.Recipe().but(**{name: 1.5})
