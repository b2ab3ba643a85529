"""Count tables of a release of six nodes, by hand, and of larger random releases."""

import numpy as np
import pytest

from graphveil.codes.tables import (
    cell_pairs,
    class_table,
    code_sizes,
    distinct_codes,
    joint,
    link_cells,
    link_table,
    pair_table,
    unordered,
)
from graphveil.errors import GraphveilError
from tests.codes.made import random_release

CODES = np.array([0, 0, 0, 1, 1, 2])
Y = np.array([1, 1, 0, -1, 0, 1])
LINKS = np.array([[0, 0, 1, 3, 4], [1, 3, 4, 4, 5]])  # codes (0, 0), (0, 1), (0, 1), (1, 1), (1, 2)


def test_class_table_by_hand() -> None:
    assert class_table(CODES, Y, 4, 2).tolist() == [[1, 2], [1, 0], [0, 1], [0, 0]]


def test_link_and_pair_tables_by_hand() -> None:
    assert link_table(CODES, LINKS, 3).tolist() == [[2, 2, 0], [2, 2, 1], [0, 1, 0]]
    assert pair_table(CODES, 3).tolist() == [[6, 6, 3], [6, 2, 2], [3, 2, 0]]
    assert unordered(link_table(CODES, LINKS, 3)).tolist() == [1, 2, 0, 1, 1, 0]
    assert unordered(pair_table(CODES, 3)).tolist() == [3, 6, 3, 1, 2, 0]


def test_pairs_minus_links_are_the_nonlinks() -> None:
    codes, _, links = random_release(0)
    linked = {tuple(pair) for pair in links.T.tolist()}
    others = [(u, v) for v in range(len(codes)) for u in range(v) if (u, v) not in linked]
    expected = link_table(codes, np.array(others).T, 6)
    np.testing.assert_array_equal(pair_table(codes, 6) - link_table(codes, links, 6), expected)


def test_merging_codes_adds_rows_and_columns() -> None:
    codes, _, links = random_release(1)
    merged = np.where(codes == 5, 2, codes)
    for table, expected in (
        (link_table(codes, links, 6), link_table(merged, links, 5)),
        (pair_table(codes, 6), pair_table(merged, 5)),
    ):
        table[2] += table[5]
        table[:, 2] += table[:, 5]
        np.testing.assert_array_equal(table[:5, :5], expected)


def test_cells_with_links_agree_with_the_full_table() -> None:
    codes, _, links = random_release(2)
    cells, cell_of = link_cells(codes, links)
    table, inside = link_table(codes, links, 6), pair_table(codes, 6)
    halved = np.where(cells[0] == cells[1], 2, 1)
    np.testing.assert_array_equal(np.bincount(cell_of), table[cells[0], cells[1]] // halved)
    np.testing.assert_array_equal(cell_pairs(cells, code_sizes(codes, 6)), inside[cells[0], cells[1]] // halved)
    assert (table > 0).sum() == (cells[0] != cells[1]).sum() * 2 + (cells[0] == cells[1]).sum()


def test_pair_counts_of_a_huge_release_are_exact() -> None:
    half = 50_000_000
    cells = np.array([[0, 0], [0, 1]])
    assert cell_pairs(cells, np.array([half, half])).tolist() == [half * (half - 1) // 2, half**2]


def test_distinct_rows_are_numbered_in_order_of_first_occurrence() -> None:
    z = np.array([[3.0, 1.0], [0.0, 0.0], [3.0, 1.0], [-0.0, 0.0], [0.0, 0.0]])
    codes, first = distinct_codes(z)
    assert codes.tolist() == [0, 1, 0, 2, 1]
    assert first.tolist() == [0, 1, 3]
    codes, first = distinct_codes(z.T.copy().T)  # columns are not adjacent in memory
    assert codes.tolist() == [0, 1, 0, 2, 1]


def test_distinct_rows_differ_in_the_last_bit() -> None:
    value = np.float32(1)
    z = np.array([[value], [np.nextafter(value, np.float32(2))], [value]], dtype=np.float32)
    assert distinct_codes(z)[0].tolist() == [0, 1, 0]


def test_the_joint_code_separates_what_either_code_separates() -> None:
    first, second = np.array([0, 0, 1, 1, 0]), np.array([0, 7, 0, 7, 0])
    both = joint(first, second)
    assert both[0] == both[4]
    assert sorted(set(both.tolist())) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: code_sizes(np.array([0, 3]), 3), "the codes range from 0 to 3: expected 0 to 2"),
        (lambda: class_table(np.array([0, 1]), np.array([-2, 0]), 2, 2), "the classes range from -2 to 0: expected -1"),
        (lambda: distinct_codes(np.ones(3)), r"z has shape \(3,\)"),
        (lambda: joint(np.zeros(2, int), np.zeros(3, int)), "the releases have 2 and 3 codes"),
    ],
)
def test_invalid_codes_raise_an_error(call: "object", sentence: str) -> None:
    assert callable(call)
    with pytest.raises(GraphveilError, match=sentence):
        call()
