"""Codes of several groups, and the code book by which nodes are found."""

from itertools import product

import pytest
import torch

from graphveil.models.codes import CodeBook, CodeShape, hard_codes, soft_codes


@pytest.mark.parametrize("shape", [CodeShape(1, 5), CodeShape(2, 3), CodeShape(3, 2)])
def test_product_codes_are_products_of_their_groups(shape: CodeShape) -> None:
    logits = torch.randn(7, shape.channels, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    q = soft_codes(logits, shape)
    assert q.shape == (7, shape.codes)
    assert torch.allclose(q.sum(dim=-1), torch.ones(7, dtype=torch.float64))
    groups = logits.view(7, shape.groups, shape.size).softmax(dim=-1)
    for number, values in enumerate(product(range(shape.size), repeat=shape.groups)):
        expected = torch.stack([groups[:, group, value] for group, value in enumerate(values)]).prod(dim=0)
        assert torch.allclose(q[:, number], expected)
    assert hard_codes(logits, shape).equal(q.argmax(dim=-1)), "the most probable code has the most probable values"


def test_a_code_book_finds_nodes_by_their_ids_in_any_order() -> None:
    nodes, codes = torch.tensor([40, 10, 30]), torch.tensor([2, 0, 1])
    book = CodeBook.of(torch.arange(3), torch.eye(3), torch.ones(3), nodes, codes)
    assert book.find(torch.tensor([10, 40, 30, 20, 50])).tolist() == [0, 2, 1, -1, -1]
    assert book.sizes() == (3, 3, 3, 3)
