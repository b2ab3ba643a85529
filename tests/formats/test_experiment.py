"""What is derived from the records of experiments, and columns that must have equal lengths."""

import pytest

from graphveil.formats.experiment import ExperimentRecord, TableRecord, front
from graphveil.formats.store import parse
from tests.formats import made


def test_a_row_has_a_gap_unless_it_is_a_peer() -> None:
    content = made.experiment()
    (row,) = parse(content, ExperimentRecord).rows
    assert (row.cell, row.gap) == ("cora · gcn", 0.0)
    content["rows"][0] |= {"epsilon": 2.0, "tradeoff": None}
    assert parse(content, ExperimentRecord).rows[0].gap is None


def test_a_sweep_is_known_by_its_name() -> None:
    assert not parse(made.experiment(), ExperimentRecord).is_sweep
    assert parse(made.experiment() | {"name": "sweep"}, ExperimentRecord).is_sweep


def test_columns_of_different_lengths_are_refused() -> None:
    content = made.experiment()
    content["rows"][0]["history"]["probe"] = [0.5]
    with pytest.raises(ValueError, match=r"^rows\[0\]\.history: its columns have different lengths$"):
        parse(content, ExperimentRecord)
    content = made.experiment()
    content["rows"][0]["map"]["class"] = [0]
    with pytest.raises(ValueError, match=r"^rows\[0\]\.map: it has 2 x, 2 y and 1 classes$"):
        parse(content, ExperimentRecord)
    with pytest.raises(ValueError, match=r"^not every row has 2 texts, one for each column$"):
        parse(made.table() | {"rows": [["cora"]]}, TableRecord)


def test_the_front_holds_what_nothing_beats() -> None:
    points = [(0.3, 0.6), (0.5, 0.9), (0.5, 0.8), (0.4, 0.5), (0.7, 0.9), (0.3, 0.6)]
    assert front(points) == [(0.3, 0.6), (0.5, 0.9)]
    assert front([]) == []
