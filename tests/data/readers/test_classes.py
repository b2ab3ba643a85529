"""Columns as classes: their order, their bins, and values that name a node instead of a class."""

from pathlib import Path

import graphveil as gv
from tests.data.readers.made import people, refusal, tables


def test_numbers_are_classes_in_the_order_of_numbers(tmp_path: Path) -> None:
    graph = gv.read_graph(people(tmp_path, "size: 10 9 . 10 -1 nan"), attributes=["size"])
    assert graph["size"].tolist() == [2, 1, -1, 2, 0, -1]
    assert graph.origin.encoding.classes["size"] == ["-1", "9", "10"]


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
