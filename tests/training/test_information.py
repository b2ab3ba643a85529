"""The information terms against tables computed by hand, and against a joint distribution written out."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from graphveil.training.information import (
    balanced,
    class_information,
    class_table,
    link_information,
    link_information_beyond,
    link_table,
)


def random_rows(count: int, columns: int, seed: int) -> Tensor:
    return torch.randn(count, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).softmax(-1)


def test_a_code_that_is_the_class_says_all_of_it_and_one_that_is_not_says_nothing() -> None:
    y = torch.tensor([0, 0, 0, 1])
    one_hot = torch.nn.functional.one_hot(y, 2).double()
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert class_information(class_table(one_hot, one_hot)).item() == pytest.approx(entropy, abs=1e-9)
    apart = torch.full((4, 3), 1 / 3, dtype=torch.float64)
    assert class_information(class_table(apart, one_hot)).item() == pytest.approx(0, abs=1e-9)


def test_a_table_by_hand() -> None:
    """Two nodes of class 0 at codes (1, 0) and (1/2, 1/2), one of class 1 at (0, 1)."""
    q = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], dtype=torch.float64)
    s = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    table = class_table(q, s)
    assert torch.allclose(table, torch.tensor([[1.5, 0.0], [0.5, 1.0]], dtype=torch.float64) / 3)
    expected = 0.5 * math.log(0.5 / (0.5 * 2 / 3)) + 1 / 6 * math.log((1 / 6) / (0.5 * 2 / 3))
    expected += 1 / 3 * math.log((1 / 3) / (0.5 / 3))
    assert class_information(table).item() == pytest.approx(expected, abs=1e-9)
    even = balanced(table)
    assert torch.allclose(even.sum(dim=0), torch.tensor([0.5, 0.5], dtype=torch.float64))
    assert torch.allclose(even, torch.tensor([[0.375, 0.0], [0.125, 0.5]], dtype=torch.float64))


def test_a_class_that_nobody_has_does_not_count() -> None:
    q, s = random_rows(6, 4, 0), torch.zeros(6, 3, dtype=torch.float64)
    s[:3, 0], s[3:, 2] = 1, 1
    narrow = class_table(q, s[:, [0, 2]])
    assert class_information(balanced(class_table(q, s))).item() == pytest.approx(
        class_information(balanced(narrow)).item(), abs=1e-9
    )


def test_class_information_is_that_of_the_joint_distribution_written_out() -> None:
    """Draw a node, then its code from q and its class from s: p(node, code, class), summed over nodes by hand."""
    q, s = random_rows(5, 4, 1), random_rows(5, 3, 2)
    joint = torch.zeros(4, 3, dtype=torch.float64)
    for node, code, y in product(range(5), range(4), range(3)):
        joint[code, y] += q[node, code] * s[node, y] / 5
    codes, classes = joint.sum(dim=1), joint.sum(dim=0)
    expected = sum(
        float(joint[c, y] * (joint[c, y] / (codes[c] * classes[y])).log()) for c, y in product(range(4), range(3))
    )
    assert class_information(class_table(q, s)).item() == pytest.approx(expected, abs=1e-9)


def test_link_information_is_that_of_the_joint_distribution_written_out() -> None:
    """Draw a link in either direction, and the codes of its ends; beside it, two nodes drawn apart."""
    q = random_rows(5, 3, 3)
    links = torch.tensor([[0, 1, 3], [1, 2, 4]])
    linked, apart = torch.zeros(3, 3, dtype=torch.float64), torch.zeros(3, 3, dtype=torch.float64)
    for a, b in product(range(3), range(3)):
        for u, v in links.T.tolist():
            linked[a, b] += (q[u, a] * q[v, b] + q[v, a] * q[u, b]) / (2 * 3)
        for u, v in product(range(5), range(5)):
            apart[a, b] += q[u, a] * q[v, b] / 25
    table = link_table(q[links[0]], q[links[1]])
    assert torch.allclose(table, linked)
    expected = float((linked * (linked / apart).log()).sum())
    assert link_information(table, q.mean(dim=0)).item() == pytest.approx(expected, abs=1e-9)


def test_links_beyond_classes_are_measured_against_links_drawn_by_class() -> None:
    """Draw a link's two classes, then a node of each: whoever has only the classes would see these codes."""
    q, s = random_rows(6, 3, 4), torch.nn.functional.one_hot(torch.tensor([0, 0, 0, 1, 1, 1]), 2).double()
    links = torch.tensor([[0, 1, 3, 2], [1, 2, 4, 5]])
    table, pairs = link_table(q[links[0]], q[links[1]]), link_table(s[links[0]], s[links[1]])
    assert torch.allclose(pairs, torch.tensor([[0.5, 0.125], [0.125, 0.25]], dtype=torch.float64))
    by_class = torch.zeros(3, 3, dtype=torch.float64)
    for a, b, y, other in product(range(3), range(3), range(2), range(2)):
        of_one, of_other = (q[s[:, k] == 1].mean(dim=0) for k in (y, other))
        by_class[a, b] += pairs[y, other] * of_one[a] * of_other[b]
    expected = float((table * (table / by_class).log()).sum())
    found = link_information_beyond(table, class_table(q, s), pairs)
    assert found.item() == pytest.approx(expected, abs=1e-9)


def test_codes_that_are_the_classes_say_nothing_of_links_beyond_them() -> None:
    s = torch.nn.functional.one_hot(torch.tensor([0, 0, 1, 1, 1]), 2).double()
    links = torch.tensor([[0, 2, 1], [1, 3, 4]])
    table = link_table(s[links[0]], s[links[1]])
    assert link_information(table, s.mean(dim=0)).item() > 0.05
    assert link_information_beyond(table, class_table(s, s), table).item() == pytest.approx(0, abs=1e-9)


def test_a_batch_is_its_runs() -> None:
    q, s = (torch.stack([random_rows(5, columns, seed) for seed in (7, 8)]) for columns in (4, 3))
    links = torch.tensor([[0, 1, 3], [1, 2, 4]])
    table = link_table(q[:, links[0]], q[:, links[1]])
    pairs = link_table(s[:, links[0]], s[:, links[1]])
    found = torch.stack(
        [
            class_information(balanced(class_table(q, s))),
            link_information(table, q.mean(dim=-2)),
            link_information_beyond(table, class_table(q, s), pairs),
        ]
    )
    for run in range(2):
        alone = link_table(q[run, links[0]], q[run, links[1]])
        own = link_table(s[run, links[0]], s[run, links[1]])
        expected = torch.stack(
            [
                class_information(balanced(class_table(q[run], s[run]))),
                link_information(alone, q[run].mean(dim=-2)),
                link_information_beyond(alone, class_table(q[run], s[run]), own),
            ]
        )
        assert torch.allclose(found[:, run], expected, rtol=0, atol=1e-12)
