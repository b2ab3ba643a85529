"""Columns as classes: their order, their bins, and values that name a node instead of a class."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphveil as gv
from tests.data.readers.made import people, refusal, tables


def table(folder: Path, ages: Sequence[str]) -> Path:
    """Tables whose nodes have these ages."""
    rows = "".join(f"p{number},{age}\n" for number, age in enumerate(ages))
    return tables(folder, "source,target\np0,p1\n", f"id,age\n{rows}")


def test_numbers_are_classes_in_the_order_of_numbers(tmp_path: Path) -> None:
    graph = gv.read_graph(people(tmp_path, "size: 10 9 . 10 -1 nan"), attributes=["size"])
    assert graph["size"].tolist() == [2, 1, -1, 2, 0, -1]
    assert graph.origin.encoding.classes["size"] == ["-1", "9", "10"]


A, B = 1234567890123456789, 1234567890999999999


@pytest.mark.parametrize(
    ("values", "names", "codes"),
    [
        (pa.array([A, B, None, A - 1]), [str(A - 1), str(A), str(B)], [1, 2, -1, 0]),
        (pa.array([2**64 - 1, 2**64 - 2, 7, None], pa.uint64()), ["7", str(2**64 - 2), str(2**64 - 1)], [2, 1, 0, -1]),
        (pa.array([3.0, 2.5, None, 1e-5]), ["1e-05", "2.5", "3"], [2, 1, -1, 0]),
        (
            pa.array([0.1234567, 0.1234568, 1e5 + 0.5, 1e5]),
            ["0.1234567", "0.1234568", "100000", "100000.5"],
            [0, 1, 3, 2],
        ),
        (pa.array([3.0, 0.1, 1e9, 0.25], pa.float32()), ["0.1", "0.25", "3", "1000000000"], [2, 0, 3, 1]),
        (pa.array([1e16, 1e16 + 2, np.inf, -0.0]), ["0", "1e+16", "1.0000000000000002e+16"], [1, 2, -1, 0]),
    ],
)
def test_each_number_is_a_class_with_a_name_of_its_own(
    tmp_path: Path, values: pa.Array, names: list[str], codes: list[int]
) -> None:
    """So that a graph that is read with its own encoding has the same classes."""
    pq.write_table(pa.table({"id": list("abcd"), "k": values}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    graph = gv.read_graph(tmp_path, attributes=["k"])
    assert graph.origin.encoding.classes["k"] == names
    assert graph["k"].tolist() == codes
    again = gv.read_graph(tmp_path, attributes=["k"], encoding=graph.origin.encoding)
    assert again["k"].tolist() == codes
    assert not again.origin.differences


def test_large_whole_numbers_are_different_classes_in_a_text_file(tmp_path: Path) -> None:
    graph = gv.read_graph(people(tmp_path, f"label: {A} {B} {A} {B} {A - 1} ."))
    assert graph.y.tolist() == [1, 2, 1, 2, 0, -1]
    again = gv.read_graph(tmp_path, encoding=graph.origin.encoding)
    assert again.y.equal(graph.y)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["01234", "1234", "", "99", "NA"], ["01234", "1234", "99"]),
        (["001.1", "1.1", "", "38.9", "NA"], ["001.1", "1.1", "38.9"]),
        ([str(2**64 - 1), str(2**64 - 2), "", "99", "NA"], [str(2**64 - 2), str(2**64 - 1), "99"]),
    ],
)
def test_codes_of_digits_are_classes_as_they_are_written(tmp_path: Path, values: list[str], names: list[str]) -> None:
    """As numbers, the first two would be one class."""
    codes = [names.index(value) if value in names else -1 for value in values]
    graph = gv.read_graph(table(tmp_path, values), attributes=["age"])
    assert graph.origin.encoding.classes["age"] == names
    assert graph["age"].tolist() == codes
    encoding = graph.origin.encoding
    assert gv.read_graph(tmp_path, attributes=["age"], encoding=encoding)["age"].tolist() == codes
    typed = pa.table(
        {"id": [f"p{row}" for row in range(5)], "age": [value if value != "NA" else None for value in values]}
    )
    (tmp_path / "nodes.csv").unlink()
    pq.write_table(typed, tmp_path / "nodes.parquet")
    again = gv.read_graph(tmp_path, attributes=["age"], encoding=encoding)
    assert again["age"].tolist() == codes
    assert not again.origin.differences


def test_a_label_may_be_a_code_and_a_feature_is_a_number(tmp_path: Path) -> None:
    label = gv.read_graph(people(tmp_path, "class: 01234 1234 01234 1234", "age: 01 02 3 4"))
    assert label.origin.encoding.classes["labels"] == ["01234", "1234"]
    assert label.x.size(1) == 1, "a feature is a number"


def test_words_are_classes_in_the_order_of_their_names(tmp_path: Path) -> None:
    graph = gv.read_graph(people(tmp_path, "team: red Blue . blue red"), label="team")
    assert graph.y.tolist() == [2, 0, -1, 1, 2]
    assert graph.origin.encoding.classes["labels"] == ["Blue", "blue", "red"]


def test_many_numbers_need_bins_of_equal_size(tmp_path: Path) -> None:
    ages = list(range(18, 50))
    folder = people(tmp_path, "age: " + " ".join(map(str, [*ages, "."])))
    sentence = refusal(folder, attributes=["age"])
    assert "'age' has 32 different numbers" in sentence
    assert "--bins age=4" in sentence
    graph = gv.read_graph(folder, attributes=["age"], bins={"age": 4})
    assert graph["age"].tolist() == [*[0] * 8, *[1] * 8, *[2] * 8, *[3] * 8, -1]
    assert graph.origin.encoding.classes["age"] == ["18 to 25", "26 to 33", "34 to 41", "42 to 49"]
    assert graph.origin.encoding.cuts["age"] == [26, 34, 42]


def test_bins_of_values_that_repeat_are_never_empty(tmp_path: Path) -> None:
    graph = gv.read_graph(people(tmp_path, "k: 0 0 0 0 0 1 2"), attributes=["k"], bins={"k": 4})
    assert graph["k"].tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert graph.origin.encoding.classes["k"] == ["0", "1 to 2"]
    one = gv.read_graph(people(tmp_path, "k: 5 5 5"), attributes=["k"], bins={"k": 3})
    assert one["k"].tolist() == [0, 0, 0]


AGES = [str(age) for age in range(20, 50)]
SPOILT = [*AGES[:7], "x7", *AGES[8:]]
IT_IS_MISSING = "1 value of 'age' is not a number and counts as missing: 'x7' in line 9 of nodes.csv."


def test_a_bad_cell_among_numbers_in_bins_is_unknown(tmp_path: Path) -> None:
    options: dict[str, Any] = {"attributes": ["age"], "bins": {"age": 3}}
    clean = gv.read_graph(table(tmp_path, [*AGES[:7], "", *AGES[8:]]), **options)
    graph = gv.read_graph(table(tmp_path, SPOILT), **options)
    assert graph["age"].tolist() == clean["age"].tolist() == [*[0] * 7, -1, *[0] * 3, *[1] * 9, *[2] * 10]
    assert graph.origin.encoding == clean.origin.encoding
    assert IT_IS_MISSING in graph.origin.notes
    refused = refusal(table(tmp_path, SPOILT), bad_values="refuse", **options)
    assert "'x7' in line 9 of nodes.csv is not a number, but 29 other values of 'age' are" in refused


def test_numbers_with_decimal_commas_are_cut_into_bins(tmp_path: Path) -> None:
    heights = [f'"1,{number}"' for number in range(50, 80)]
    graph = gv.read_graph(table(tmp_path, heights), attributes=["age"], bins={"age": 3})
    assert graph.origin.encoding.classes["age"] == ["1.5 to 1.59", "1.6 to 1.69", "1.7 to 1.79"]
    assert "30 values of 'age' with a decimal comma: read as numbers." in graph.origin.notes
    assert "'age' has 30 different numbers: cut it into bins" in refusal(tmp_path, attributes=["age"])


def test_a_bad_cell_does_not_hide_that_numbers_need_bins(tmp_path: Path) -> None:
    expected = "'age' has 29 different numbers, besides 'x7' in line 9 of nodes.csv: cut it into bins of equal size"
    assert expected in refusal(table(tmp_path, SPOILT), attributes=["age"])


def test_a_word_among_few_numbers_is_a_class_without_bins(tmp_path: Path) -> None:
    """A secret class that is no number, such as "other", must not become unknown: nobody would protect it."""
    rooms = [*(str(row % 3) for row in range(29)), "other"]
    graph = gv.read_graph(table(tmp_path, rooms), attributes=["age"])
    assert graph.origin.encoding.classes["age"] == ["0", "1", "2", "other"]
    note = "1 value of 'age' is not a number and counts as a class: 'other' in line 31 of nodes.csv; leave a cell"
    assert [line for line in graph.origin.notes if line.startswith(note)]
    labels = gv.read_graph(table(tmp_path, SPOILT * 2), label="age")
    assert len(labels.origin.encoding.classes["labels"]) == 30, "whole numbers are labels, however many there are"


def test_text_is_not_cut_into_bins(tmp_path: Path) -> None:
    options: dict[str, Any] = {"attributes": ["k"], "bins": {"k": 2}}
    words = refusal(people(tmp_path, "k: 1 red 2 blue"), **options)
    assert "'k' cannot be cut into 2 bins, because it holds text, such as 'red' in line 3 of nodes.csv" in words
    dates = refusal(people(tmp_path, "k: 2024-04-30 2024-05-01 soon 2024-05-02"), **options)
    assert "such as 'soon' in line 4 of nodes.csv" in dates
    wrong = refusal(people(tmp_path, "k: 2024-04-30 2024-05-01 2024-05-99"), **options)
    assert "because it holds text, such as '2024-04-30' in line 2" in wrong


def test_a_bad_cell_of_a_newer_table_is_unknown(tmp_path: Path) -> None:
    """It is as in the first table, with bins and without."""
    cut = gv.read_graph(table(tmp_path, AGES), attributes=["age"], bins={"age": 3}).origin.encoding
    graph = gv.read_graph(table(tmp_path, SPOILT), attributes=["age"], encoding=cut)
    assert graph["age"].tolist() == [*[0] * 7, -1, *[0] * 2, *[1] * 10, *[2] * 10]
    assert graph.origin.differences == (IT_IS_MISSING,)
    assert "'x7' in line 9" in refusal(tmp_path, attributes=["age"], encoding=cut, bad_values="refuse")
    text = refusal(people(tmp_path, "age: 1 old new"), attributes=["age"], encoding=cut)
    assert "'age' held numbers, which were cut into bins, and holds text now, such as 'old' in line 3" in text
    few = gv.read_graph(people(tmp_path, "k: 1 2 3 1"), attributes=["k"]).origin.encoding
    again = gv.read_graph(people(tmp_path, "k: 3.0 x7 1.0 2.0 4.0"), attributes=["k"], encoding=few)
    assert again["k"].tolist() == [2, -1, 0, 1, -1]
    assert again.origin.differences == (
        "1 value of 'k' is not a number and counts as missing: 'x7' in line 3 of nodes.csv.",
        "1 value of 'k' is new to the encoder and counts as unknown.",
    )
    written = gv.read_graph(people(tmp_path, "k: 01 02 3a 01"), attributes=["k"]).origin.encoding
    assert written.classes["k"] == ["01", "02", "3a"]
    assert gv.read_graph(tmp_path, attributes=["k"], encoding=written)["k"].tolist() == [0, 1, 2, 0]


def test_numbers_of_new_classes_are_noted(tmp_path: Path) -> None:
    old = gv.read_graph(people(tmp_path, "k: 1 2 1"), attributes=["k"])
    graph = gv.read_graph(people(tmp_path, "k: 2 3 ."), attributes=["k"], encoding=old.origin.encoding)
    assert graph["k"].tolist() == [1, -1, -1]
    assert any("1 value of 'k' is new to the encoder" in note for note in graph.origin.notes)


def test_names_are_no_classes(tmp_path: Path) -> None:
    """Of 40 people 24 have a name of their own, and the others one of four."""
    words = [f"n{number}" if number < 24 else f"team{number % 4}" for number in range(40)]
    days = [f"2024-{1 + number % 12:02d}-{1 + number // 12:02d}" for number in range(40)]
    rows = [f"p{number},{word},{day}" for number, (word, day) in enumerate(zip(words, days, strict=True))]
    folder = tables(tmp_path, "source,target\np0,p1\n", "\n".join(["id,who,since", *rows]))
    assert "'who' has 28 different values for 40 nodes, which are identifiers" in refusal(folder, attributes=["who"])
    assert "'since' has 40 different dates: cut it into bins" in refusal(folder, attributes=["since"])
    fewer = "\n".join(["id,who,since", *rows]).replace("n1,", "n0,").replace("n3,", "n2,").replace("n5,", "n4,")
    assert len(gv.read_graph(tables(tmp_path, "source,target\np0,p1\n", fewer), attributes=["who"])["who"]) == 40
